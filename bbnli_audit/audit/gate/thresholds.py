"""Reads and checks thresholds.yaml, and keeps the line of each limit."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.audit.gate.thresholds_schema import Limits, ThresholdsFile, known_keys, thresholds_model
from bbnli_audit.audit.gate.waivers import ActiveWaiver
from bbnli_audit.core.errors import ThresholdsError, suggest
from bbnli_audit.core.reading import MOST_YAML_BYTES, Source
from bbnli_audit.core.values import Subtopic, level_of, levels_above
from bbnli_audit.measures.registry import find_limited, limit_key, limited_measures

if TYPE_CHECKING:
    import yaml
    from pydantic_core import ErrorDetails

Key = tuple[str | int, ...]
DEEPEST = 5  # levels of keys, as in suites / bbnli / subtopics / NAME / max_pro


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, and the line where it is written."""

    measure: str
    value: float
    source: str
    allow_no_data: bool = False


class Thresholds:
    """A checked threshold file."""

    def __init__(self, file: ThresholdsFile, name: str, lines: Mapping[Key, int]) -> None:
        self.file = file
        self.name = name
        self._lines = lines

    def limit_for(self, place: Subtopic | str, measure: str) -> Limit | None:
        """Find the limit of a measure. Return None if no limit is set.

        A limit of the subtopic itself comes first, then one of its domain, then one of its suite, then one in the
        `defaults` of the file. If `place` is the path of a domain or a suite, only limits under `levels` count.
        """
        key = str(find_limited(measure).limit)
        scopes = list(self._level(place) if isinstance(place, str) else self._scopes(place))
        allow_no_data = next((limits.allow_no_data for limits, _ in scopes if limits.allow_no_data is not None), False)
        for limits, where in scopes:
            value = getattr(limits, key, None)
            if value is not None:
                return Limit(measure, value, self.source(*where, key), allow_no_data)
        return None

    def waiver_for(self, place: Subtopic | str, measure: str) -> ActiveWaiver | None:
        """Find the waiver for the limit of a measure. Return None if there is none."""
        names = [place] if isinstance(place, str) else [f"{place.suite}/{name}" for name in local_names(place)]
        found = (waiver for waiver in self.waivers() if not waiver.is_for_growth)
        return next((waiver for waiver in found if waiver.subtopic in names and waiver.measure == measure), None)

    def growth_waivers(self, known: Iterable[Subtopic] = ()) -> dict[tuple[str, str], ActiveWaiver]:
        """Return the waivers for growth, by path and measure.

        `known` are subtopics that a waiver may call by another name.
        """
        paths = {f"{each.suite}/{name}": each.path for each in known for name in local_names(each)}
        found = [waiver for waiver in self.waivers() if waiver.is_for_growth]
        return {(paths.get(waiver.subtopic, waiver.subtopic), waiver.measure): waiver for waiver in found}

    def waivers(self) -> list[ActiveWaiver]:
        return [
            ActiveWaiver.of(waiver, self.source("waivers", index)) for index, waiver in enumerate(self.file.waivers)
        ]

    def source(self, *key: str | int) -> str:
        """Return file:line of a key, for messages and annotations."""
        return f"{self.name}:{self._lines[key]}"

    def source_of(self, *key: str | int) -> str:
        """Return file:line of a key, or of its block if the key is missing."""
        return self.source(*(key if key in self._lines else key[:-1]))

    def check_names(self, known: Iterable[Subtopic], other_suites: Collection[str] = ()) -> None:
        """Refuse names of suites, domains and subtopics that do not exist: a typo would silently lift a limit.

        `known` are the subtopics of this run. `other_suites` are suites that exist but are not audited now.
        """
        suites: dict[str, list[Subtopic]] = {}
        for subtopic in known:
            suites.setdefault(subtopic.suite, []).append(subtopic)
        for suite, limits in self.file.suites.items():
            if suite not in suites and suite in other_suites:
                continue  # the names in its block are checked when the suite is audited
            if suite not in suites:
                raise self._unknown(("suites", suite), f"there is no suite {suite!r}.", suite, suites)
            domains = {subtopic.domain for subtopic in suites[suite]}
            for domain in limits.domains:
                if domain not in domains:
                    key = ("suites", suite, "domains", domain)
                    raise self._unknown(key, f"suite {suite!r} has no domain {domain!r}.", domain, domains)
            names = {name: subtopic.path for subtopic in suites[suite] for name in local_names(subtopic)}
            written: dict[str, str] = {}
            for name in limits.subtopics:
                key = ("suites", suite, "subtopics", name)
                if name not in names:
                    raise self._unknown(key, f"suite {suite!r} has no subtopic {name!r}.", name, names)
                if names[name] in written:
                    other = f"another name of {written[names[name]]!r}, which has limits already"
                    raise ThresholdsError(f"{self.source(*key)}: {name!r} is {other}. Remove one.")
                written[names[name]] = name
        by_name = {f"{s.suite}/{name}": s for members in suites.values() for s in members for name in local_names(s)}
        self._check_waivers(set(other_suites) - set(suites), by_name)

    def _check_waivers(self, other_suites: Collection[str], subtopics: Mapping[str, Subtopic]) -> None:
        seen: dict[tuple[str, str, bool], str] = {}
        for index, waiver in enumerate(self.waivers()):
            if waiver.subtopic.partition("/")[0] in other_suites:
                continue
            levels = {level for subtopic in subtopics.values() for level in levels_above(subtopic.path)}
            if waiver.subtopic not in subtopics and waiver.subtopic not in levels:
                key = ("waivers", index, "subtopic")
                known = {*subtopics, *levels}
                raise self._unknown(key, f"there is no subtopic {waiver.subtopic!r}.", waiver.subtopic, known)
            place = subtopics.get(waiver.subtopic, waiver.subtopic)
            path = place if isinstance(place, str) else place.path
            first = seen.setdefault((path, waiver.measure, waiver.is_for_growth), waiver.source)
            if first != waiver.source:
                told = f"{path} {find_limited(waiver.measure).short} has a waiver already ({first}). Remove one."
                raise ThresholdsError(f"{waiver.source}: {told}")
            if waiver.is_for_growth:
                continue
            if self.limit_for(place, waiver.measure) is None:
                told = f"{find_limited(waiver.measure).short} of {path} has no limit, so there is nothing to waive."
                raise ThresholdsError(f"{waiver.source}: {told} Remove the waiver, or write the limit.")

    def _level(self, path: str) -> Iterable[tuple[Limits, Key]]:
        level = level_of(path)
        yield getattr(self.file.levels, level), ("levels", level)

    def _scopes(self, subtopic: Subtopic) -> Iterable[tuple[Limits, Key]]:
        suite = self.file.suites.get(subtopic.suite)
        if suite is not None:
            where: Key = ("suites", subtopic.suite)
            for name in local_names(subtopic):
                if name in suite.subtopics:
                    yield suite.subtopics[name], (*where, "subtopics", name)
            if subtopic.domain in suite.domains:
                yield suite.domains[subtopic.domain], (*where, "domains", subtopic.domain)
            yield suite.defaults, (*where, "defaults")
        yield self.file.defaults, ("defaults",)

    def _unknown(self, key: Key, problem: str, wrong: str, known: Iterable[str]) -> ThresholdsError:
        return ThresholdsError(f"{self.source(*key)}: {problem}\n{suggest(wrong, known)}")


