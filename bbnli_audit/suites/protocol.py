"""What a suite is to the rest of the program."""

from collections.abc import Sequence
from typing import Protocol

from bbnli_audit.values import Pairing, Subtopic, SubtopicItems


class Suite(Protocol):
    """Data plus the code that turns it into pairs and controls."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def pairing(self) -> Pairing: ...

    @property
    def sha256(self) -> str:
        """Of the content, so that a result says what was measured."""

    def subtopics(self) -> Sequence[Subtopic]:
        """List the subtopics, cheaply and sorted: every xdist worker collects with it."""

    def documented(self) -> Sequence[Subtopic]:
        """List subtopics that thresholds.yaml may name although the data at hand lacks them."""

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        """Give the usable pairs and the controls of one subtopic."""
