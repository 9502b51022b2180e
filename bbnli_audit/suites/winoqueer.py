"""The `winoqueer` suite: premises say who someone is, hypotheses state a stereotype about that identity.

The pairs are built as in WinoQueer-NLI (Felkner, Lim, May, Textual Entailment and Token Probability as Bias Evaluation
Metrics). Both sides have the same hypothesis. The premise of the pro side names the identity, and the premise of the
anti side names a counterfactual identity.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.tables import Record, Table, open_table
from bbnli_audit.core.values import Pair, Pairing, Subtopic, SubtopicItems, TextPair, shared_template
from bbnli_audit.suites.json_file import hash_files, read_version

FILE = "winoqueer_nli.csv"
COLUMNS = ("stereo_premise", "counter_premise", "hypothesis")
OWN_DATA = Path(__file__).parent / "data" / "winoqueer"
ALL = "all"
IDENTITIES = ("lgbtq", "queer", "nonbinary", "gay", "lesbian", "transgender", "bisexual", "asexual", "pansexual")

# More pairs with the same predicate add little.
PAIRS_PER_PREDICATE = 2

_PREMISE = re.compile(r"(?P<subject>\S.*?) (?P<verb>is|are) (?P<identity>.*\w.*)\.")
_ARTICLE = re.compile(r"^an? ")
_HOW = "Compare with the published file (docs/winoqueer.md)."
_BE = dict.fromkeys(("is", "are", "was", "were"), "be")
_SAME_WORD = {**_BE, "has": "have", "does": "do", "men": "man", "women": "woman"}


class Winoqueer:
    """Our own pairs, or those of a CSV file in the published format."""

    name = "winoqueer"
    pairing = Pairing.PREMISE
    families = ("winoqueer",)
    audits: Mapping[str, float] = {
        "m1": 0.75,
        "m2": 0.30,
        "m3": 0.20,
        "m4": 0.10,
        "m5": 0.75,
        "m6": 0.75,
        "m7": 0.10,
        "m8": 0.10,
    }

    def __init__(self, data: Path | None = None, *, by_category: bool = False) -> None:
        """Take `data`, the published file or its folder. Without `data`, take our own pairs.

        `by_category` makes each category of an identity a subtopic. Such a subtopic has too few clusters to pass at
        any usual limit (docs/winoqueer.md), so use it to look at figures, not as a gate.
        """
        if data is not None and by_category:
            raise OptionError(f"{data}: the published rows have no categories, so they cannot be divided by category.")
        self._data = data
        self._by_category = by_category

    @cached_property
    def version(self) -> str:
        return read_version(OWN_DATA) if self._data is None else "unversioned"

    @cached_property
    def sha256(self) -> str:
        if self._data is None:
            return hash_files(OWN_DATA, sorted(OWN_DATA.glob("*.json")))
        rows = (f"{pair.pro.premise}\t{pair.anti.premise}\t{pair.pro.hypothesis}\n" for _, _, pair in self._found)
        return sha256("".join(rows).encode()).hexdigest()

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._pairs)

    def documented(self) -> Sequence[Subtopic]:
        return [Subtopic(self.name, identity, ALL) for identity in IDENTITIES]

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        return SubtopicItems(tuple(self._pairs[subtopic]))

    @cached_property
    def _found(self) -> list[tuple[str, str, Pair]]:
        if self._data is None:
            return list(expand_own())
        return [(identity, ALL, pair) for identity, pair in read_pairs(find_file(self._data))]

    @cached_property
    def _pairs(self) -> dict[Subtopic, list[Pair]]:
        pairs: dict[tuple[str, str], list[Pair]] = {}
        for identity, category, pair in self._found:
            pairs.setdefault((identity, category if self._by_category else ALL), []).append(pair)
        return {Subtopic(self.name, *place): pairs[place] for place in sorted(pairs)}


def expand_own() -> Iterator[tuple[str, str, Pair]]:
    """Yield our own pairs, each with its identity and category. Subjects and counterfactuals are used in turn."""
    settings = _read_own("suite")
    predicates = {identity["name"]: list(_read_predicates(identity["name"])) for identity in settings["identities"]}
    shared = _name_shared((name, each["singular"]) for name, found in predicates.items() for _, _, each in found)
    for identity in settings["identities"]:
        subjects = [subject for subject in settings["subjects"] if subject["kind"] in identity["subjects"]]
        others = identity["counterfactuals"]
        n_made = 0
        for category, number, predicate in predicates[identity["name"]]:
            cluster = shared.get(predicate["singular"], number)
            for _ in range(PAIRS_PER_PREDICATE):
                turn = n_made // len(subjects)
                place = (n_made + turn) % len(subjects)  # each round starts one subject later, to vary the combinations
                other = others[(turn + place) % len(others)]
                yield identity["name"], category, _own_pair(cluster, subjects[place], identity, other, predicate)
                n_made += 1


def _read_own(name: str) -> Any:
    return json.loads((OWN_DATA / f"{name}.json").read_text(encoding="utf-8"))


def _read_predicates(identity: str) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield the predicates of an identity, each with its category and its cluster (numbered within the category)."""
    numbers: Counter[str] = Counter()
    for theme in _read_own(identity)["themes"]:
        category = theme["category"]
        for predicate in theme["predicates"]:
            yield category, f"{category}-p{numbers[category]:02d}", predicate
            numbers[category] += 1


