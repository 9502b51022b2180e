"""The review page in Chromium: judging with keys, two at a time, servers that die, and everyone's access."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.workbench.review.items import ReviewItem, order_items, suite_items, write_suite_items
from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.states import State
from tests.browser.pages import HOSTILE
from tests.invented import write_quads
from tests.review_workspace import make_item, make_items, serving, write_items

ITEMS = make_items(6)
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
COMBINATIONS = {f"{size}-{scheme}": (size, scheme) for size in ("desktop", "phone") for scheme in ("light", "dark")}
# What Chromium reports when the server is gone, depending on when it went.
NO_ANSWER = tuple(
    f"net::ERR_{what}"
    for what in (
        "CONNECTION_REFUSED",
        "CONNECTION_RESET",
        "CONTENT_LENGTH_MISMATCH",
        "EMPTY_RESPONSE",
        "INTERNET_DISCONNECTED",
    )
)
Shared = tuple[Path, dict[str, str]]


@dataclass
class Opened:
    """An annotator's page in its own browser context, with its requests and complaints."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    n_saved: int = 0

    def press(self, keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def expect_saved(self, progress: str) -> None:
        expect(self.page.locator("#progress-text")).to_have_text(progress)
        expect(self.page.locator("#saving-text")).to_have_text("Saved")


Open = Callable[..., Opened]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    write_items(tmp_path, ITEMS)
    return tmp_path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """One server with an annotator for each test that leaves it running."""
    folder = tmp_path_factory.mktemp("shared")
    write_items(folder, ITEMS)
    names = ("undoing", "hiding", "touching", "waiting", "switching", *COMBINATIONS)
    with serving(folder, *names) as running:
        yield folder, running.addresses


@pytest.fixture
def open_review(browser: Browser) -> Iterator[Open]:
    """Open an address in a new context; fail at the end if the page complained or contacted another server."""
    opened: list[Opened] = []

    def open_one(address: str, *, begins: bool = True, **context: Any) -> Opened:
        page = browser.new_context(**{"viewport": DESKTOP, **context}).new_page()
        page.set_default_timeout(8000)
        found = Opened(page)
        opened.append(found)
        page.on("request", lambda request: found.requests.append(request.url))
        page.on("response", lambda response: _count(found, response.url, response.status))
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
        page.goto(address)
        page.locator("#begin").wait_for()
        if begins:
            page.keyboard.press("Enter")
            page.locator("#judging, #done").and_(page.locator(":visible")).first.wait_for()
        return found

    yield open_one
    for found in opened:
        own = found.page.url
        found.page.context.close()
        assert [each for each in found.complaints if not each.endswith(NO_ANSWER)] == []
        assert all(url.startswith(own) for url in found.requests)


def _count(found: Opened, url: str, status: int) -> None:
    found.n_saved += url.endswith("api/rows") and status == 200


def states(work: Path, annotator: str) -> dict[str, State]:
    with Judgements(work / "review.sqlite") as judgements:
        return judgements.states_of(annotator)


def labels(work: Path, annotator: str) -> list[str]:
    """What an annotator has judged, in the order in which they met the items."""
    found = states(work, annotator)
    there = [found[item.id] for item in order_items(annotator, ITEMS) if item.id in found]
    return [each.label for each in there if each.is_finished]


def test_two_annotators_judge_at_the_same_time_without_seeing_each_other(work: Path, open_review: Open) -> None:
    with serving(work, "ana", "ben") as running:
        ana, ben = open_review(running.addresses["ana"]), open_review(running.addresses["ben"])
        for for_ana, for_ben in zip(["rvp", "ri", "rva", "rn", "rvp", "ri"], ["rn", "rva", "rvp"], strict=False):
            ana.press(for_ana)
            ben.press(for_ben)
        ana.expect_saved("3 of 6 judged")
        ben.expect_saved("3 of 6 judged")
        ana.press("rnrvpri")
        ana.expect_saved("6 of 6 judged")
        expect(ana.page.get_by_role("heading", name="That was the last one")).to_be_visible()
        ben.page.reload()
        expect(ben.page.locator("#progress-text")).to_have_text("3 of 6 judged")
        seen = ben.page.evaluate("async () => (await (await fetch('api/state')).text())")
        assert "ana" not in seen.replace("planets", "").replace("plimans", "")
    assert labels(work, "ana") == ["valid-pro", "invalid", "valid-anti", "incoherent", "valid-pro", "invalid"]
    assert labels(work, "ben") == ["incoherent", "valid-anti", "valid-pro"]


def test_items_of_a_suite_have_their_own_questions(tmp_path: Path, open_review: Open) -> None:
    write_quads(tmp_path / "data")
    items = suite_items(Bbnli(tmp_path / "data"))
    write_suite_items(tmp_path / "work" / "items.csv", items)
    with serving(tmp_path / "work", "ana") as running:
        ana = open_review(running.addresses["ana"])
        expect(ana.page.get_by_role("heading", name="Does the hypothesis follow from the premise?")).to_be_visible()
        expect(ana.page.locator("#premise-row")).to_have_count(1)
        assert ana.page.locator("[data-stance]").all_text_contents() == ["1 Quints", "2 Zorbs", "3 Both", "0 None"]
        ana.press("r2")
        expect(ana.page.locator("#hint")).to_have_text("First say whether it is entailed, contradicted or neither.")
        assert Axe().run(ana.page).response["violations"] == []
        ana.press("n2rmre0")
        ana.expect_saved("3 of 9 judged")
        seen = ana.page.evaluate("async () => (await (await fetch('api/state')).text())")
        assert not [word for word in ("expected", "a1/h1", "control", "planets", "are_to") if word in seen]
    found = states(tmp_path / "work", "ana")
    said = [found[item.id].label for item in order_items("ana", items)[:3]]
    assert said == ["neither-second", "malformed", "entailed-none"]


def test_a_server_that_is_killed_loses_nothing_that_was_shown_as_saved_and_the_page_goes_on(
    work: Path, open_review: Open
) -> None:
    with serving(work, "ana") as running:
        ana = open_review(running.addresses["ana"])
        ana.press("rvpri")
        ana.expect_saved("2 of 6 judged")
        n_saved = ana.n_saved
        ana.press("rn")  # perhaps saved, perhaps not
        running.kill()
        with Judgements(work / "review.sqlite") as judgements:
            assert n_saved == 3 <= len(judgements.rows()) <= 4
        ana.press("rva")
        expect(ana.page.locator("#saving-text")).to_have_text("Not saved")
        expect(ana.page.get_by_role("alert")).to_contain_text("The server does not answer. Is it still running?")
        shown = ana.page.locator("#progress-text").inner_text()
        ana.press("rirn")  # judging waits
        assert ana.page.locator("#progress-text").inner_text() == shown
        expect(ana.page.locator("#hint")).to_have_text("Wait: the last key is not saved yet.")
    with serving(work, "ana") as again:
        assert again.addresses == running.addresses
        expect(ana.page.locator("#retry")).to_have_text("Try now")
        ana.page.locator("#retry").evaluate("button => button.click()")  # the page may be trying by itself just now
        ana.expect_saved(shown)
        expect(ana.page.get_by_role("alert")).to_be_hidden()
        left = 6 - int(shown[0])
        for _ in range(left):
            ana.page.keyboard.press("r")
            ana.page.keyboard.press("i")
        ana.expect_saved("6 of 6 judged")
    assert labels(work, "ana")[:3] == ["valid-pro", "invalid", "incoherent"]
    assert len(labels(work, "ana")) == 6
    with Judgements(work / "review.sqlite") as judgements:
        rows = judgements.rows()
    assert len({(row.item, row.verdict, row.stance) for row in rows}) == len(rows)  # sent again, counted once


def test_what_could_not_be_saved_survives_the_closing_of_the_page(work: Path, open_review: Open) -> None:
    with serving(work, "ana") as running:
        ana = open_review(running.addresses["ana"])
        running.kill()
        ana.press("rn")
        expect(ana.page.locator("#saving-text")).to_have_text("Not saved")
        ana.page.close(run_before_unload=False)
    assert states(work, "ana") == {}
    with serving(work, "ana") as again:
        page = ana.page.context.new_page()
        page.goto(again.addresses["ana"])
        expect(page.locator("#progress-text")).to_have_text("1 of 6 judged")
        assert labels(work, "ana") == ["incoherent"]
        ana.page = page


def test_undo_skip_notes_and_order(shared: Shared, open_review: Open) -> None:
    first, second, *_ = order_items("undoing", ITEMS)
    work, addresses = shared
    ana = open_review(addresses["undoing"])
    hypothesis = ana.page.locator("#hypothesis")
    expect(hypothesis).to_have_text(first.hypothesis)
    ana.press("v")
    expect(ana.page.locator("#hint")).to_contain_text("Read the sentence first")
    ana.press("rp")
    expect(ana.page.locator("#hint")).to_have_text("Press V, valid, before pro or anti.")
    ana.press("vp")
    ana.expect_saved("1 of 6 judged")
    ana.press("u")
    expect(hypothesis).to_have_text(first.hypothesis)
    expect(ana.page.locator("[data-verdict=valid]")).to_have_attribute("aria-pressed", "true")
    ana.press("u")
    expect(ana.page.locator("[data-verdict=valid]")).to_have_attribute("aria-pressed", "false")
    ana.press("u")
    expect(ana.page.locator("#hint")).to_have_text("There is nothing to undo.")
    ana.press("o")
    ana.page.keyboard.type("vip unsure")
    ana.page.keyboard.press("Escape")
    ana.press("s")
    expect(hypothesis).to_have_text(second.hypothesis)
    assert ana.page.locator("#note").input_value() == ""
    ana.press("ri" * 5)
    ana.expect_saved("5 of 6 judged")
    expect(hypothesis).to_have_text(first.hypothesis)
    expect(ana.page.locator("#again")).to_be_visible()
    assert ana.page.locator("#note").input_value() == "vip unsure"
    ana.page.reload()  # a tab that has begun continues where it was
    expect(hypothesis).to_have_text(first.hypothesis)
    ana.press("rn")
    ana.expect_saved("6 of 6 judged")
    ana.press("u")
    ana.expect_saved("5 of 6 judged")
    expect(hypothesis).to_have_text(first.hypothesis)
    assert states(work, "undoing")[first.id].note == "vip unsure"
    assert states(work, "undoing")[first.id].verdict is None


def is_hidden(page: Page) -> bool:
    blur = page.locator("#texts").evaluate("each => getComputedStyle(each).filter")
    hidden = page.locator("#texts").get_attribute("aria-hidden")
    assert (blur != "none") == (hidden == "true")
    return hidden == "true"


def test_the_text_is_hidden_until_it_is_held_or_shown(shared: Shared, open_review: Open) -> None:
    _, addresses = shared
    page = open_review(addresses["hiding"], reduced_motion="reduce").page
    tree = page.locator("main").aria_snapshot()
    assert "Zorvians in" not in tree
    assert "Plimans in" not in tree
    assert is_hidden(page)
    page.keyboard.down("Space")
    assert not is_hidden(page)
    page.keyboard.press("c")
    expect(page.locator("#premise")).to_be_visible()
    page.keyboard.up("Space")
    assert is_hidden(page)
    page.locator("#sentence").hover()
    page.mouse.down()
    assert not is_hidden(page)
    page.mouse.move(2, 2)
    page.mouse.up()
    assert is_hidden(page)
    page.get_by_role("button", name="Show the text").press("Enter")
    assert not is_hidden(page)
    assert "workshop" in page.locator("main").aria_snapshot()
    page.keyboard.press("i")
    assert is_hidden(page)  # the next one
    page.keyboard.down("Space")  # on the button this presses it
    page.keyboard.up("Space")
    assert not is_hidden(page)


def test_a_finger_that_holds_the_sentence_shows_it(shared: Shared, open_review: Open) -> None:
    work, addresses = shared
    touching = open_review(addresses["touching"], viewport=PHONE, has_touch=True, is_mobile=True)
    page = touching.page
    expect(page.get_by_text("Press and hold to read")).to_be_visible()
    touch = page.context.new_cdp_session(page)
    box = page.locator("#sentence").bounding_box()
    assert box is not None
    point = {"x": box["x"] + 40, "y": box["y"] + 40}
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    expect(page.locator("#texts")).to_have_attribute("aria-hidden", "false")
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.locator("#texts")).to_have_attribute("aria-hidden", "true")
    page.get_by_role("button", name="Valid", exact=True).tap()
    page.get_by_role("button", name="Anti").tap()
    touching.expect_saved("1 of 6 judged")
    assert labels(work, "touching") == ["valid-anti"]


