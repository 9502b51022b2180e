"""The page for everyone: axe-core, keyboard, small screens, paper, and no script."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.access import DESKTOP, PHONE, violations
from tests.browser.conftest import Open


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(open_page: Open, size: dict[str, int], scheme: str) -> None:
    page = open_page(viewport=size, color_scheme=scheme).page
    assert violations(page) == []
    page.locator("details.subtopic > summary").first.click()
    page.locator(".matrix button").first.click()  # few rows: axe looks at each for long
    for summary in page.locator(".changes > summary").all():
        if summary.is_visible():
            summary.click()
    page.locator(".pairs td button").last.click()
    assert violations(page) == []
    page.get_by_role("button", name="Show sentences", exact=True).click()
    assert violations(page, ".pairs, .words, header") == []


@pytest.mark.parametrize("name", ["answers", "likelihood"])
def test_axe_finds_nothing_on_pages_of_language_models(open_page: Open, name: str) -> None:
    page = open_page(name).page
    page.locator("details.subtopic > summary").first.click()
    page.locator(".matrix button").first.click()
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_comparison(open_page: Open, scheme: str) -> None:
    page = open_page("comparison", color_scheme=scheme).page
    for summary in page.locator("summary").all():
        summary.click()
    assert violations(page) == []


def _press_tab_until(page: Page, selector: str, most: int = 80) -> None:
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{selector} is not reached by Tab")


def test_everything_works_from_the_keyboard(open_page: Open) -> None:
    page = open_page().page
    _press_tab_until(page, ".skip")
    assert page.locator(".skip").bounding_box() is not None
    _press_tab_until(page, "#reveal")
    page.keyboard.press("Space")
    assert page.locator("#reveal").get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")
    assert page.locator("#reveal").get_attribute("aria-pressed") == "false"
    _press_tab_until(page, ".scroll")  # tables that are wider than the screen scroll by arrow keys
    _press_tab_until(page, ".subtopic > summary")
    page.keyboard.press("Enter")
    _press_tab_until(page, ".matrix button")
    page.keyboard.press("Space")
    assert page.locator(".matrix button").first.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Space")
    _press_tab_until(page, "input[type=search]")
    _press_tab_until(page, ".sort")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.closest('th').getAttribute('aria-sort')") == "descending"
    _press_tab_until(page, ".pairs td button")
    page.keyboard.press("Enter")
    assert page.locator("tr.texts").count() == 1


@pytest.mark.parametrize("name", ["report", "hostile", "comparison"])
@pytest.mark.parametrize("width", [360, 390, 800])
def test_the_body_never_scrolls_sideways(open_page: Open, name: str, width: int) -> None:
    page = open_page(name, viewport={"width": width, "height": 800}).page
    for summary in page.locator("details.card > summary").all():
        summary.click()
    if name != "comparison":
        page.get_by_role("button", name="Show sentences", exact=True).click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "shown", "hidden"), [(1280, "wide", "narrow"), (390, "narrow", "wide")])
def test_the_drawing_fits_the_screen(open_page: Open, width: int, shown: str, hidden: str) -> None:
    page = open_page(viewport={"width": width, "height": 800}).page
    assert page.locator(f".chart.{hidden}:visible").count() == 0
    for chart in page.locator(f".chart.{shown}").all():
        assert chart.get_attribute("role") == "img"
        assert "table below" in (chart.get_attribute("aria-label") or "")
        drawing = chart.locator("svg").bounding_box()
        assert drawing is not None
        assert drawing["width"] <= width
        assert drawing["height"] > 40


def test_colours_of_charts_follow_the_scheme(open_page: Open) -> None:
    fills = []
    for scheme in ("light", "dark"):
        page = open_page(color_scheme=scheme).page
        bar = page.locator(".chart.wide path[fill='var(--pro)']").first
        fills.append(bar.evaluate("element => getComputedStyle(element).fill"))
    assert len(set(fills)) == 2
    assert "var" not in "".join(fills)


def test_paper_shows_the_sections_and_no_controls(open_page: Open) -> None:
    page = open_page(color_scheme="dark").page
    page.emulate_media(media="print")
    matrices = page.locator(".matrix")
    expect(matrices.first).to_be_visible()
    expect(matrices.last).to_be_visible()
    for control in ("#reveal", ".bar", ".controls", ".pager"):
        assert page.locator(f"{control}:visible").count() == 0
    assert "workshop" not in page.locator("body").inner_text().lower()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.emulate_media(media="screen")
    expect(matrices.first).not_to_be_visible()


def test_without_scripts_all_but_the_pair_tables_is_there(open_page: Open) -> None:
    page = open_page(java_script_enabled=False).page
    expect(page.get_by_text("Tables of pairs need JavaScript")).to_be_visible()
    page.locator("details.subtopic > summary").first.click()
    expect(page.locator(".matrix").first).to_be_visible()
    expect(page.locator(".chart.wide").first).to_be_visible()


def test_little_motion_where_it_is_not_wanted(open_page: Open) -> None:
    page = open_page(reduced_motion="reduce").page
    moving = (
        "[...document.querySelectorAll('*')].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0).length"
    )
    assert page.evaluate(moving) == 0


@pytest.mark.parametrize("width", [1200, 390])
def test_levels_are_seen_first_and_scroll_inside_their_own_table(open_page: Open, width: int) -> None:
    page = open_page(viewport={"width": width, "height": 900}).page
    table = page.get_by_role("region", name="Table of suites and domains").locator("table")
    assert [cell.inner_text() for cell in table.locator("tbody th").all()] == ["bbnli", "oceans", "planets"]
    assert "lean" in table.locator("thead th").nth(3).inner_text()
    assert table.locator(".badge.fail", has_not_text="growth").count() == 1
    # As loud as a failing subtopic: the same badge, above the subtopics.
    levels, causes = (page.locator(each).bounding_box() for each in ("#levels", "#causes"))
    assert levels is not None
    assert causes is not None
    assert levels["y"] < causes["y"]
    tallies = page.get_by_role("list", name=re.compile("by verdict"))
    assert [each.get_attribute("aria-label") for each in tallies.all()] == [
        "Suites and domains by verdict",
        "Subtopics by verdict",
        "Growth since the baseline by verdict",
    ]
    assert page.locator(".decision").first.inner_text().startswith("✕ Do not release: ")
    for cell in table.locator("tbody tr").first.locator("td:not(.none)").all():  # none is hidden to the right
        box = cell.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") == width
