"""The review page in Chromium: judging with keys, two at a time, breaks, and servers that die."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.workbench.review.items import ReviewItem, order_items, suite_items, write_suite_items
from bbnli_audit.workbench.review.judgements import Judgements
from tests.browser.pages import HOSTILE
from tests.browser.review_pages import ITEMS, Open, Shared, labels, sharing, states
from tests.invented import write_quads
from tests.review_workspace import make_item, serving, write_items


@pytest.fixture
def work(tmp_path: Path) -> Path:
    write_items(tmp_path, ITEMS)
    return tmp_path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with sharing(tmp_path_factory.mktemp("shared"), "undoing", "waiting") as found:
        yield found


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
