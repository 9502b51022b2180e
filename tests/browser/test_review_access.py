"""The review page is for everyone: hidden texts, fingers, buttons in place of letter keys, and screen readers."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.access import DESKTOP, PHONE, violations
from tests.browser.review_pages import Open, Shared, labels, sharing

COMBINATIONS = {f"{size}-{scheme}": (size, scheme) for size in ("desktop", "phone") for scheme in ("light", "dark")}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with sharing(tmp_path_factory.mktemp("shared"), "hiding", "touching", "switching", *COMBINATIONS) as found:
        yield found


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
