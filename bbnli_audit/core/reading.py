"""Reads text, JSON and YAML that others wrote, from files and from connections.

Reading a file raises no other error than the caller's own, whatever the file is: a folder, a pipe, a broken link, bytes
that are not UTF-8, or JSON nested a thousand times. The message names the file and, if it is known, the line.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import AuditError

if TYPE_CHECKING:
    from yaml.nodes import Node

MOST_BYTES = 512 * 2**20  # a result of all suites takes a few MiB
ANY_SIZE = 2**63  # no cap: for tables and weights
MOST_YAML_BYTES = 2**20
MOST_MESSAGE = 4 * 2**20  # characters of JSON from a connection; an answer has a few hundred
MOST_NODES = 10_000  # nodes of a YAML file; the nodes behind an alias count once for each use
DEEPEST = 100  # levels of lists and objects inside each other, in JSON and YAML

_TOO_DEEP = f"is nested too deeply: more than {DEEPEST} levels of lists and objects"
HOLDS_SURROGATE = "holds a lone surrogate such as \\ud800: half a character, which UTF-8 cannot encode"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_BE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. Faults are raised as `error`. Messages call the file `name`, or its path if `name` is empty."""

    path: Path
    error: type[AuditError]
    name: str = ""
    if_missing: str = "there is no such file."
    advice: str = ""  # what to do about a faulty file

    def wrong(self, fault: str, line: int | None = None, advice: str | None = None) -> AuditError:
        place = f"{self.name or self.path}{'' if line is None else f':{line}'}"
        return self.error(f"{place}: {fault}. {self.advice if advice is None else advice}".rstrip())

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turn an error of the operating system into `error`, with a message that names the file."""
        try:
            yield
        except FileNotFoundError as exc:
            raise self.error(f"{self.name or self.path}: {self.if_missing}") from exc
        except OSError as exc:
            raise self.wrong(f"cannot be read: {exc.strerror or exc}", advice="") from exc
        except ValueError as exc:  # a path with a null byte
            raise self.wrong(f"cannot be read: {exc}", advice="") from exc

    def check(self, most: int = MOST_BYTES) -> None:
        """Refuse a path to anything but a regular file (a pipe might never end), and a file that is too large."""
        with self.telling():
            state = self.path.stat()
        if not S_ISREG(state.st_mode):
            kind = "a folder" if S_ISDIR(state.st_mode) else "a pipe, a socket or a device"
            raise self.wrong(f"cannot be read: it is {kind}, not a file", advice="")
        if state.st_size > most:
            raise self.wrong(f"has {state.st_size:,} bytes; at most {most:,} are read", advice="Is it the right file?")

    def read_bytes(self, most: int = MOST_BYTES) -> bytes:
        self.check(most)
        with self.telling():
            return self.path.read_bytes()

    def read_text(self, most: int = MOST_BYTES, encoding: str = "utf-8") -> str:
        """Read a text and keep its line endings as they are."""
        data = self.read_bytes(most)
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as exc:
            line = data.count(b"\n", 0, exc.start) + 1
            raise self.wrong("is not UTF-8", line, "Save the file as UTF-8.") from exc

    def read_json(self, encoding: str = "utf-8") -> Any:
        return self.parse_json(self.read_text(encoding=encoding))

    def parse_json(self, text: str) -> Any:
        try:
            return parse_json(text)
        except BadJsonError as exc:
            raise self.wrong(exc.fault, exc.line, exc.advice) from exc

    def read_yaml(self) -> "Node | None":
        """Read YAML as nodes, which know their lines. Return None for an empty file."""
        return self.parse_yaml(self.read_text(MOST_YAML_BYTES))

    def parse_yaml(self, text: str) -> "Node | None":
        import yaml

        if len(text) > MOST_YAML_BYTES:
            raise self.wrong(f"has {len(text):,} characters; at most {MOST_YAML_BYTES:,} are read")
        self._count_events(text)
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as exc:
            raise self._wrong_yaml(exc) from exc
        except yaml.YAMLError as exc:
            reason = getattr(exc, "reason", None) or "it cannot be read"
            raise self.wrong(f"is not valid YAML: {reason}") from exc
        if node is not None:
            self._count_nodes(node)
        return node

    def _count_events(self, text: str) -> None:
        """Refuse a large or deeply nested file before its nodes are built: building them is recursive and slow."""
        import yaml

        n_nodes = depth = 0
        with suppress(yaml.YAMLError):  # `parse_yaml` reports faulty YAML when it builds the nodes
            for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                n_nodes += isinstance(event, yaml.NodeEvent)
                self._check_size(n_nodes, depth, 1 if event.start_mark is None else event.start_mark.line + 1)

    def _wrong_yaml(self, exc: Any) -> AuditError:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        first = exc.context_mark.line + 1 if exc.context_mark else line
        if first < line:
            where = f" (in the block that starts on line {first})"
            return self.wrong(f"is not valid YAML: {exc.problem}{where}", line, f"Look at lines {first} to {line}.")
        return self.wrong(f"is not valid YAML: {exc.problem}", line, f"Fix line {line}.")

    def _count_nodes(self, root: "Node") -> None:
        """Refuse a file whose aliases expand to too many nodes, or in which an alias contains itself."""
        waiting, n_nodes = [(root, 1)], 0
        while waiting:
            node, depth = waiting.pop()
            n_nodes += 1
            self._check_size(n_nodes, depth, node.start_mark.line + 1)
            for child in node.value if isinstance(node.value, list) else ():
                waiting.extend((each, depth + 1) for each in (child if isinstance(child, tuple) else (child,)))

    def _check_size(self, n_nodes: int, depth: int, line: int) -> None:
        if depth > DEEPEST:
            raise self.wrong(_TOO_DEEP, line)
        if n_nodes > MOST_NODES:
            fault = f"has more than {MOST_NODES:,} keys and values, counting each use of an alias (*name) in full"
            raise self.wrong(fault, advice="Write less, and do not nest aliases.")


class BadJsonError(ValueError):
    """A text is not valid JSON, or is JSON that we do not accept."""

    def __init__(self, fault: str, line: int | None = None, advice: str | None = None) -> None:
        super().__init__(fault)
        self.fault, self.line, self.advice = fault, line, advice


def parse_message(text: str) -> dict[str, Any]:
    """Read the JSON object that a server or a page sent. It may hold lone surrogates: the caller deals with them."""
    if len(text) > MOST_MESSAGE:
        raise BadJsonError(f"has {len(text):,} characters; at most {MOST_MESSAGE:,} are read")
    data = parse_json(text, may_hold_surrogates=True)
    if not isinstance(data, dict):
        raise BadJsonError("is JSON that is not an object")
    return data


def parse_json(text: str, *, may_hold_surrogates: bool = False) -> Any:
    """Read JSON. Refuse duplicate keys, deep nesting and, by default, lone surrogates, which UTF-8 cannot encode."""
    try:
        data = json.loads(text, object_pairs_hook=_refuse_duplicates)
    except json.JSONDecodeError as exc:
        raise BadJsonError(f"is not valid JSON: {exc.msg} (column {exc.colno})", exc.lineno) from exc
    except RecursionError as exc:
        raise BadJsonError(_TOO_DEEP) from exc
    except BadJsonError:
        raise
    except ValueError as exc:
        raise BadJsonError("has a whole number with thousands of digits") from exc
    if text.count("[") + text.count("{") > DEEPEST and _depth(data) > DEEPEST:
        raise BadJsonError(_TOO_DEEP)
    if not may_hold_surrogates and _MAY_BE_SURROGATE.search(text) and has_surrogate(data):
        raise BadJsonError(HOLDS_SURROGATE)
    return data


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise BadJsonError(f"has the key {key!r:.80} twice", advice="Remove one.")
    return data


def _depth(data: Any) -> int:
    """Return how deeply lists and objects are nested, without recursion."""
    deepest, level = 0, [data]
    while level := [each for each in level if isinstance(each, list | dict)]:
        deepest += 1
        level = [child for each in level for child in (each.values() if isinstance(each, dict) else each)]
    return deepest


def has_surrogate(data: Any) -> bool:
    """Whether any key or text in parsed JSON holds a lone surrogate."""
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and _SURROGATE.search(value):
            return True
        if isinstance(value, dict):
            waiting.extend((*value, *value.values()))
        elif isinstance(value, list):
            waiting.extend(value)
    return False
