"""The items of the suites of a run. Each subtopic is expanded once, whoever asks for it."""

from collections.abc import Sequence
from functools import cached_property

from bbnli_audit.core.values import Control, Pair, Subtopic, SubtopicItems
from bbnli_audit.suites.controls import find_controls
from bbnli_audit.suites.protocol import Suite, families_of, get_items


class Items:
    """What there is to audit: suites, their subtopics, pairs and controls."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self.suites = suites
        self._by_name = {suite.name: suite for suite in suites}
        self._expanded: dict[Subtopic, SubtopicItems] = {}

    @cached_property
    def subtopics(self) -> dict[str, Subtopic]:
        return {subtopic.path: subtopic for suite in self.suites for subtopic in suite.subtopics()}

    def of(self, subtopic: Subtopic) -> SubtopicItems:
        if subtopic not in self._expanded:
            self._expanded[subtopic] = get_items(self._by_name[subtopic.suite], subtopic)
        return self._expanded[subtopic]

    def pairs(self, subtopic: Subtopic) -> tuple[Pair, ...]:
        return self.of(subtopic).usable

    @cached_property
    def controls(self) -> list[Control]:
        """The controls of all subtopics, so that a verdict does not depend on which tests were selected."""
        return find_controls(self.suites, lambda _, subtopic: self.of(subtopic))

    def families(self, suites: Sequence[str]) -> list[str]:
        """Return the families of measures that all these suites have."""
        first, *others = (families_of(self._by_name[name]) for name in sorted(suites))
        return [family for family in first if all(family in other for other in others)]
