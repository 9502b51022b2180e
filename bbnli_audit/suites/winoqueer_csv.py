"""Reads WinoQueer-NLI as published: one CSV file of two premises that differ in the identity, and one hypothesis."""

import re
from functools import cache
from pathlib import Path

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.tables import Record, Table, open_table
from bbnli_audit.core.values import Pair, TextPair

FILE = "winoqueer_nli.csv"
COLUMNS = ("stereo_premise", "counter_premise", "hypothesis")

_PREMISE = re.compile(r"(?P<subject>\S.*?) (?P<verb>is|are) (?P<identity>.*\w.*)\.")
_ARTICLE = re.compile(r"^an? ")
_HOW = "Compare with the published file (docs/winoqueer.md)."
_BE = dict.fromkeys(("is", "are", "was", "were"), "be")
_SAME_WORD = {**_BE, "has": "have", "does": "do", "men": "man", "women": "woman"}


def find_file(data: Path) -> Path:
    """Return the file that a user names, or the published one in the folder that a user names."""
    path = data / FILE if data.is_dir() else data
    if path.is_file() and path.suffix == ".csv":
        return path
    fault = f"the folder holds no {FILE}" if data.is_dir() else "there is no such folder or .csv file"
    raise OptionError(f"--bbnli-data={data}: {fault}.\nName {FILE} or its folder, or leave the option out.")


def read_pairs(path: Path) -> list[tuple[str, Pair]]:
    """Return each pair with its identity as the domain of a subtopic. No message quotes a sentence.

    Clusters are predicates, numbered within each identity in order: a text would show up in reports.
    """
    with open_table(path, SuiteError, _HOW) as table:
        rows = [(_check(table, record), record.values) for record in table.records(COLUMNS)]
        if not rows:
            raise table.wrong("holds no row, so there is nothing to audit")
    identities = {identity for (identity, _), _ in rows}
    slugs = {identity: _slug(identity, identities) for identity in identities}
    numbers: dict[str, dict[str, str]] = {}
    pairs = []
    for (identity, predicate), values in rows:
        clusters = numbers.setdefault(slugs[identity], {})
        cluster = clusters.setdefault(predicate, f"p{len(clusters):02d}")
        pro, anti = (TextPair(values[column], values["hypothesis"]) for column in COLUMNS[:2])
        pairs.append((slugs[identity], Pair(cluster, pro, anti)))
    return pairs


def _check(table: Table, record: Record) -> tuple[str, str]:
    """Return the identity that the premises are about, and the predicate, which is the same for all subjects."""
    pro, anti = (_PREMISE.fullmatch(record.values[column]) for column in COLUMNS[:2])
    if pro is None or anti is None:
        column = COLUMNS[0] if pro is None else COLUMNS[1]
        raise table.wrong(f'{column} is not of the form "… is …." or "… are …."', record.number)
    if pro.group("subject", "verb") != anti.group("subject", "verb"):
        raise table.wrong("the two premises differ in more than the identity", record.number)
    before, _, predicate = record.values["hypothesis"].partition(f"{pro['subject']} ")
    if before or not predicate.strip(" ."):
        fault = "the hypothesis is not of the form SUBJECT PREDICATE, with the subject of the premises"
        raise table.wrong(fault, record.number)
    return _ARTICLE.sub("", pro["identity"]), _normalize(predicate.removesuffix("."))


def _slug(identity: str, identities: set[str]) -> str:
    """Spell an identity as a name; a plural (`some people are zorbs`) as its singular (`she is a zorb`)."""
    singular = identity.removesuffix("s") if identity.removesuffix("s") in identities else identity
    return re.sub(r"\W+", "_", singular.lower()).strip("_")


@cache
def _normalize(predicate: str) -> str:
    """Return one text for all forms of a predicate: `are jugglers`, `is a juggler`, `are a juggler`.

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
