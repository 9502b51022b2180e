"""One browser for all tests; pages are opened from files, and everything they complain about is kept."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from bbnli_audit.reports.html_page import render_comparison, render_page
from tests.browser import review_pages
from tests.browser.access import DESKTOP
from tests.browser.pages import (
    LikelihoodPredictor,
    YesNoPredictor,
    audit,
    made_hostile,
    with_a_driving_word,
    with_comparison,
)


@dataclass
class Opened:
    """A page with what it asked for and complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        message = "needs chromium, chromium-browser or google-chrome on the PATH"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each kind."""
    folder = tmp_path_factory.mktemp("reports")
    result, pairs = audit(folder / "suite")
    result = with_comparison(result)
    pages = {
        "report": render_page(result, pairs),
        "hostile": render_page(*made_hostile(result, pairs)),
        "words": render_page(replace(result, required=()), with_a_driving_word(pairs)),
        "comparison": render_comparison(result),
        "answers": render_page(*audit(folder / "answers", model=YesNoPredictor)),
        "likelihood": render_page(*audit(folder / "likelihood", model=LikelihoodPredictor)),
    }
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def open_page(browser: Browser, reports: Path) -> Iterator[Open]:
    """Open a page by name, and fail at the end if it complained or asked for anything but itself."""
    opened: list[Opened] = []

    def open_one(name: str = "report", fragment: str = "", **context: Any) -> Opened:
        page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **context})
        page.set_default_timeout(5000)
        page.set_default_navigation_timeout(30_000)  # a busy machine may take long to start the page's process
        found = Opened(page)
        opened.append(found)
        page.on("request", lambda request: found.requests.append(request.url))
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
        page.goto((reports / f"{name}.html").as_uri() + fragment)
        return found

    yield open_one
    for found in opened:
        own = found.page.url.partition("#")[0]
        found.page.close()
        assert found.complaints == []
        assert {url.partition("#")[0] for url in found.requests} == {own}


@pytest.fixture
def open_review(browser: Browser) -> Iterator[review_pages.Open]:
    """Open an address in a new context; fail at the end if the page complained or contacted another server."""
    opened: list[review_pages.Opened] = []

    def open_one(address: str, *, begins: bool = True, **context: Any) -> review_pages.Opened:
        page = browser.new_context(**{"viewport": DESKTOP, **context}).new_page()
        page.set_default_timeout(8000)
        found = review_pages.Opened(page)
        opened.append(found)
        page.on("request", lambda request: found.requests.append(request.url))
        page.on("response", lambda response: found.count(response.url, response.status))
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
        assert [each for each in found.complaints if not each.endswith(review_pages.NO_ANSWER)] == []
        assert all(url.startswith(own) for url in found.requests)
