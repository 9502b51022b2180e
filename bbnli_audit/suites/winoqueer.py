"""The `winoqueer` suite: the premise says who someone is, the hypothesis states a stereotype about that identity.

The pairs are those of WinoQueer-NLI (Felkner, Lim, May, Textual Entailment and Token Probability as Bias Evaluation
Metrics): the hypothesis stays, the premise names the identity (pro) or a counterfactual one (anti).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.values import Pair, Pairing, Subtopic, SubtopicItems, TextPair
from bbnli_audit.suites.json_file import hash_files, read_version
from bbnli_audit.suites.winoqueer_csv import find_file, read_pairs

OWN_DATA = Path(__file__).parent / "data" / "winoqueer"
ALL = "all"
IDENTITIES = ("lgbtq", "queer", "nonbinary", "gay", "lesbian", "transgender", "bisexual", "asexual", "pansexual")

# Several pairs of one predicate tell little more than one of them, so each meets a few subjects and not all.
PAIRS_PER_PREDICATE = 3


class Winoqueer:
    """Our own pairs, or those of a CSV file in the published format."""

    name = "winoqueer"
    pairing = Pairing.PREMISE
    families = ("winoqueer",)

    def __init__(self, data: Path | None = None, *, by_category: bool = False) -> None:
        """Take the published file or its folder, or else our own pairs.

        `by_category` makes each category of an identity a subtopic. Eight clusters are too few for a pass at any usual
        limit (docs/winoqueer.md), so this is for reading, not for a gate.
        """
        if data is not None and by_category:
            raise OptionError(f"{data}: the published rows have no categories, so there are none to divide them by.")
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
    """Return identity, category and pair. Subjects and counterfactuals take turns, so that each meets each."""
    settings, predicates = (_read_json(name) for name in ("suite.json", "predicates.json"))
    for identity in settings["identities"]:
        subjects = [subject for subject in settings["subjects"] if subject["kind"] in identity["subjects"]]
        others = identity["counterfactuals"]
        n_made = 0
        for category, of_category in predicates.items():
            for index, predicate in enumerate(of_category):
                if not _fits(predicate, identity["name"]):
                    continue
                for _ in range(PAIRS_PER_PREDICATE):
                    turn, place = divmod(n_made, len(subjects))
                    other = others[(turn + place) % len(others)]
                    pair = _own_pair(f"{category}/p{index:02d}", subjects[place], identity, other, predicate)
                    yield identity["name"], category, pair
                    n_made += 1


def _fits(predicate: Mapping[str, Any], identity: str) -> bool:
    return identity in predicate.get("only", [identity]) and identity not in predicate.get("except", [])


def _own_pair(
    cluster: str, subject: Mapping[str, str], identity: Mapping[str, str], other: str, predicate: Mapping[str, str]
) -> Pair:
    form, verb = ("plural", "are") if subject["kind"] == "plural" else ("singular", "is")
    pro, anti = (f"{subject['text']} {verb} {group}." for group in (identity[form], other))
    hypothesis = f"{subject['text']} {predicate[form]}."
    return Pair(cluster, TextPair(pro, hypothesis), TextPair(anti, hypothesis))


def _read_json(name: str) -> Any:
    return json.loads((OWN_DATA / name).read_text(encoding="utf-8"))
