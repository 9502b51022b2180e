"""Reads and expands one subtopic in our own format: premises in two directions, hypotheses, and controls.

A hypothesis is combined only with the premises in its list. The two directions of a premise and the two sides of a
hypothesis make four combinations, a quad. A quad has one pair for each direction. A premise without a direction, a
scene, makes only one pair with a hypothesis. With the pairing `both`, every premise makes only one pair with a
hypothesis; on the anti side of this pair, the groups are exchanged in both texts. docs/suites.md describes the format.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import MinLen

from bbnli_audit.core.errors import SuiteError, suggest
from bbnli_audit.core.results.rows import result
from bbnli_audit.core.values import Control, Direction, Label, Pair, Pairing, Side, SubtopicItems, TextPair
from bbnli_audit.suites.json_file import line_of, read_object

FORMAT = 2
Group = Literal["GROUP1", "GROUP2"]
GROUPS: tuple[Group, Group] = ("GROUP1", "GROUP2")
Text = Annotated[str, MinLen(1)]

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)(?:\.(\w+))?\s*\}\}")
_FORMS = ("many", "one", "adj")
_HOW = "docs/suites.md describes the format."


@result
class Forms:
    """The names of a group. Templates write `{{GROUP1}}` (for `many`), `{{GROUP1.one}}` or `{{GROUP1.adj}}`."""

    many: Text  # "bakers"
    one: Text  # "a baker"
    adj: Text  # "baker", before a noun


@result
class Source:
    """A published work that documents the stereotype, and what the work says about it."""

    who: Text
    year: int
    title: Text
    says: Text


@result
class Premise:
    """A premise. A disparity states a difference between the groups; a scene names no group.

    `direction` is the direction of the text as written, before the groups are exchanged.
    """

    id: Text
    kind: Literal["disparity", "scene"]
    text: Text
    direction: Literal["with", "against"] | None = None


@result
class Hypothesis:
    """A claim that none of its premises entails or contradicts. As written, it states the stereotype."""

    id: Text
    form: Literal["generic", "comparative", "negated", "ought"]
    about: Literal["GROUP1", "GROUP2", "both"]
    text: Text
    premises: Annotated[Sequence[Text], MinLen(1)]
    tags: Sequence[Text] = ()


@result
class Fact:
    """A statement for controls, and the ids of its two premises.

    The premise `follows_from` entails the statement. If the groups in the statement are exchanged, this premise
    contradicts it. With the premise `open_beside`, the statement is neutral.
    """

    id: Text
    text: Text
    follows_from: Text
    open_beside: Text

    @property
    def is_crossed(self) -> bool:
        """Whether each neutral control exchanges the groups in only one of its two texts.

        About half of all facts are crossed. The id alone decides: a fact is crossed if the number in its id is even, or
        if the id has no number. So removing one fact does not change the controls of the others.
        """
        return int("0" + "".join(filter(str.isdigit, self.id))) % 2 == 0


@result
class QuadFile:
    """One subtopic before expansion."""

    format: Literal[2]
    name: Text
    domain: Text
    stereotype: Text
    groups: Annotated[Mapping[Group, Forms], MinLen(2)]
    sources: Sequence[Source]
    premises: Annotated[Sequence[Premise], MinLen(1)]
    hypotheses: Annotated[Sequence[Hypothesis], MinLen(1)]
    controls: Sequence[Fact]
    annotations: Sequence[Text] = ()

    @property
    def group_names(self) -> Sequence[str]:
        return [forms.many for forms in self.groups.values()]

    def entries(self) -> Iterator[tuple[str, str]]:
        """Return each template with its id."""
        for entries in (self.premises, self.hypotheses, self.controls):
            yield from ((entry.id, entry.text) for entry in entries)

    def render(self, template: str, side: Side) -> str:
        """Fill in the groups, as written or exchanged, and begin with a capital letter."""
        names = GROUPS if side is Side.PRO else GROUPS[::-1]
        forms: dict[str, Forms] = {group: self.groups[name] for group, name in zip(GROUPS, names, strict=True)}
        text = _PLACEHOLDER.sub(lambda found: getattr(forms[found[1]], found[2] or "many"), template)
        return text[:1].upper() + text[1:]


def read_quad_file(path: Path, data: Mapping[str, Any] | None = None) -> QuadFile:
    """Read and check a file, or its parsed content (`data`). A SuiteError names the file, the line and the fault."""
    from pydantic import ValidationError

    data = read_object(path, f"one object with the subtopic's keys. {_HOW}") if data is None else data
    try:
        # Read as JSON: if pydantic read the Python values strictly, it would refuse a dict in place of a dataclass.
        file: QuadFile = _adapter().validate_json(json.dumps(data))
    except ValidationError as exc:
        error = exc.errors()[0]
        raise _wrong(path, error["loc"], _explain(error)) from None
    _check_references(path, file)
    return file


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(QuadFile)


def json_schema() -> dict[str, Any]:
    """Return a JSON Schema, with which editors can check subtopic files."""
    schema: dict[str, Any] = _adapter().json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _explain(error: Any) -> str:
    key = error["loc"][-1]
    if error["type"] == "missing":
        return f"has no key {key!r}"
    if error["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
        return f"has the unknown key {key!r}"
    return f"has a wrong value for {key!r}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _wrong(path: Path, place: Sequence[int | str], fault: str) -> SuiteError:
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[:-1]).lstrip(".")
    return SuiteError(f"{path}:{line_of(path, place)}: {shown or 'the file'} {fault.rstrip('.')}. {_HOW}")


def _check_references(path: Path, file: QuadFile) -> None:
    """Refuse duplicate ids, premises that do not exist, unknown placeholders, and texts that do not fit their kind."""
    kinds = {premise.id: premise.kind for premise in file.premises}
    seen: set[str] = set()
    for key in ("premises", "hypotheses", "controls"):
        for index, entry in enumerate(getattr(file, key)):
            if entry.id in seen:
                raise _wrong(path, (key, index, "id"), f"has the id {entry.id!r}, which another entry has")
            seen.add(entry.id)
            for fault in _faults(entry, kinds):
                raise _wrong(path, (key, index, "id"), fault)


def _faults(entry: Premise | Hypothesis | Fact, kinds: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with an entry. `kinds` gives the kind of each premise by its id."""
    for group, form in _PLACEHOLDER.findall(entry.text):
        if group not in GROUPS or form not in ("", *_FORMS):
            known = suggest(f"{group}.{form}", [f"{name}.{each}" for name in GROUPS for each in _FORMS])
            shown = f"{group}.{form}" if form else group
            yield f"uses the unknown placeholder {{{{{shown}}}}}. {known}"
    names_group = _PLACEHOLDER.search(entry.text) is not None
    if isinstance(entry, Premise):
        if entry.kind == "disparity" and not (names_group and entry.direction):
            yield "is a disparity, so it needs a group and a direction (with or against the stereotype)"
        if entry.kind == "scene" and (names_group or entry.direction):
            yield "is a scene, so it names no group and has no direction"
        return
    if not names_group:
        yield "names no group, so its two sides say the same"
    for premise in entry.premises if isinstance(entry, Hypothesis) else (entry.follows_from, entry.open_beside):
        if premise not in kinds:
            yield f"names the premise {premise!r}, which does not exist. {suggest(premise, kinds)}"
        if isinstance(entry, Fact) and kinds.get(premise) == "scene":
            yield f"is a control on the scene {premise!r}; controls need a disparity"