def name_below(path: Path, folder: Path) -> str:
    """Return the path of a file relative to `folder`, or the path as given if the file is not inside it."""
    full = Path(os.path.normpath(path.absolute()))
    return full.relative_to(folder).as_posix() if full.is_relative_to(folder) else str(path)


def read_thresholds(path: Path | str, name: str | None = None) -> Thresholds:
    """Read and check a threshold file. Error messages call it `name`, or show `path` if there is no name."""
    name = name or str(path)
    return parse_thresholds(read_thresholds_text(path, name), name)


def read_thresholds_text(path: Path | str, name: str) -> str:
    """Read the text of a threshold file; its line endings stay as they are. `name` is for messages."""
    told = "there is no such file, and there are no hidden limits: an audit needs its limits written down"
    advice = "Make one (docs/thresholds.md), or name another with --bbnli-thresholds=FILE."
    source = Source(Path(path), ThresholdsError, name, if_missing=f"{told}.\n{advice}")
    return source.read_text(MOST_YAML_BYTES)


def parse_thresholds(text: str, name: str) -> Thresholds:
    """Check the text of a threshold file; `name` is for messages."""
    from pydantic import ValidationError

    node = Source(Path(name), ThresholdsError, name).parse_yaml(text)
    if node is None:
        raise ThresholdsError(f"{name}: is empty. It must hold version, competence and defaults (docs/thresholds.md).")
    lines: dict[Key, int] = {}
    data = _build(node, name, lines, ())
    if not isinstance(data, dict):
        raise ThresholdsError(f"{name}:1: holds no keys. It must hold version, competence and defaults.")
    if "version" in data and type(data["version"]) is not int:
        told = f"version is {data['version']!r}; it must be the whole number 1, without quotes"
        raise ThresholdsError(f"{name}:{lines['version',]}: {told}.")
    try:
        file = thresholds_model().model_validate(data)
    except ValidationError as exc:
        raise ThresholdsError(_explain(exc.errors()[0], name, lines)) from None
    return Thresholds(file, name, lines)


