"""Sentences are hidden until the reader asks, and are text whatever they hold."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.pages import HOSTILE


def _visible_text(page: Page) -> str:
    return page.locator("body").inner_text().lower()


def _open_everything(page: Page) -> None:
    for summary in page.locator("details.card > summary").all():
        summary.click()
    expect(page.locator(".pairs tbody tr").last).to_be_visible()


def test_nothing_of_a_sentence_is_shown_before_it_is_asked_for(open_page: Open) -> None:
    page = open_page().page
    _open_everything(page)
    assert "workshop" not in _visible_text(page)
    # Nor is it in the document, out of sight: only in the data.
    rest = page.evaluate(
        "() => { const copy = document.documentElement.cloneNode(true); "
        "copy.querySelector('#data').remove(); return copy.outerHTML; }"
    )
    assert "workshop" not in rest.lower()


def test_the_toggle_shows_and_hides_all_sentences_and_words(open_page: Open) -> None:
    page = open_page("words").page
    _open_everything(page)
    toggle = page.get_by_role("button", name="Show sentences", exact=True)
    assert toggle.get_attribute("aria-pressed") == "false"
    toggle.click()
    assert toggle.get_attribute("aria-pressed") == "true"
    assert "workshop number" in _visible_text(page)
    assert page.locator("tr.texts").count() == page.locator(".pairs tbody tr:not(.texts)").count()
    assert "samples with it" in page.locator(".words").first.inner_text()
    assert "nimble" in page.locator(".words[data-wording]").inner_text()
    toggle.click()
    assert "workshop" not in _visible_text(page)
    assert page.locator("tr.texts").count() == 0
    for words in page.locator(".words").all():
        assert (words.text_content() or "").endswith("hidden like the sentences")


def test_a_row_shows_its_own_sentences_and_all_probabilities(open_page: Open) -> None:
    page = open_page().page
    page.locator("details.subtopic > summary").first.click()
    button = page.get_by_role("button", name="Sentences of pair").first
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    shown = page.locator(f"#{button.get_attribute('aria-controls')}")
    assert shown.locator("dd").count() == 6
    assert page.locator("tr.texts").count() == 1
    text = shown.inner_text()
    assert text.count("entailment 0.") == text.count("neutral 0.") == text.count("contradiction 0.") == 2
    button.click()
    assert button.get_attribute("aria-expanded") == "false"
    assert page.locator("tr.texts").count() == 0


def test_hostile_texts_are_inert_and_shown_as_they_are(open_page: Open) -> None:
    page = open_page("hostile").page
    _open_everything(page)
    page.get_by_role("button", name="Show sentences", exact=True).click()
    shown = page.locator(".texts").all_text_contents()
    for text in HOSTILE:
        assert any(text in each for each in shown)
    assert page.locator("h1").inner_text() == HOSTILE[0]
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, svg script, main script").count() == 0
    page.locator("details.all input[type=search]").fill('"><img')
    assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize("name", ["hostile", "comparison"])
def test_other_pages_complain_of_nothing(open_page: Open, name: str) -> None:
    page = open_page(name).page
    for summary in page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    assert page.evaluate("window.pwned") is None
