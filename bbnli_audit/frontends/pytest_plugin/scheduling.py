"""Keeps the tests of one subtopic on one xdist worker. Imported only when xdist asks for a scheduler."""

from collections.abc import Iterable
from typing import Any

from xdist.scheduler import LoadScopeScheduling


class SubtopicScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Groups the audits of each subtopic. A test that is about no subtopic is a group of its own."""

    def __init__(self, config: Any, log: Any, paths: Iterable[str]) -> None:
        super().__init__(config, log)
        self._paths = sorted(paths, key=len, reverse=True)  # longest first: one path may begin with another

    def _split_scope(self, nodeid: str) -> str:
        parameters = nodeid.partition("[")[2]
        return next((path for path in self._paths if path in parameters), nodeid)
