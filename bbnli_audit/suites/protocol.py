"""The interface of a suite, and the checks that an object follows it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from bbnli_audit.core.errors import SuiteError
from bbnli_audit.core.printable import printable
from bbnli_audit.core.reading import HOLDS_SURROGATE
from bbnli_audit.core.values import Pairing, Subtopic, SubtopicItems


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
        """The hash of the content. It identifies the data that a result was measured on."""

    def subtopics(self) -> Sequence[Subtopic]:
        """List the subtopics, sorted. It must be fast: every xdist worker calls it to collect tests."""

    def documented(self) -> Sequence[Subtopic]:
        """List the subtopics that thresholds.yaml may name even if the data at hand lacks them."""

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        """Return the pairs and the controls of one subtopic."""


def families_of(suite: Suite) -> tuple[str, ...]:
    """Return the names of the extra families of measures that a suite has."""
    return tuple(getattr(suite, "families", ()))


def audits_of(suite: Suite) -> Mapping[str, float]:
    """Return the suite's own measures that a run must hold to a limit, each with a limit to start from."""
    return dict(getattr(suite, "audits", {}))


def check_suite(suite: object) -> None:
    """Refuse an object that is not a suite, before anything is audited with it."""
    shown = f"The suite {getattr(suite, 'name', suite)!r}"
    if isinstance(suite, type):
        raise SuiteError(f"{shown} is a class; give an object of it.")
    for attribute, kind in (("name", str), ("version", str), ("sha256", str), ("pairing", Pairing)):
        value = getattr(suite, attribute, None)
        if not isinstance(value, kind):
            raise SuiteError(f"{shown} has {attribute} {value!r}; expected a {kind.__name__} (bbnli_audit.Suite).")
    for method in ("subtopics", "documented", "items"):
        if not callable(getattr(suite, method, None)):
            raise SuiteError(f"{shown} has no method {method}() (bbnli_audit.Suite).")
    for subtopic in suite.subtopics():  # type: ignore[attr-defined]  # just checked
        if not isinstance(subtopic, Subtopic) or subtopic.suite != suite.name:  # type: ignore[attr-defined]
            expected = f"a Subtopic with suite={suite.name!r}"  # type: ignore[attr-defined]
            raise SuiteError(f"{shown} lists {subtopic!r}; expected {expected}.")
        if printable(subtopic.path) != subtopic.path or subtopic.path.startswith(":"):
            fault = "names have no line breaks or other characters that cannot be shown, and do not begin with ':'"
            raise SuiteError(f"{shown} lists {subtopic.path!r}; {fault}. Rename it.")


def get_items(suite: Suite, subtopic: Subtopic) -> SubtopicItems:
    """Return the items of a subtopic. Refuse an object of another type, and texts with lone surrogates."""
    items = suite.items(subtopic)
    if not isinstance(items, SubtopicItems):
        given = f"a {type(items).__name__} for {subtopic.path}"
        raise SuiteError(f"The suite {suite.name!r} gave {given}; expected SubtopicItems.")
    try:
        "".join(_texts(items)).encode()
    except UnicodeEncodeError as exc:
        fault = f"a text of {subtopic.path} {HOLDS_SURROGATE}"
        raise SuiteError(f"The suite {suite.name!r}: {fault}. Correct it.") from exc
    return items


def _texts(items: SubtopicItems) -> Iterator[str]:
    for pair in items.pairs:
        yield from (pair.cluster, *pair.pro, *pair.anti)
        if pair.reference is not None:
            yield from (*pair.reference.pro, *pair.reference.anti)
    for control in items.controls:
        yield from (control.cluster, *control.text)
    for text in items.open_texts:
        yield from text
