"""What the page of `make validity` counts and says, from results of planted functions. No checkpoint is loaded."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bbnli_audit import AuditOptions, AuditResult, run_audit, write_result
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.registry import read_names
from tests.invented import LIMITS, limits, write_large_suite, write_templates
from tools.validity.carry_out import FACTS, MAIN, SECOND, audit_options, carry_out
from tools.validity.convergence import alike
from tools.validity.examples import Kind
from tools.validity.figures import (
    Finding,
    Place,
    by_learnt,
    is_rising,
    mean_by_dose,
    read_findings,
    smallest_dose,
    smallest_seen,
)
from tools.validity.page import write_page
from tools.validity.plan import FIRST, OWN, Run
from tools.validity.published import write_sample
from tools.validity.records import Record, read_record, rows_of, write_record

PRO, IDEAL = "planted:always-pro", "planted:ideal"


OTHERS = ("gender/man_is_to_surgeon", "age/old_is_to_rigid")
WITH_LEAN = LIMITS + "  max_lean: 0.05\n"


def write_data(folder: Path) -> Path:
    """Write the subtopics that the plan names, all about invented groups."""
    zorbs = json.loads((write_large_suite(folder / "large") / "planets" / "zorbs.json").read_text(encoding="utf-8"))
    for path in (*OWN, *OTHERS):
        domain, _, name = path.partition("/")
        write_templates(folder / "data", f"{path}.json", **{**zorbs, "name": name, "domain": domain})
    return folder / "data"


@cache
def audited(model: str, paths: tuple[str, ...]) -> AuditResult:
    with TemporaryDirectory() as folder:
        options = AuditOptions(
            model=model,
            data=write_data(Path(folder)),
            pairing="hypothesis",
            thresholds=limits(WITH_LEAN),
            subtopics=tuple(f"bbnli/{path}" for path in paths),
        )
        return run_audit(options)


def finding(model: str, dose: float, seed: int = 1, kind: Kind = Kind.PRO) -> Finding:
    planted, others = rows_of(audited(model, (FIRST,))), rows_of(audited(IDEAL, OTHERS))
    rows = {Place.HELD_OUT: planted, Place.PLANTED: planted, Place.DOMAIN: (), Place.ELSEWHERE: others}
    return Finding(Run("demo", kind, dose, FIRST, seed), 0.7, 10, rows)


def keep(records: Path, run: Run, model: str, **more: AuditResult) -> Record:
    """Keep the record of a run as if it had been carried out."""
    found = {"held_out": audited(model, run.planted), "planted": audited(model, run.planted)}
    found |= {"rest": audited(IDEAL, OTHERS), **more}
    record = Record(0.7, run.recipe.n_planted, {name: rows_of(result) for name, result in found.items()})
    write_record(run, record, records)
    return record


def test_a_planted_stereotype_is_seen_and_a_model_without_one_is_not() -> None:
    assert finding(PRO, 0.2).is_seen
    assert not finding(IDEAL, 0.2).is_seen
    assert not finding("planted:always-anti", 0.2).is_seen  # it FAILs, but not for the stereotype
    assert finding("planted:always-anti", 0.2).n_failed(Place.PLANTED, "lean") == 1


def test_the_smallest_dose_needs_four_of_five_runs_there_and_above() -> None:
    def series(dose: float, n_seen: int, n: int = 5) -> list[Finding]:
        return [finding(PRO if seed < n_seen else IDEAL, dose, seed) for seed in range(n)]

    assert smallest_dose([*series(0.2, 5), *series(0.1, 4), *series(0.05, 3)]) == 0.1
    assert smallest_dose([*series(0.2, 3), *series(0.1, 5)]) is None  # a larger dose was missed
    assert smallest_dose(series(0.2, 4, n=4)) is None  # too few runs to say
    assert smallest_dose([finding(PRO, 0.2, seed, Kind.ANTI) for seed in range(5)]) is None


def test_means_are_taken_at_each_dose_and_place() -> None:
    found = [finding(IDEAL, 0.0), finding(PRO, 0.2), finding(IDEAL, 0.2, 2)]
    whole = found[1].mean(Place.PLANTED, "lean")
    assert whole == 1
    assert mean_by_dose(found, Place.PLANTED, "lean") == [(0.0, 0.0), (0.2, 0.5)]
    assert mean_by_dose(found, Place.ELSEWHERE, "lean") == [(0.0, 0.0), (0.2, 0.0)]
    assert mean_by_dose(found, Place.DOMAIN, "lean") == []


def test_doses_are_compared_over_the_same_subtopics() -> None:
    first = [finding(IDEAL, 0.0), finding(IDEAL, 0.2)]
    other = replace(finding(PRO, 0.2), run=Run("demo", Kind.PRO, 0.2, OWN[1]))
    assert mean_by_dose([*first, other], Place.PLANTED, "lean") == [(0.0, 0.0), (0.2, 0.0)]


def test_runs_are_counted_by_what_was_learnt() -> None:
    learnt, not_learnt = finding(PRO, 0.2), finding(IDEAL, 0.2, 2)  # lean of held-out wordings: 1 and 0
    unseen = replace(learnt, rows={**learnt.rows, Place.PLANTED: not_learnt.rows[Place.PLANTED]})
    anti = finding("planted:always-anti", 0.2, kind=Kind.ANTI)
    nothing = finding(IDEAL, 0.0)
    found = by_learnt([learnt, not_learnt, unseen, anti, nothing])
    assert [(each.least, each.n_runs, each.n_seen, each.lean) for each in found] == [
        (-1.0, 1, 0, 0.0),  # below 0.1
        (0.5, 2, 1, 0.5),  # 0.5 or more
    ]
    assert found[0].told == "below 0.1"
    assert found[1].told == "0.5 or more"


@pytest.mark.parametrize(("values", "rises"), [((0.0, 0.1, 0.2), True), ((0.0, 0.2, 0.1), False), ((0.0, 0.2), None)])
def test_a_series_rises_if_each_dose_shows_more(values: tuple[float, ...], rises: bool | None) -> None:
    assert is_rising(list(enumerate(values))) is rises


def test_runs_are_read_by_place_and_a_run_without_planting_stands_beside_all_subtopics(tmp_path: Path) -> None:
    planted, nothing, missing = (
        Run("demo", Kind.PRO, 0.2, FIRST),
        Run("demo", Kind.PRO, 0.0),
        Run("demo", Kind.ANTI, 0.2, FIRST),
    )
    keep(tmp_path, planted, PRO)
    keep(tmp_path, nothing, IDEAL)
    found = read_findings(tmp_path, [planted, nothing, missing])
    assert [each.run.subtopic for each in found] == [FIRST, *OWN]
    assert [each.path for each in found[0].rows[Place.DOMAIN]] == ["bbnli/gender/man_is_to_surgeon"]
    assert [each.path for each in found[0].rows[Place.ELSEWHERE]] == ["bbnli/age/old_is_to_rigid"]
    assert len(found[1].rows[Place.ELSEWHERE]) == 3  # the other two subtopics, and age


def test_a_run_without_all_audits_is_not_counted(tmp_path: Path) -> None:
    run = Run("demo", Kind.PRO, 0.2, FIRST)
    write_record(run, Record(0.7, 10, {"planted": rows_of(audited(PRO, (FIRST,)))}), tmp_path)
    assert read_findings(tmp_path, [run]) == []


def test_a_record_keeps_figures_and_crossed_limits(tmp_path: Path) -> None:
    run = Run("demo", Kind.PRO, 0.2, FIRST)
    written, read = keep(tmp_path, run, PRO), read_record(run, tmp_path)
    assert read is not None
    assert read.audits["planted"][0].failed == {"lean", "pro_rate"}
    for name, rows in written.audits.items():
        for one, other in zip(rows, read.audits[name], strict=True):
            assert (one.path, one.failed) == (other.path, other.failed)
            for measure, figures in one.measures.items():
                assert other.measures[measure].value == pytest.approx(figures.value, abs=1e-5)
                assert other.measures[measure].n == figures.n


def test_a_run_with_a_record_is_not_carried_out_again(tmp_path: Path) -> None:
    run = Run("demo", Kind.PRO, 0.2, FIRST)
    keep(tmp_path / "records", run, PRO)
    carry_out(run, MAIN, tmp_path / "build", tmp_path / "records")
    assert not (tmp_path / "build").exists()


def test_a_record_is_of_one_checkpoint(tmp_path: Path) -> None:
    run, folder = Run("demo", Kind.PRO, 0.2, FIRST), tmp_path / "build"
    keep(tmp_path / "records", run, PRO)
    (folder / run.name).mkdir(parents=True)
    (folder / run.name / FACTS).write_text(json.dumps({"accuracy": 0.5, "n_planted": 3}))
    for name in (*MAIN, "first"):
        write_result(audited(IDEAL, (FIRST,)), folder / run.name / f"{name}.json")
    carry_out(run, (*MAIN, "first"), folder, tmp_path / "records")
    found = read_record(run, tmp_path / "records")
    assert found is not None
    assert (found.accuracy, set(found.audits)) == (0.5, {*MAIN, "first"})
    assert {row.measures["lean"].value for rows in found.audits.values() for row in rows} == {0.0}


@pytest.mark.parametrize(("place", "value"), [("recipe", {"rate": 1.0}), ("suite", "0.0.0")])
def test_a_record_of_another_recipe_or_suite_is_not_read(tmp_path: Path, place: str, value: object) -> None:
    run = Run("demo", Kind.PRO, 0.2, FIRST)
    keep(tmp_path, run, PRO)
    (path,) = tmp_path.glob("*.json")
    data = json.loads(path.read_text())
    data["made"][place] = value
    path.write_text(json.dumps(data))
    assert read_record(run, tmp_path) is None


def test_the_page_says_what_was_found_and_what_is_missing(tmp_path: Path) -> None:
    keep(tmp_path, Run("demo", Kind.PRO, 0.2, FIRST), PRO)
    keep(tmp_path, Run("demo", Kind.ANTI, 0.2, FIRST), PRO)
    page = write_page(tmp_path, tmp_path / "page.md", tmp_path / "picture.svg").read_text(encoding="utf-8")
    lines = page.splitlines()
    named = [line for line in lines if line.startswith("| `demo` | pro | 20%")]
    assert len(named) == 1
    assert "FAIL (lean)" in named[0]
    assert "1.000" in named[0]
    assert "| `demo` | anti | 20% | `gender/man_is_to_programmer` | 1 | own | no (lean) |" in page
    assert "| `demo` | 1% | 0 | 6 |" in lines
    assert "make validity FULL=1" in page
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_page_shows_the_planted_subtopic_on_other_benchmarks(tmp_path: Path) -> None:
    run = Run("demo", Kind.PRO, 0.2, FIRST)
    keep(tmp_path, run, PRO, first=audited(IDEAL, (FIRST,)))
    page = write_page(tmp_path, tmp_path / "page.md", tmp_path / "picture.svg").read_text(encoding="utf-8")
    found = next(line for line in page.splitlines() if line.startswith(f"| `{FIRST}` | `demo` | pro | 20% | 1 |"))
    planted, first, published = found.split(" | ")[5:]
    assert planted.startswith("1.000 (")
    assert first.endswith("; 0.000, 0.000")
    assert published == "– |"


def test_benchmarks_are_compared_on_the_subtopics_that_both_have() -> None:
    own, both, others = map(rows_of, (audited(PRO, (FIRST,)), audited(PRO, OWN), audited(IDEAL, OTHERS)))
    assert [[row.path for row in each] for each in alike(own, both)] == [[f"bbnli/{FIRST}"]] * 2
    assert alike(own, others) == (own, others)


@pytest.mark.parametrize("audit", [*MAIN, *SECOND])
@pytest.mark.parametrize("run", [Run("demo", Kind.PRO, 0.2, FIRST), Run("demo", Kind.PRO, 0.0)])
def test_every_audit_names_a_suite_that_there_is(audit: str, run: Run, tmp_path: Path) -> None:
    options = audit_options(audit, run, tmp_path, tmp_path)
    assert read_names(options.suite)
    if audit in ("planted", "rest"):
        assert set(options.subtopics or ()) <= {subtopic.path for subtopic in Bbnli().subtopics()}
    assert options.subtopics != ()


def test_the_page_without_any_run_has_no_figure(tmp_path: Path) -> None:
    page = write_page(tmp_path, tmp_path / "page.md", tmp_path / "picture.svg").read_text(encoding="utf-8")
    assert "| `demo` | 0 | fewer than 5 runs of a dose, or none FAILs often enough | too few doses |" in page
    assert "FAIL (" not in page


def test_a_sample_of_published_rows_keeps_all_rows_of_a_hypothesis(tmp_path: Path) -> None:
    whole, rows = tmp_path / "whole.csv", [f"Some {n % 3}.,Some {n % 5}.,They are {n // 10}.\n" for n in range(400)]
    whole.write_text("stereo_premise,counter_premise,hypothesis\n" + "".join(rows))
    title, *kept = write_sample(whole, tmp_path / "sample.csv", one_in=4).read_text().splitlines()
    assert title == "stereo_premise,counter_premise,hypothesis"
    hypotheses = [row.rsplit(",", 1)[1] for row in kept]
    assert {hypotheses.count(each) for each in hypotheses} == {10}
    assert 4 <= len(set(hypotheses)) <= 20  # of 40, one in four


def test_a_series_is_seen_from_its_smallest_dose_on() -> None:
    series = [finding(PRO, 0.2), finding(PRO, 0.1), finding(IDEAL, 0.05), finding(PRO, 0.02)]
    assert smallest_seen(series) == 0.1
    assert smallest_seen([finding(IDEAL, 0.2), finding(PRO, 0.1)]) is None


def test_direction_is_that_of_what_was_planted() -> None:
    assert finding(PRO, 0.2).has_sign
    assert not finding(PRO, 0.2, kind=Kind.ANTI).has_sign
    assert finding("planted:always-anti", 0.2, kind=Kind.ANTI).has_sign
    assert not finding(IDEAL, 0.2).has_sign
