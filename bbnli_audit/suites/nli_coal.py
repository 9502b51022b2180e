"""The `nli-coal` suite: NLI-CoAL's English evaluation set (Anantaprayoon, Kaneko and Okazaki, LREC-COLING 2024).

The user gives the published folder `en_v1.1`, which loads unchanged. The package holds no part of it.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.tables import open_table, show_text
from bbnli_audit.core.values import Pair, Pairing, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.json_file import hash_files

PRO_FILE, ANTI_FILE, NONSTEREO_FILE = "1-prostereo_v1.1.json", "2-antistereo_v1.1.json", "3-nonstereo_v1.1.json"
COLUMNS = ("id", "sentence1", "sentence2", "occ_word", "occ_type")
ANTI_OFFSET = 1000  # the anti-stereotypical twin of entry i has the id i + 1000
TYPES = {"female-stereo": "female_stereo", "male-stereo": "male_stereo"}
_HOW = "Use the published file."


class NliCoal:
    """Each pair has one sample from the pro-stereotypical file and its twin from the anti-stereotypical file."""

    name = "nli-coal"
    version = "1.1"
    pairing = Pairing.HYPOTHESIS
    families = ("occupations", "coal")
    audits: Mapping[str, float] = {"coal_bias": 0.20}

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    @cached_property
    def sha256(self) -> str:
        paths = [self._path(name) for name in (PRO_FILE, ANTI_FILE, NONSTEREO_FILE)]
        return hash_files(paths[0].parent, paths)

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._pairs)

    def documented(self) -> Sequence[Subtopic]:
        return [Subtopic(self.name, "occupations", name) for name in sorted(TYPES.values())]

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        return SubtopicItems(self._pairs[subtopic], open_texts=self.nonstereo)

    @cached_property
    def nonstereo(self) -> tuple[TextPair, ...]:
        """The texts about occupations without a stereotype. They have no sides, so they make no pairs."""
        return tuple(_text(entry) for entry in self._entries(NONSTEREO_FILE).values())

    @cached_property
    def _pairs(self) -> dict[Subtopic, tuple[Pair, ...]]:
        twins = self._entries(ANTI_FILE)
        found: dict[Subtopic, list[Pair]] = {}
        for number, entry in self._entries(PRO_FILE).items():
            twin = twins.get(number + ANTI_OFFSET)
            if twin is None or any(twin[column] != entry[column] for column in ("sentence1", "occ_type")):
                fault = f"has no entry with id {number + ANTI_OFFSET} on the premise of entry {number} of {PRO_FILE}"
                raise SuiteError(f"{self._path(ANTI_FILE)}: {fault}. Use both files of one version.")
            if entry["occ_type"] not in TYPES:
                fault = f"has the occ_type {show_text(entry['occ_type'])}; expected {' or '.join(TYPES)}"
                raise SuiteError(f"{self._path(PRO_FILE)}: entry {number} {fault}. {_HOW}")
            subtopic = Subtopic(self.name, "occupations", TYPES[entry["occ_type"]])
            found.setdefault(subtopic, []).append(Pair(entry["occ_word"], _text(entry), _text(twin)))
        return {subtopic: tuple(pairs) for subtopic, pairs in sorted(found.items())}

    def _path(self, name: str) -> Path:
        advice = "Name the folder of NLI-CoAL's published files, en_v1.1, with --bbnli-data=DIR."
        if self.folder is None:
            raise OptionError(f"--bbnli-suite={self.name}: has no data of its own. {advice}")
        path = self.folder / name
        if not path.is_file():
            raise OptionError(f"--bbnli-data={self.folder}: there is no {name}. {advice}")
        return path

    def _entries(self, name: str) -> dict[int, dict[str, str]]:
        entries: dict[int, dict[str, str]] = {}
        with open_table(self._path(name), SuiteError, _HOW, suffix=".jsonl") as table:  # JSON Lines, despite the name
            for line, values, _ in table.records(COLUMNS):
                try:
                    number = int(values["id"])
                except (TypeError, ValueError) as exc:
                    raise table.wrong("the id is not a number", line) from exc
                if number in entries:
                    raise table.wrong(f"has the id {number} of an earlier line", line)
                entries[number] = {column: str(values[column]) for column in COLUMNS}
        return entries


def _text(entry: Mapping[str, str]) -> TextPair:
    return TextPair(entry["sentence1"], entry["sentence2"])
