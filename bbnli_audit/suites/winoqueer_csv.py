"""Reads WinoQueer-NLI as published: one CSV file of two premises that differ in the identity, and one hypothesis."""

import csv
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TextIO

from bbnli_audit.core.errors import OptionError, SuiteError

FILE = "winoqueer_nli.csv"
COLUMNS = ("stereo_premise", "counter_premise", "hypothesis")

_PREMISE = re.compile(r"(?P<subject>\S.*?) (?P<verb>is|are) (?P<identity>.*\w.*)\.")
_ARTICLE = re.compile(r"^an? ")
_HOW = "Compare with the published file (docs/winoqueer.md)."
_BE = dict.fromkeys(("is", "are", "was", "were"), "be")
_SAME_WORD = {**_BE, "has": "have", "does": "do", "men": "man", "women": "woman"}


class Row(NamedTuple):
    """One line of the file, and what its premises are about."""

    pro_premise: str
    anti_premise: str
    hypothesis: str
    identity: str  # as the domain of a subtopic spells it
    predicate: str  # the same for all subjects


class _Premise(NamedTuple):
    subject: str
    verb: str
    identity: str


def find_file(data: Path) -> Path:
    """Give the file that a user names, or the published one in the folder that a user names."""
    path = data / FILE if data.is_dir() else data
    if path.is_file() and path.suffix == ".csv":
        return path
    what = f"the folder holds no {FILE}" if data.is_dir() else "there is no such folder or .csv file"
    raise OptionError(f"--bbnli-data={data}: {what}.\nGive {FILE} or its folder, or leave the option out.")


def read_rows(path: Path) -> list[Row]:
    """Read and check a file. Messages name lines and quote no sentence.

    Raises:
        SuiteError: naming the file, the line and what was expected there.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(_parse(path, file))
    except UnicodeDecodeError as exc:
        raise SuiteError(f"{path}: is not UTF-8. Save it as UTF-8.") from exc
    except OSError as exc:
        raise SuiteError(f"{path}: cannot be read: {exc.strerror}.") from exc
    if not rows:
        raise SuiteError(f"{path}: holds no row, so there is nothing to audit. {_HOW}")
    identities = {row.identity for row in rows}
    slugs = {identity: _slug(identity, identities) for identity in identities}
    return [row._replace(identity=slugs[row.identity]) for row in rows]


def _parse(path: Path, file: TextIO) -> Iterator[Row]:
    reader = csv.reader(file, strict=True)
    try:
        header = next(reader, [])
        places = _places(path, header)
        for values in reader:
            if not values:
                continue  # an empty line
            if len(values) != len(header):
                raise _wrong(path, reader.line_num, f"has {len(values)} values for {len(header)} columns")
            yield _read_row(path, reader.line_num, *(values[place] for place in places))
    except csv.Error as exc:
        raise SuiteError(f"{path}:{reader.line_num}: is not valid CSV: {exc}. Mend that line.") from exc


def _places(path: Path, header: list[str]) -> list[int]:
    for column in COLUMNS:
        if header.count(column) != 1:
            fault = "twice" if column in header else "not at all"
            raise _wrong(path, 1, f"names the column {column} {fault}; expected {', '.join(COLUMNS)}, each once")
    return [header.index(column) for column in COLUMNS]


def _read_row(path: Path, line: int, pro_premise: str, anti_premise: str, hypothesis: str) -> Row:
    pro, anti = _read_premise(pro_premise), _read_premise(anti_premise)
    if pro is None or anti is None:
        column = COLUMNS[0] if pro is None else COLUMNS[1]
        raise _wrong(path, line, f'{column} is not of the form "… is …." or "… are …."')
    if (pro.subject, pro.verb) != (anti.subject, anti.verb):
        raise _wrong(path, line, "the two premises differ in more than the identity")
    before, _, predicate = hypothesis.partition(f"{pro.subject} ")
    if before or not predicate.strip(" ."):
        raise _wrong(
            path, line, "the hypothesis is not of the form SUBJECT PREDICATE, with the subject of the premises"
        )
    return Row(pro_premise, anti_premise, hypothesis, pro.identity, _normalize(predicate.removesuffix(".")))


@cache
def _read_premise(text: str) -> _Premise | None:
    found = _PREMISE.fullmatch(text)
    return found and _Premise(found["subject"], found["verb"], _ARTICLE.sub("", found["identity"]))


def _wrong(path: Path, line: int, fault: str) -> SuiteError:
    return SuiteError(f"{path}:{line}: {fault}. {_HOW}")


def _slug(identity: str, identities: set[str]) -> str:
    """Spell an identity as a name; a plural (`some people are zorbs`) as its singular (`she is a zorb`)."""
    singular = identity.removesuffix("s") if identity.removesuffix("s") in identities else identity
    return re.sub(r"\W+", "_", singular.lower()).strip("_")


@cache
def _normalize(predicate: str) -> str:
    """Give one text for all forms of a predicate: `are jugglers`, `is a juggler`, `are a juggler`.

    The file does not say which rows have the same predicate. This brings together exactly those that do
    (tests/gold/test_winoqueer_figures.py), whatever their order.
    """
    plain = re.sub(r"[“”\"]", "", predicate.lower().replace("’", "'")).replace("n't", " not")
    words = (_SAME_WORD.get(word, word) for word in plain.split() if word not in ("a", "an"))
    return " ".join(map(_stem, words))


def _stem(word: str) -> str:
    if len(word) <= 3:
        return word
    stem = re.sub(r"(ies|y)$", "i", word)
    return re.sub(r"v$", "f", re.sub(r"e$", "", re.sub(r"e?s$", "", stem)))
