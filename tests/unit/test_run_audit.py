"""The pipeline without pytest."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bbnli_audit import AuditError, AuditOptions, Verdict, read_result, run_audit
from bbnli_audit.audit.audit import Audit
from bbnli_audit.core.errors import OptionError
from bbnli_audit.models.planted import PlantedPredictor
from bbnli_audit.suites.bbnli import Bbnli
from tests.invented import LIMITS, limits, write_large_suite
from tests.tiny_checkpoint import save_checkpoint

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_large_suite(tmp_path / "data")


def test_all_subtopics_by_default(data: Path) -> None:
    result = run_audit(AuditOptions(model="planted:always-pro", thresholds=limits(), data=data))
    assert [row.path for row in result.subtopics] == [
        "bbnli/oceans/fins_are_to_singing",
        "bbnli/planets/zorbs_are_to_juggling",
    ]
    assert result.total.counts.n_pro == result.total.n_samples
    assert result.subtopics[0].judgement("pro_rate") is not None
    assert {judgement.verdict for judgement in result.total.verdicts} == {Verdict.PASS}  # competence


def test_some_subtopics_by_path_with_a_predictor_of_ones_own(data: Path) -> None:
    predictor = PlantedPredictor("brittle", [Bbnli(data)])
    path = "bbnli/planets/zorbs_are_to_juggling"
    result = run_audit(AuditOptions(model=predictor, thresholds=limits(), data=data, subtopics=(path,)))
    assert [row.path for row in result.subtopics] == [path]
    assert result.subtopics[0].measures["brittleness_rate"].value == 1


def test_counts_add_up_from_subtopics_to_domains_to_total(data: Path) -> None:
    result = run_audit(AuditOptions(model="planted:random", thresholds=limits(), data=data))
    for rows in (result.subtopics, result.domains):
        assert sum(row.counts.n_pro for row in rows) == result.total.counts.n_pro
        assert sum(row.n_clusters for row in rows) == result.total.n_clusters


def test_an_unknown_subtopic_is_refused(data: Path) -> None:
    with pytest.raises(AuditError, match="There is no subtopic 'bbnli/oceans/fin'"):
        run_audit(AuditOptions(model="planted:ideal", thresholds=limits(), data=data, subtopics=("bbnli/oceans/fin",)))


def test_suites_of_ones_own_stand_beside_the_others_or_alone(data: Path) -> None:
    own = Bbnli(data)
    own.name = "mine"
    for suite, expected in (("occupations", ["occupations", "mine"]), ("", ["mine"])):
        options = AuditOptions(model="planted:ideal", thresholds=limits(), suite=suite, suites=(own,))
        assert [each.name for each in run_audit(options).suites] == expected


def test_a_second_reading_that_breaks_is_told_after_the_files_are_written(data: Path, tmp_path: Path) -> None:
    options = AuditOptions(
        model="planted:ideal", also="planted:label-swapped", thresholds=limits(), data=data, report=tmp_path / "out"
    )
    with pytest.raises(AuditError, match="--bbnli-also=planted:label-swapped: says its outputs are"):
        run_audit(options)
    assert (tmp_path / "out" / "result.json").exists()


def test_a_baseline_is_saved_by_a_run_that_passes_and_by_no_other(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    for model, name in (("planted:ideal", "planted:ideal"), ("planted:always-pro", "planted:ideal")):
        run_audit(AuditOptions(model=model, thresholds=limits(), data=data, save_baseline=path))
        assert read_result(path).model.name == name


def test_a_part_or_a_run_with_a_crossed_limit_is_no_first_baseline(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    whole = AuditOptions(model="planted:ideal", thresholds=limits(), data=data, save_baseline=path)
    part = replace(whole, subtopics=("bbnli/oceans/fins_are_to_singing",))
    for options in (part, replace(whole, model="planted:always-pro"), replace(whole, model="planted:always-neutral")):
        run_audit(options)
        assert not path.exists()
    run_audit(replace(whole, exclude="bbnli/oceans/*"))
    assert len(read_result(path).subtopics) == 1


def test_a_report_would_not_replace_the_baseline(data: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    out = folder / "out"
    run_audit(AuditOptions(model="planted:ideal", thresholds=limits(), data=data, report=out))
    before = {path: path.read_bytes() for path in out.iterdir()}
    (folder / "link.json").symlink_to(out / "result.json")
    margin = limits(f"{LIMITS}regression: {{max_increase: 0.05}}\n")
    for given in (out, out / "result.json", folder / "link.json"):
        options = AuditOptions(model="planted:brittle", thresholds=margin, data=data, report=out)
        for name in ("baseline", *(() if given == out else ("save_baseline",))):
            told = rf"--bbnli-{name.replace('_', '-')}={given}: is in the report folder"
            with pytest.raises(AuditError, match=told):
                run_audit(replace(options, **cast("Any", {name: given})))
    assert {path: path.read_bytes() for path in out.iterdir()} == before


def test_nothing_is_written_where_the_audit_reads(data: Path, tmp_path: Path) -> None:
    """A result.json beside the weights would change their fingerprint, and one among the data would be a subtopic."""
    model = save_checkpoint(tmp_path / "model")
    before = sorted(tmp_path.rglob("*"))
    options = AuditOptions(model=str(model), thresholds=limits(), data=data)
    for folder in (data, data / "planets"):
        for changed in (replace(options, report=folder), replace(options, save_baseline=folder / "base.json")):
            with pytest.raises(OptionError, match="the suite bbnli reads its files there, and what is written would"):
                Audit(changed)
    link = tmp_path / "link"
    link.symlink_to(model)
    for changed in (
        replace(options, report=link),
        replace(options, also=str(model), model="planted:ideal", report=model),
    ):
        with pytest.raises(OptionError, match=f"the model {model} reads its files there"):
            Audit(changed)
    assert sorted(tmp_path.rglob("*")) == sorted([*before, link])
    Audit(replace(options, report=data / "planets" / "deep")).close()


def test_processes_that_read_two_models_are_told(data: Path) -> None:
    """A checkpoint may be replaced after one worker has hashed it, and before another has."""

    def open_audit(model: str) -> Audit:
        return Audit(AuditOptions(model=f"planted:{model}", thresholds=limits(), data=data))

    workers = [open_audit(model) for model in ("ideal", "ideal", "brittle")]
    packed = [worker.pack(path) for worker, path in zip(workers, [*workers[0].subtopics] * 2, strict=False)]
    for order in (packed, packed[::-1]):
        controller = open_audit("ideal")
        for n_unpacked, found in enumerate(order, 1):
            controller.unpack(found)
            is_mixed = n_unpacked == 3 or (order is not packed and n_unpacked == 2)
            assert bool(controller.troubles) == is_mixed
        assert "the processes of this run read two different models" in controller.troubles[0]
