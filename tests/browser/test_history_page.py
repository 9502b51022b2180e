"""history.html in a browser: eight results of one model, two models side by side, and hostile names."""

from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from bbnli_audit.core.results.release import Release
from bbnli_audit.reports.history.files import FILES
from bbnli_audit.reports.history.page import render_history
from bbnli_audit.reports.history.releases import make_history
from tests.browser.access import DESKTOP, PHONE, violations
from tests.browser.conftest import Open
from tests.browser.pages import HOSTILE
from tests.history_results import history, history_of_two_models, of_model, results


@pytest.fixture(scope="module", autouse=True)
def pages(reports: Path) -> None:
    """Write the pages of this module beside the others."""
    hostile = [
        (Path(f"{n}.json"), of_model(result, HOSTILE[0], release=Release(HOSTILE[n + 1], HOSTILE[1], f"{n}")))
        for n, result in enumerate(results()[:3])
    ]
    suites = tuple(replace(suite, version=HOSTILE[1], sha256="f" * 64) for suite in hostile[2][1].suites)
    hostile[2] = hostile[2][0], replace(hostile[2][1], suites=suites)
    made = {"history": history(), "models": history_of_two_models(), "hostile-history": make_history(hostile)}
    for name, each in made.items():
        (reports / f"{name}.html").write_text(render_history(each), encoding="utf-8")
    (reports / "badge.html").write_text(
        f"<!DOCTYPE html><html lang=en><title>Badge</title><main><h1>Badge</h1>{FILES['badge.svg'](history())}</main>",
        encoding="utf-8",
    )


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_axe_finds_nothing(open_page: Open, size: dict[str, int], scheme: str) -> None:
    page = open_page("history", viewport=size, color_scheme=scheme).page
    page.locator("details.subtopic > summary").first.click()
    page.locator("details.changes > summary").first.click()
    assert violations(page) == []


def test_axe_finds_nothing_beside_two_models_and_in_the_badge(open_page: Open) -> None:
    page = open_page("models").page
    page.locator("details.changes > summary").first.click()
    assert violations(page) == []
    assert violations(open_page("badge").page) == []


@pytest.mark.parametrize(
    ("name", "width"), [("history", 360), ("history", 800), ("models", 360), ("hostile-history", 360)]
)
def test_the_body_never_scrolls_sideways(open_page: Open, name: str, width: int) -> None:
    page = open_page(name, viewport={"width": width, "height": 800}).page
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [1280, 390])
def test_drawings_fit_the_screen_and_can_be_read(open_page: Open, width: int) -> None:
    page = open_page("history", viewport={"width": width, "height": 800}).page
    plots = page.locator("section.card .plot svg")
    assert plots.count() == 10  # the measures of the suite
    for plot in (plots.first, plots.last):
        box = plot.bounding_box()
        assert box is not None
        assert 250 <= box["width"] <= width  # letters of 11 at a width of 300
        assert box["height"] > 100
        assert "table below" in (plot.get_attribute("aria-label") or "")
    first = page.locator(".plot").first
    expect(first.locator("figcaption")).to_contain_text("lean")
    expect(first.locator(".mark.fail")).to_have_count(1)
    expect(
        page.get_by_role("region", name="Measures of bbnli by release, invented-nli").locator("tbody tr")
    ).to_have_count(10)


def test_colours_of_marks_follow_the_scheme(open_page: Open) -> None:
    marks = (".mark.fail", ".mark.pass", ".hole")
    strokes = []
    for scheme in ("light", "dark"):
        page = open_page("history", color_scheme=scheme).page
        found = [page.locator(mark).first.evaluate("element => getComputedStyle(element).stroke") for mark in marks]
        assert "none" not in found
        strokes.append(found)
    assert all(light != dark for light, dark in zip(*strokes, strict=True))


def test_the_newest_decision_is_seen_first_and_each_release_has_one(open_page: Open) -> None:
    page = open_page("history", viewport=PHONE).page
    badge = page.locator(".verdict .badge")
    expect(badge).to_have_text("✕ Do not release")
    box = badge.bounding_box()
    assert box is not None
    assert box["y"] < PHONE["height"] / 2
    rows = page.get_by_role("region", name="Releases and their decisions").locator("tbody tr")
    assert [row.locator("th").inner_text() for row in rows.all()] == [f"r{n}" for n in range(1, 9)]
    decisions = rows.first.locator(".badge").bounding_box()
    assert decisions is not None
    assert decisions["x"] + decisions["width"] < PHONE["width"]  # without scrolling


def test_sections_open_from_the_keyboard(open_page: Open) -> None:
    page = open_page("history").page
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('details.subtopic > summary')"):
            break
    page.keyboard.press("Enter")
    expect(page.locator("details.subtopic[open] .plot").first).to_be_visible()


def test_hostile_names_are_text(open_page: Open) -> None:
    page = open_page("hostile-history").page
    for summary in page.locator("summary").all():
        summary.click()
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, script").count() == 0
    expect(page.locator("h1")).to_have_text(HOSTILE[0])
    assert "{{7*7}}" in page.locator("body").inner_text()


def test_paper_shows_the_drawings_and_no_bar(open_page: Open) -> None:
    page = open_page("history", color_scheme="dark").page
    page.emulate_media(media="print")
    expect(page.locator("details.subtopic .plot").last).to_be_visible()
    assert page.locator(".bar:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
