"""Reads the JSON files of suites. Messages name the file and the key, and never quote a sentence."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import SuiteError, suggest
from bbnli_audit.core.reading import Source
from bbnli_audit.core.tables import json_type, show_text

TEXT = "a text that is not empty"


def read_object(path: Path, expected: str) -> dict[str, Any]:
    """Read a file that holds one JSON object. For messages, `expected` says what the object should be."""
    data = Source(path, SuiteError, advice="Fix the file, or fetch it again.").read_json()
    if not isinstance(data, dict):
        raise SuiteError(f"{path}: holds a {json_type(data)}; expected {expected}")
    return data


def line_of(path: Path, place: Sequence[int | str]) -> int:
    """Return the line of a key in a file. If the key is missing, return the line of its nearest parent."""
    import yaml

    try:  # a YAML reader knows lines, and reads JSON except for some escapes
        node = yaml.compose(Source(path, SuiteError).read_text(), Loader=yaml.CSafeLoader)
    except yaml.YAMLError:
        return 1
    line = 1
    for part in place:
        if isinstance(node, yaml.MappingNode):
            found = [(key.start_mark.line, value) for key, value in node.value if key.value == part]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            found = [(node.value[part].start_mark.line, node.value[part])]
        else:
            found = []
        if not found:
            break
        line, node = found[0][0] + 1, found[0][1]
    return line


@dataclass(frozen=True, slots=True)
class Keys:
    """A JSON object, read key by key. In messages, `place` stands before each key, and the advice `how` at the end."""

    path: Path
    data: Mapping[str, Any]
    how: str
    place: str = ""

    def get(self, key: str, kind: type, expected: str, *, may_be_empty: bool = False) -> Any:
        if key not in self.data:
            fault = f"has no key {self.place + key!r}; expected {expected}"
            raise SuiteError(f"{self.path}: {fault}. {suggest(key, self.data)}")
        value = self.data[key]
        self.check(isinstance(value, kind) and (value or may_be_empty), key, value, expected)
        return value

    def text(self, key: str) -> str:
        value: str = self.get(key, str, TEXT)
        self.check(value.strip(), key, value, TEXT)
        return value

    def texts(self, key: str) -> list[str]:
        value: list[Any] = self.get(key, list, "a list of texts, at least one")
        for index, text in enumerate(value):
            self.check(isinstance(text, str) and text.strip(), f"{key}[{index}]", text, TEXT)
        return value

    def check(self, is_right: object, key: str, value: object, expected: str) -> None:
        """Refuse a value that is not right, and say what was expected."""
        if is_right:
            return
        shown = show_text(value) if isinstance(value, str) else json.dumps(value, default=str)
        if '"' in shown and not isinstance(value, str):
            shown = f"a {json_type(value)} with texts"
        raise SuiteError(f"{self.path}: key {self.place + key!r} is {shown}; expected {expected}. {self.how}")


def read_version(folder: Path) -> str:
    """Read the version from suite.json. A user's data need not have this file."""
    path = folder / "suite.json"
    if not path.is_file():
        return "unversioned"
    data = read_object(path, '{"version": "..."}.')
    if "version" not in data:
        raise SuiteError(f'{path}: expected {{"version": "..."}}.')
    return str(data["version"])


def hash_files(folder: Path, paths: Iterable[Path]) -> str:
    """Hash the content and the names of files, in the order given. Names are relative to the folder."""
    digest = sha256()
    for path in paths:
        digest.update(f"{path.relative_to(folder).as_posix()}\n".encode(errors="surrogateescape"))
        digest.update(sha256(Source(path, SuiteError).read_bytes()).digest())
    return digest.hexdigest()
