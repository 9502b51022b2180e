"""The published templates expand to exactly the published rows and pairs."""

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

from bbnli_audit.core.values import Label, Pairing
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.template_file import TemplateFile, expand_items, expand_pairs, read_template_file
from tests.published_rows import Row, expand_rows
from tests.shared_data import SHARED, shared_path

pytestmark = pytest.mark.gold

FILES = sorted(path.stem for path in (SHARED / "data" / "bbnli").glob("*/*.json"))


def stems_with_figures() -> list[str]:
    """Subtopics with figures of their own; the totals cover the five that are held back."""
    path = SHARED / "data" / "bbnli" / "EXPECTED.json"
    return sorted(json.loads(path.read_text(encoding="utf-8"))["subtopics"]) if path.exists() else ["no shared folder"]


PUBLISHED_NUMBERS = {Label.CONTRADICTION: "0", Label.NEUTRAL: "1", Label.ENTAILMENT: "2"}


@cache
def expected() -> dict[str, Any]:
    return json.loads(shared_path("data", "bbnli", "EXPECTED.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@cache
def read(stem: str) -> TemplateFile:
    folder = shared_path("data", "bbnli")
    return read_template_file(next(folder.glob(f"*/{stem}.json")))


def digest(lines: Iterable[tuple[str, ...]]) -> str:
    return sha256("".join(f"{line}\n" for line in sorted(map("\t".join, lines))).encode()).hexdigest()


def fields(row: Row) -> tuple[str, ...]:
    return row.side, f"{row.premise_index:02d}", row.premise, row.hypothesis


def summary(stem: str) -> dict[str, int]:
    file = read(stem)
    rows, texts = expand_rows(file, "rows"), expand_rows(file, "texts")
    both, fixed = expand_pairs(file, Pairing.BOTH), expand_pairs(file, Pairing.HYPOTHESIS)
    return {
        "csv_audit": sum(not row.is_control for row in rows),
        "csv_test": sum(row.is_control for row in rows),
        "nli_audit": sum(not row.is_control for row in texts),
        "nli_test": sum(row.is_control for row in texts),
        "pairs_swap_both": len(both),
        "pairs_swap_both_identical": sum(pair.is_identical for pair in both),
        "pairs_hyp_only_usable": sum(not pair.is_identical for pair in fixed),
    }


def test_all_sixteen_subtopics_bear_the_names_of_the_papers() -> None:
    suite = Bbnli(shared_path("data", "bbnli"))
    assert len(suite.subtopics()) == 16
    assert {subtopic.path for subtopic in suite.subtopics()} <= {subtopic.path for subtopic in suite.documented()}
    aliases = {subtopic.name: subtopic.aliases for subtopic in suite.subtopics() if subtopic.aliases}
    assert aliases == {
        "black_is_to_drugs": ("black_people_use_drugs",),
        "black_is_to_ghetto": ("black_is_to_impoverished",),
        "catholic_woman_is_to_kids": ("catholic_woman_to_many_kids",),
        "jewish_woman_is_to_kids": ("jewish_woman_to_many_kids",),
    }
    assert len(suite.documented()) == 24


def test_totals() -> None:
    shared_path("data", "bbnli")
    total: Counter[str] = Counter()
    domains: dict[str, Counter[str]] = {}
    for stem in FILES:
        total.update(summary(stem))
        domains.setdefault(read(stem).domain, Counter()).update(summary(stem))
    assert total == Counter(expected()["total"])
    for domain, counts in expected()["domains"].items():
        assert domains[domain] == Counter(counts)


@pytest.mark.parametrize("stem", stems_with_figures())
def test_counts_and_hashes(stem: str) -> None:
    gold = expected()["subtopics"][stem]
    file = read(stem)
    rows = [row for row in expand_rows(file, "rows") if not row.is_control]
    texts = expand_rows(file, "texts")
    audit = [row for row in texts if not row.is_control]
    test = [row for row in texts if row.is_control]
    csv, nli = gold["csv_mode"], gold["nli_mode"]
    assert (file.domain, len(file.premises), len(file.hypotheses), len(file.controls)) == (
        gold["domain"], gold["n_premises"], gold["n_bias_templates"], gold["n_test_templates"],
    )  # fmt: skip
    assert file.groups == (gold["group1"], gold["group2"])
    assert len(rows) == csv["audit"]
    assert Counter(row.side.value for row in rows) == {"pro": csv["audit_pro"], "anti": csv["audit_anti"]}
    assert sum(row.is_control for row in expand_rows(file, "rows")) == csv["test"]
    assert (len(audit), len(test)) == (nli["audit"], nli["test"])
    assert len({(row.premise, row.hypothesis) for row in audit}) == nli["audit_distinct_text"]
    assert len({(row.premise, row.hypothesis) for row in test}) == nli["test_distinct_text"]
    assert Counter(PUBLISHED_NUMBERS[row.expected] for row in test) == nli["test_label_counts"]
    index = "{:02d}".format
    assert (
        digest((r.side, index(r.premise_index), r.premise, r.hypothesis, r.question) for r in rows)
        == csv["sha256_audit"]
    )
    assert digest((r.side, index(r.premise_index), r.premise, r.hypothesis) for r in audit) == nli["sha256_audit"]
    assert digest((r.side, index(r.premise_index), r.premise, r.hypothesis) for r in test) == nli["sha256_test"]


@pytest.mark.parametrize("stem", stems_with_figures())
def test_pairs(stem: str) -> None:
    gold = expected()["subtopics"][stem]
    file = read(stem)
    both, fixed = expand_pairs(file, Pairing.BOTH), expand_pairs(file, Pairing.HYPOTHESIS)
    assert gold["pairs_swap_both"] == {
        "n": len(both),
        "hypothesis_identical": sum(pair.pro.hypothesis == pair.anti.hypothesis for pair in both),
        "premise_identical": sum(pair.pro.premise == pair.anti.premise for pair in both),
        "both_identical": sum(pair.is_identical for pair in both),
    }
    usable = [pair for pair in fixed if not pair.is_identical]
    assert gold["pairs_swap_hypothesis_only"] == {
        "n": len(fixed),
        "hypothesis_identical": len(fixed) - len(usable),
        "usable": len(usable),
        "sha256_usable": digest((p.pro.premise, p.pro.hypothesis, p.anti.hypothesis) for p in usable),
    }
    assert expand_items(file, Pairing.HYPOTHESIS).usable == tuple(usable)