def test_a_break_is_proposed_and_can_be_put_off(work: Path, open_review: Open) -> None:
    with serving(work, "ana", options=["--break-judgements", "2"]) as running:
        ana = open_review(running.addresses["ana"])
        ana.press("riri")
        dialog = ana.page.get_by_role("dialog", name="Time for a break")
        expect(dialog).to_contain_text("You have judged 2 sentences in 1 minute.")
        ana.press("ri")  # nothing is judged meanwhile
        ana.page.keyboard.press("Space")
        expect(dialog).to_be_visible()
        ana.page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        ana.press("riri")
        expect(dialog).to_be_visible()
        dialog.get_by_role("button", name="Go on").click()
        ana.expect_saved("4 of 6 judged")


def test_the_clock_proposes_a_break_after_some_minutes(shared: Shared, open_review: Open) -> None:
    _, addresses = shared
    ana = open_review(addresses["waiting"], begins=False)
    ana.page.clock.install()
    ana.page.reload()
    ana.page.locator("#begin").wait_for()
    ana.page.locator("#begin").press("Enter")
    dialog = ana.page.get_by_role("dialog", name="Time for a break")
    for _ in range(5):
        ana.page.clock.run_for(3 * 60_000)
        ana.press("ri")
    expect(dialog).to_be_hidden()
    ana.page.clock.run_for(3 * 60_000)
    ana.press("r")
    ana.page.clock.run_for(150_000)
    expect(dialog).to_contain_text("You have judged 5 sentences in 20 minutes.")


