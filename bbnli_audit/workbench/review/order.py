"""In which order an annotator meets the items.

Subtopics stay together, since judging one sentence after another of the same kind is quicker and steadier; which
subtopic comes first, and the order within it, differ from annotator to annotator, so that tiredness and habit do not
fall on the same items for all. Both come from hashes: the order is the same after a restart, and new items find their
places among the others without moving them.
"""

from collections.abc import Iterable
from hashlib import sha256

from bbnli_audit.workbench.review.items import ReviewItem


def order_items(annotator: str, items: Iterable[ReviewItem]) -> list[ReviewItem]:
    return sorted(items, key=lambda item: (_draw(annotator, item.path), item.path, _draw(annotator, item.id)))


def _draw(annotator: str, name: str) -> bytes:
    return sha256(f"{annotator}\0{name}".encode()).digest()
