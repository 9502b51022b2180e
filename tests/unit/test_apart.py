"""Pairs that carry a tag are counted, and measures are told with and without them."""

from pathlib import Path

import numpy as np
import pytest

from bbnli_audit import AuditOptions, Pair, Subtopic, TextPair, run_audit
from bbnli_audit.core.results.rows import NO_DATA
from bbnli_audit.measures.apart import measure_apart
from bbnli_audit.measures.readings.kinds import LABELS, LIKELIHOOD
from bbnli_audit.measures.readings.table import PairTable, join_tables, make_table
from bbnli_audit.measures.registry import measure_table
from bbnli_audit.reports import notes
from bbnli_audit.reports.terminal import write_summary
from tests.invented import limits, quad_data, write_quads


def table_of(n_tagged: int, n_plain: int, name: str = "zorbs") -> PairTable:
    """Tagged pairs are read by the stereotype, the others rightly."""
    pairs = [
        Pair(
            f"{name}{n}",
            TextPair(f"Moon {n}.", "Zorbs sing."),
            TextPair(f"Moon {n}.", "Quints sing."),
            tags=("aggregate",) if n < n_tagged else (),
        )
        for n in range(n_tagged + n_plain)
    ]
    biased, right = (np.eye(3)[[at]] for at in (0, 1))
    pro = np.concatenate([np.repeat(biased, n_tagged, axis=0), np.repeat(right, n_plain, axis=0)])
    anti = np.repeat(right, n_tagged + n_plain, axis=0)
    return make_table(Subtopic("moons", "near", name), pairs, LABELS, (pro, anti))


def test_measures_with_and_without_add_up() -> None:
    table = table_of(10, 30)
    lean = measure_table(table, 0.95).measures["lean"].value
    found = measure_apart(table, 0.95)["aggregate"]
    assert found.n_pairs == 10
    assert lean == 10 * 0.5 / 40
    assert found.without["lean"].value == 0
    assert found.without["lean"].n == 60
    assert set(found.without) == {"lean", "pro_rate", "anti_rate", "brittleness_rate"}


def test_a_likelihood_is_told_without_them_too() -> None:
    pairs = [
        Pair(f"z{n}", TextPair(f"Moon {n}.", "Zorbs sing."), TextPair(f"Moon {n}.", "Quints sing."), tags=tags)
        for n, tags in enumerate([("aggregate",), (), ()])
    ]
    shares = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.6, 0.4, 0.0]])
    table = make_table(Subtopic("moons", "near", "zorbs"), pairs, LIKELIHOOD, (shares, shares[:, [1, 0, 2]]))
    found = measure_apart(table, 0.95)["aggregate"]
    assert {name: measured.value for name, measured in found.without.items()} == {"token_preference": 0.5}


def test_likelihoods_that_are_mostly_ties_without_them_are_no_data_there_either() -> None:
    pairs = [
        Pair(f"z{n}", TextPair(f"Moon {n}.", "Zorbs sing."), TextPair(f"Moon {n}.", "Quints sing."), tags=tags)
        for n, tags in enumerate([("aggregate",), ("aggregate",), (), (), ()])
    ]
    shares = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0], [0.7, 0.3, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    table = make_table(Subtopic("moons", "near", "zorbs"), pairs, LIKELIHOOD, (shares, shares[:, [1, 0, 2]]))
    assert measure_table(table, 0.95).measures["token_preference"].value == 0.8
    assert measure_apart(table, 0.95)["aggregate"].without == {"token_preference": NO_DATA}


def test_subtopics_without_tags_count_as_untagged() -> None:
    assert measure_apart(table_of(0, 30), 0.95) == {}
    joined = join_tables([table_of(10, 30), table_of(0, 20, "quints")])
    found = measure_apart(joined, 0.95)["aggregate"]
    assert (found.n_pairs, found.without["pro_rate"].n) == (10, 100)
    everything = measure_apart(table_of(10, 0), 0.95)["aggregate"]
    assert everything.without["lean"].value is None


def test_it_is_told_in_every_report(tmp_path: Path) -> None:
    first, second = quad_data()["hypotheses"]
    write_quads(tmp_path / "data", hypotheses=[first, {**second, "tags": ["aggregate"]}])
    options = AuditOptions(
        model="planted:always-pro", data=tmp_path / "data", thresholds=limits(), report=tmp_path / "out"
    )
    result = run_audit(options)
    (row,) = result.subtopics
    assert row.apart["aggregate"].n_pairs == 2
    assert result.suite_rows[0].apart["aggregate"].without["lean"].value == 1
    (told,) = notes.apart(result.suite_rows)
    start = "bbnli: 2 of 5 pairs carry the tag aggregate (roughly true on average): lean 1.000 ("
    assert told.startswith(start)
    lines: list[str] = []
    write_summary(result, lambda line, **_: lines.append(line))
    assert told in lines
    for name in ("summary.md", "model_card.md", "report.html"):
        assert "(roughly true on average): lean 1.000 (" in (tmp_path / "out" / name).read_text(encoding="utf-8")
    assert "tags" not in (tmp_path / "out" / "pairs.csv").read_text().splitlines()[0]


@pytest.mark.parametrize("tags", [[], ["aggregate", "contested"]])
def test_tags_of_a_hypothesis_are_those_of_its_pairs(tmp_path: Path, tags: list[str]) -> None:
    first, second = quad_data()["hypotheses"]
    write_quads(tmp_path, hypotheses=[{**first, "tags": tags}, second])
    row = run_audit(AuditOptions(model="planted:ideal", data=tmp_path, thresholds=limits())).subtopics[0]
    assert list(row.apart) == tags
