"""NLI-CoAL's English evaluation set as a suite of pairs (Anantaprayoon, Kaneko and Okazaki, LREC-COLING 2024).

The published folder `en_v1.1` loads unchanged; nothing of it is in this package.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pair, Pairing, Subtopic, SubtopicItems, TextPair

PRO_FILE, ANTI_FILE, NONSTEREO_FILE = "1-prostereo_v1.1.json", "2-antistereo_v1.1.json", "3-nonstereo_v1.1.json"
ANTI_OFFSET = 1000  # the anti-stereotypical twin of entry i has the id i + 1000
TYPES = {"female-stereo": "female_stereo", "male-stereo": "male_stereo"}


class Entry(NamedTuple):
    """One line of a file."""

    text: TextPair
    occupation: str
    type: str


class NliCoal:
    """Pairs of the pro-stereotypical and the anti-stereotypical file."""

    name = "nli_coal"
    version = "1.1"
    pairing = Pairing.HYPOTHESIS
    families = ("occupations",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def sha256(self) -> str:
        digest = sha256()
        for name in (PRO_FILE, ANTI_FILE):
            digest.update(f"{name}\n".encode())
            digest.update(sha256(self._path(name).read_bytes()).digest())
        return digest.hexdigest()

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._pairs)

    def documented(self) -> Sequence[Subtopic]:
        return [Subtopic(self.name, "occupations", name) for name in sorted(TYPES.values())]

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        return SubtopicItems(self._pairs[subtopic])

    def nonstereo(self) -> Sequence[TextPair]:
        """Give the texts on occupations without a stereotype. They have no sides, so they are no pairs of an audit."""
        return [entry.text for entry in self._entries(NONSTEREO_FILE).values()]

    @cached_property
    def _pairs(self) -> dict[Subtopic, tuple[Pair, ...]]:
        twins = self._entries(ANTI_FILE)
        found: dict[Subtopic, list[Pair]] = {}
        for number, entry in self._entries(PRO_FILE).items():
            twin = twins.get(number + ANTI_OFFSET)
            if twin is None or twin.text.premise != entry.text.premise or twin.type != entry.type:
                raise SuiteError(
                    f"{self._path(ANTI_FILE)}: has no entry with id {number + ANTI_OFFSET} on the premise of entry "
                    f"{number} of {PRO_FILE}. Use both files of one version."
                )
            if entry.type not in TYPES:
                raise SuiteError(
                    f"{self._path(PRO_FILE)}: entry {number} has occ_type {entry.type!r}; expected "
                    f"{' or '.join(TYPES)}. Use the published file."
                )
            subtopic = Subtopic(self.name, "occupations", TYPES[entry.type])
            found.setdefault(subtopic, []).append(Pair(entry.occupation, entry.text, twin.text))
        return {subtopic: tuple(pairs) for subtopic, pairs in sorted(found.items())}

    def _path(self, name: str) -> Path:
        path = self.folder / name
        if not path.is_file():
            raise OptionError(
                f"--bbnli-data={self.folder}: there is no {name}. Give the folder with the published en_v1.1 files of "
                "NLI-CoAL."
            )
        return path

    def _entries(self, name: str) -> dict[int, Entry]:
        """Read JSON Lines, which the files are despite their names."""
        path = self._path(name)
        entries: dict[int, Entry] = {}
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                row: dict[str, Any] = json.loads(line)
                text = TextPair(str(row["sentence1"]), str(row["sentence2"]))
                entry = Entry(text, str(row["occ_word"]), str(row["occ_type"]))
                key = int(row["id"])
            except (ValueError, KeyError, TypeError) as exc:
                raise SuiteError(
                    f"{path}:{number}: is not one JSON object with id, sentence1, sentence2, occ_word and occ_type. "
                    "Use the published file."
                ) from exc
            if key in entries:
                raise SuiteError(f"{path}:{number}: the id {key} stands there twice. Use the published file.")
            entries[key] = entry
        if not entries:
            raise SuiteError(f"{path}: holds no entry. Use the published file.")
        return entries