def _build(node: "yaml.Node", name: str, lines: dict[Key, int], key: Key) -> Any:
    """Turn YAML nodes into plain values, record the line of each key, and refuse duplicate keys."""
    import yaml

    lines.setdefault(key, node.start_mark.line + 1)
    if len(key) > DEEPEST:
        told = f"is nested too deeply: a threshold file has at most {DEEPEST} levels"
        raise ThresholdsError(f"{name}:{lines[key]}: {told} (an alias that contains itself also gives this error).")
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise ThresholdsError(f"{name}:{line}: a key must be a single word.")
            child = limit_key(str(key_node.value))
            if child in mapping:
                first = f"first on line {lines[(*key, child)]}"
                raise ThresholdsError(f"{name}:{line}: {child!r} is written twice ({first}). Remove one.")
            lines[(*key, child)] = line
            mapping[child] = _build(value_node, name, lines, (*key, child))
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_build(child_node, name, lines, (*key, index)) for index, child_node in enumerate(node.value)]
    try:
        value = yaml.SafeLoader("").construct_object(node)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, yaml.YAMLError) as exc:
        advice = "Check it (is it a real date?), and remove a YAML tag such as !!int if there is one."
        raise ThresholdsError(f"{name}:{lines[key]}: {node.value!r:.120} is not a valid value. {advice}") from exc
    if value is None:
        what = key[-1] if key else "the file"
        raise ThresholdsError(f"{name}:{lines[key]}: {what} has no value. Write one, or remove it.")
    return value


def _explain(error: "ErrorDetails", name: str, lines: Mapping[Key, int]) -> str:
    """Return the message for one validation error, with its line."""
    location: Key = error["loc"]
    here = location
    while here not in lines:
        here = here[:-1]
    where, field, value = f"{name}:{lines[here]}", str(location[-1] if location else "the file"), error["input"]
    if error["type"] == "extra_forbidden":
        return f"{where}: unknown key {field!r}.\n{suggest(field, known_keys(location[:-1]))}"
    if error["type"] == "missing":
        inside = repr(".".join(map(str, location[:-1]))) if location[:-1] else "the file"
        return f"{where}: {inside} has no key {field!r}. {_IF_MISSING.get(field, 'Add it (docs/thresholds.md).')}"
    if field == "confidence":
        return f"{where}: confidence is {value!r:.120}; it must be a number from 0.5 up to, but not including, 1."
    if error["type"] in _OTHER_WORDS:
        return f"{where}: {field} is {value!r:.120}; {_OTHER_WORDS[error['type']]}."
    even = next((each.even for each in limited_measures() if each.limit == field), 0.0)
    if even:
        told = f"it must be from {even:g} to 1: {even:g} means no preference, and the limit holds on both sides"
        return f"{where}: {field} is {value!r:.120}; {told}."
    if field.startswith(("max_", "min_")):
        return f"{where}: {field} is {value!r:.120}; it must be a number from 0 to 1 (0.07 stands for 7 %)."
    reason = error["msg"].removeprefix("Value error, ")
    return f"{where}: {field} is {value!r:.120}; {reason[0].lower()}{reason[1:]}."


_OTHER_WORDS = {
    "model_type": "it must be a block of keys",
    "model_attributes_type": "it must be a block of keys",
    "dict_type": "it must be a block of keys",
    "list_type": "it must be a list",
    "date_type": "it must be a date such as 2027-01-31",
    "string_pattern_mismatch": "it must be a text that is not empty",
    "string_type": "it must be a text",
    "bool_type": "it must be true or false",
}


_IF_MISSING = {
    "reason": "Say why these limits differ.",
    "competence": "Add: competence: {min_control_accuracy: 0.70, min_recall: 0.50}",
    "defaults": "Add the limits that hold where no other is written; there are no hidden ones.",
    "version": "Add: version: 1",
}


def local_names(subtopic: Subtopic) -> list[str]:
    """Return all names of a subtopic within its suite: its own name, then its aliases."""
    return [subtopic.local_path, *(f"{subtopic.domain}/{alias}" for alias in subtopic.aliases)]