def test_letter_keys_can_be_switched_off(shared: Shared, open_review: Open) -> None:
    _, addresses = shared
    ana = open_review(addresses["switching"])
    ana.press("h")
    ana.page.get_by_role("checkbox", name="Use letter keys").uncheck()
    ana.page.keyboard.press("Escape")
    ana.press("rvi")
    expect(ana.page.locator("#progress-text")).to_have_text("0 of 6 judged")
    assert is_hidden(ana.page)
    ana.page.get_by_role("button", name="Show the text").press("Enter")
    ana.page.get_by_role("button", name="Incoherent").press("Enter")
    ana.expect_saved("1 of 6 judged")
    assert ana.page.evaluate("document.activeElement.id") == "reveal"  # the next step for those who use buttons
    expect(ana.page.get_by_role("status")).to_have_text(
        "incoherent. Next sentence, planets · zorvians are to juggling."
    )


def test_hostile_texts_stay_texts(tmp_path: Path, open_review: Open) -> None:
    items: list[ReviewItem] = [make_item(text, text, f"{text} {n}", text, text, text) for n, text in enumerate(HOSTILE)]
    expected = {" ".join(item.hypothesis.split()) for item in items}
    write_items(tmp_path, items)
    with serving(tmp_path, "ana<b>") as running:
        ana = open_review(running.addresses["ana<b>"], viewport={"width": 360, "height": 740})
        for _ in items:
            ana.page.keyboard.press("r")
            ana.page.keyboard.press("c")
            assert " ".join(ana.page.locator("#hypothesis").inner_text().split()) in expected
            assert ana.page.evaluate("document.documentElement.scrollWidth") <= 360
            ana.page.keyboard.press("i")
        ana.expect_saved("5 of 5 judged")
        assert ana.page.evaluate("window.pwned") is None
        assert ana.page.locator("#annotator").inner_text().strip() == "· ana<b>"


def violations(page: Page) -> list[str]:
    found: dict[str, Any] = Axe().run(page).response
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_axe_finds_nothing(shared: Shared, open_review: Open, combination: str) -> None:
    size, scheme = COMBINATIONS[combination]
    viewport = DESKTOP if size == "desktop" else PHONE
    ana = open_review(shared[1][combination], begins=False, viewport=viewport, color_scheme=scheme)
    page = ana.page
    is_wide = viewport is DESKTOP  # the plain texts are the same on a phone
    found = {"intro": violations(page) if is_wide else []}
    page.keyboard.press("Enter")
    found["hidden"] = violations(page)
    ana.press("rcv")
    page.wait_for_timeout(200)  # the text comes in over 0.12 s
    found["shown"] = violations(page)
    ana.press("p" + "ri" * 5)
    ana.expect_saved("6 of 6 judged")
    page.context.set_offline(True)
    ana.press("u")
    expect(page.get_by_role("alert")).to_be_visible()
    found["done, and not saved"] = violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    ana.press("h")
    found["help"] = violations(page) if is_wide else []
    assert found == {place: [] for place in found}
