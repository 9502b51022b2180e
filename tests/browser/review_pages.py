"""The review page of invented items in Chromium, and what its annotators have judged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Page, expect

from bbnli_audit.workbench.review.items import order_items
from bbnli_audit.workbench.review.judgements import Judgements
from bbnli_audit.workbench.review.states import State
from tests.review_workspace import make_items, serving, write_items

ITEMS = make_items(6)
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
Shared = tuple[Path, dict[str, str]]  # the folder of a review, and the address of each annotator


@dataclass
class Opened:
    """An annotator's page in its own browser context, with its requests and complaints."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    n_saved: int = 0

    def count(self, url: str, status: int) -> None:
        self.n_saved += url.endswith("api/rows") and status == 200

    def press(self, keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def expect_saved(self, progress: str) -> None:
        expect(self.page.locator("#progress-text")).to_have_text(progress)
        expect(self.page.locator("#saving-text")).to_have_text("Saved")


Open = Callable[..., Opened]


@contextmanager
def sharing(folder: Path, *names: str) -> Iterator[Shared]:
    """Serve a review with an annotator for each test that leaves the server running."""
    write_items(folder, ITEMS)
    with serving(folder, *names) as running:
        yield folder, running.addresses


def states(work: Path, annotator: str) -> dict[str, State]:
    with Judgements(work / "review.sqlite") as judgements:
        return judgements.states_of(annotator)


def labels(work: Path, annotator: str) -> list[str]:
    """What an annotator has judged, in the order in which they met the items."""
    found = states(work, annotator)
    there = [found[item.id] for item in order_items(annotator, ITEMS) if item.id in found]
    return [each.label for each in there if each.is_finished]