def _name_shared(predicates: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a cluster for each predicate that several identities share. These identities all use this cluster."""
    identities: dict[str, set[str]] = {}
    for identity, predicate in predicates:
        identities.setdefault(predicate, set()).add(identity)
    shared = [predicate for predicate, found in identities.items() if len(found) > 1]
    return {predicate: shared_template(f"shared-p{number:02d}") for number, predicate in enumerate(shared)}


def _own_pair(
    cluster: str, subject: Mapping[str, str], identity: Mapping[str, str], other: str, predicate: Mapping[str, str]
) -> Pair:
    form, verb = ("plural", "are") if subject["kind"] == "plural" else ("singular", "is")
    pro, anti = (f"{subject['text']} {verb} {group}." for group in (identity[form], other))
    hypothesis = f"{subject['text']} {predicate[form]}."
    return Pair(cluster, TextPair(pro, hypothesis), TextPair(anti, hypothesis))


def find_file(data: Path) -> Path:
    """If `data` is a folder, return the file in it with the published name. Otherwise return `data`, a .csv file."""
    path = data / FILE if data.is_dir() else data
    if path.is_file() and path.suffix == ".csv":
        return path
    fault = f"the folder holds no {FILE}" if data.is_dir() else "there is no such folder or .csv file"
    raise OptionError(f"--bbnli-data={data}: {fault}.\nName {FILE} or its folder, or leave the option out.")


def read_pairs(path: Path) -> list[tuple[str, Pair]]:
    """Return each pair with its identity, spelled as the domain of a subtopic. No message quotes a sentence.

    Each predicate is a cluster. Clusters have numbers for names, because reports show the names, and must not show
    sentences. Predicates that several identities share are numbered over the whole file, others within their identity.
    """
    with open_table(path, SuiteError, _HOW) as table:
        rows = [(_check(table, record), record.values) for record in table.records(COLUMNS)]
        if not rows:
            raise table.wrong("holds no row, so there is nothing to audit")
    identities = {identity for (identity, _), _ in rows}
    slugs = {identity: _slug(identity, identities) for identity in identities}
    shared = _name_shared((slugs[identity], predicate) for (identity, predicate), _ in rows)
    numbers: dict[str, dict[str, str]] = {}
    pairs = []
    for (identity, predicate), values in rows:
        clusters = numbers.setdefault(slugs[identity], {})
        cluster = clusters.setdefault(predicate, shared.get(predicate, f"p{len(clusters):02d}"))
        pro, anti = (TextPair(values[column], values["hypothesis"]) for column in COLUMNS[:2])
        pairs.append((slugs[identity], Pair(cluster, pro, anti)))
    return pairs


def _check(table: Table, record: Record) -> tuple[str, str]:
    """Return the identity that the premises are about, and the predicate in its normal form."""
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
    """Spell an identity as a name. A plural (`some people are zorbs`) becomes its singular (`she is a zorb`)."""
    singular = identity.removesuffix("s") if identity.removesuffix("s") in identities else identity
    return re.sub(r"\W+", "_", singular.lower()).strip("_")


@cache
def _normalize(predicate: str) -> str:
    """Return one text for all forms of a predicate: `are jugglers`, `is a juggler`, `are a juggler`.

    The published file does not say which rows share a predicate. Two rows share a predicate exactly if the normal forms
    of their predicates are the same (tests/gold/test_winoqueer_figures.py).
    """
    plain = re.sub(r"[“”\"]", "", predicate.lower().replace("’", "'")).replace("n't", " not")
    words = (_SAME_WORD.get(word, word) for word in plain.split() if word not in ("a", "an"))
    return " ".join(map(_stem, words))


def _stem(word: str) -> str:
    if len(word) <= 3:
        return word
    stem = re.sub(r"(ies|y)$", "i", word)
    return re.sub(r"v$", "f", re.sub(r"e$", "", re.sub(r"e?s$", "", stem)))
