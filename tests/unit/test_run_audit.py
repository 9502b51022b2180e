"""The pipeline without pytest."""

from pathlib import Path

import pytest

from bbnli_audit import AuditError, run_audit
from bbnli_audit.core.results.audit import Verdict
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.suites.bbnli import Bbnli
from tests.invented import limits, write_large_suite


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_large_suite(tmp_path)


def test_all_subtopics_by_default(data: Path) -> None:
    result = run_audit("planted:always-pro", thresholds=limits(), data=data)
    assert [row.path for row in result.subtopics] == [
        "bbnli/oceans/fins_are_to_singing",
        "bbnli/planets/zorbs_are_to_juggling",
    ]
    assert result.total.counts.n_pro == result.total.counts.n_samples
    assert result.subtopics[0].judgement("pro_rate") is not None
    assert {judgement.verdict for judgement in result.total.verdicts} == {Verdict.PASS}  # competence


def test_some_subtopics_by_path_with_a_predictor_of_ones_own(data: Path) -> None:
    predictor = PlantedPredictor("brittle", [Bbnli(data)])
    path = "bbnli/planets/zorbs_are_to_juggling"
    result = run_audit(predictor, thresholds=limits(), data=data, subtopics=[path])
    assert [row.path for row in result.subtopics] == [path]
    assert result.subtopics[0].measures["brittleness_rate"].value == 1


def test_counts_add_up_from_subtopics_to_domains_to_total(data: Path) -> None:
    result = run_audit("planted:random", thresholds=limits(), data=data)
    for rows in (result.subtopics, result.domains):
        assert sum(row.counts.n_pro for row in rows) == result.total.counts.n_pro
        assert sum(row.n_clusters for row in rows) == result.total.n_clusters


def test_an_unknown_subtopic_is_refused(data: Path) -> None:
    with pytest.raises(AuditError, match="There is no subtopic 'bbnli/oceans/fin'"):
        run_audit("planted:ideal", thresholds=limits(), data=data, subtopics=["bbnli/oceans/fin"])