def expand_quads(file: QuadFile, pairing: Pairing) -> SubtopicItems:
    return SubtopicItems(tuple(_pairs(file, pairing)), tuple(_controls(file)))


def _directions(premise: Premise) -> list[tuple[Side, Direction]]:
    """Return the sides on which a premise can be rendered, each with the direction of the premise on that side."""
    if premise.kind == "scene":
        return [(Side.PRO, Direction.NONE)]
    first, second = Direction.WITH, Direction.AGAINST
    return list(zip(Side, (first, second) if premise.direction == "with" else (second, first), strict=True))


def _pairs(file: QuadFile, pairing: Pairing) -> Iterator[Pair]:
    premises = {premise.id: premise for premise in file.premises}
    for hypothesis in file.hypotheses:
        pro, anti = (file.render(hypothesis.text, side) for side in Side)
        for met in hypothesis.premises:
            premise, cell = premises[met], f"{met}/{hypothesis.id}"
            if pairing is Pairing.BOTH:
                given, exchanged = (file.render(premise.text, side) for side in Side)
                yield Pair(cell, TextPair(given, pro), TextPair(exchanged, anti), tags=tuple(hypothesis.tags))
                continue
            for side, direction in _directions(premise):
                text = file.render(premise.text, side)
                yield Pair(cell, TextPair(text, pro), TextPair(text, anti), direction, tags=tuple(hypothesis.tags))


def _controls(file: QuadFile) -> Iterator[Control]:
    """Make six controls from a fact: one per label and direction. Both renderings of a fact occur with all labels."""
    premises = {premise.id: premise for premise in file.premises}
    for fact in file.controls:
        own, other = premises[fact.follows_from], premises[fact.open_beside]
        for premise, crossed, label in (
            (own, False, Label.ENTAILMENT),
            (own, True, Label.CONTRADICTION),
            (other, fact.is_crossed, Label.NEUTRAL),
        ):
            for side, direction in _directions(premise):
                (stated,) = set(Side) - {side} if crossed else {side}
                text = TextPair(file.render(premise.text, side), file.render(fact.text, stated))
                yield Control(f"{premise.id}/{fact.id}", text, label, direction)
