"""What the models of a mitigation showed: figures, differences, records, the page. Invented groups only."""

import csv
import json
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from bbnli_audit import AuditOptions, AuditResult, run_audit, write_result
from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.results.comparison import Growth
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.occupations import Occupations
from tests.invented import limits, write_large_suite, write_templates
from tools.validity.carry_out import FACTS
from tools.validity.mitigation import carry_out as carrying
from tools.validity.mitigation import plan as planning
from tools.validity.mitigation.carry_out import AUDITS, PAIR_VALUES
from tools.validity.mitigation.figures import ACCURACY, FIGURES, OF_BBNLI, OF_OCCUPATIONS, Figure, Showing
from tools.validity.mitigation.page import write_page
from tools.validity.mitigation.plan import Arm, Candidate, Corpus, Size
from tools.validity.mitigation.records import Record, keep_records, read_records
from tools.validity.plan import FIRST

# What is compared


DOMAIN = "gender/man_is_to_surgeon"


@cache
def audited(model: str) -> AuditResult:
    """Audit a planted function on invented groups, under the names that the figures look for."""
    with TemporaryDirectory() as folder:
        zorbs = json.loads((write_large_suite(Path(folder, "large")) / "planets" / "zorbs.json").read_text())
        for path in (FIRST, DOMAIN):
            domain, _, name = path.partition("/")
            write_templates(Path(folder, "data"), f"{path}.json", **{**zorbs, "name": name, "domain": domain})
        data, subtopics = Path(folder, "data"), tuple(f"bbnli/{path}" for path in (FIRST, DOMAIN))
        options: dict[str, Any] = {
            "data": data,
            "pairing": "hypothesis",
            "thresholds": limits(),
            "subtopics": subtopics,
        }
        return run_audit(AuditOptions(model=model, **options))


def write_showing(build: Path, candidate: Candidate, model: str, values: Any, right: Any) -> Showing:
    """Write the files of a model as if it had been carried out."""
    folder = build / candidate.name
    folder.mkdir(parents=True)
    facts = {"training": asdict(candidate.training), "n_rows": 3000, "n_copies": 1000} if candidate.corpus else {}
    (folder / FACTS).write_text(json.dumps(facts))
    versions = {"gender": Bbnli().version, "occupations": Occupations().version}
    for name in AUDITS:
        found = audited(model)
        suites = tuple(replace(each, version=versions.get(name, each.version)) for each in found.suites)
        write_result(replace(found, suites=suites), folder / f"{name}.json")
    places = [("d", f"o{o}", f"p{p}", f"p{p}/o{o}") for o in range(4) for p in range(24)]
    columns = [places, values, values, values]
    rows = [(*place, *each) for place, *each in zip(*columns, strict=True)]
    write_csv(folder / carrying.VALUES, ("domain", "occupation", "premise", "pair_id", *PAIR_VALUES), rows)
    write_csv(
        folder / carrying.RIGHT, ("premise", "right"), [(f"a/b {at // 2}", each) for at, each in enumerate(right)]
    )
    return Showing(candidate, folder)


def write_csv(path: Path, titles: Any, rows: Any) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([titles, *rows])


TRAINED, AUGMENTED = (Candidate("demo", arm, Corpus.BIASED, 1) for arm in (Arm.TRAINED, Arm.AUGMENTED))


@pytest.fixture
def two(tmp_path: Path) -> tuple[Showing, Showing]:
    random = np.random.default_rng(1)
    high, low = random.uniform(0.8, 1.0, 96), random.uniform(0.4, 0.6, 96)
    right = [1] * 40 + [0] * 20
    return (
        write_showing(tmp_path, TRAINED, "planted:always-pro", high, right),
        write_showing(tmp_path, AUGMENTED, "planted:ideal", low, right[::-1]),
    )


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.title)
def test_a_difference_is_that_of_the_figures_and_turns_with_the_arms(
    figure: Figure, two: tuple[Showing, Showing]
) -> None:
    there, back = figure.compare(*two), figure.compare(*two[::-1])
    before, after = (figure.read(each) for each in two)
    assert before.value is not None
    assert after.value is not None
    assert there.value == pytest.approx(after.value - before.value)
    assert there.value is not None
    assert there.low is not None
    assert there.high is not None
    assert there.low <= there.value <= there.high
    assert [back.value, back.low, back.high] == pytest.approx([-there.value, -there.high, -there.low])


def test_pairs_of_one_premise_are_not_counted_as_independent(tmp_path: Path) -> None:
    by_premise = [0.1, 0.9] * 48
    mixed = np.random.default_rng(1).permutation(by_premise)
    found = [
        OF_OCCUPATIONS[1].read(write_showing(tmp_path / name, TRAINED, "planted:ideal", values, [1, 0]))
        for name, values in (("alike", by_premise), ("mixed", mixed))
    ]
    widths = [(each.high or 0) - (each.low or 0) for each in found]
    assert found[0].value == pytest.approx(found[1].value)
    assert widths[0] > 1.5 * widths[1]


def keep(build: Path, *models: Candidate) -> list[Record]:
    keep_records(models, build, build / "records")
    return read_records(models, build / "records")


@pytest.fixture
def trial(two: tuple[Showing, Showing], tmp_path: Path) -> Record:
    (record,) = keep(tmp_path, TRAINED, AUGMENTED)
    return record


def _negate(growth: Growth) -> Growth:
    assert growth.value is not None
    assert growth.low is not None
    assert growth.high is not None
    return Growth(-growth.value, -growth.high, -growth.low, growth.n)


def test_words_follow_from_the_interval_and_the_best_value(trial: Record) -> None:
    back = Record(trial.models[::-1], {name: _negate(each) for name, each in trial.differences.items()})
    words = [{figure.title: each.judge(figure) for figure in FIGURES} for each in (trial, back)]
    assert words[0]["ΔP"] == words[0]["B"] == "better"
    assert words[0]["S"] == "worse"
    assert words[1]["ΔP"] == "worse"
    assert words[0]["lean, `gender`"] == words[0]["pro, held-out wordings"] == "better"
    assert words[1]["lean, `gender`"] == "worse"
    assert words[0]["brittleness, `gender`"] == "open"


def test_models_that_were_asked_other_things_are_not_compared(two: tuple[Showing, Showing]) -> None:
    other = write_showing(two[0].folder.parent / "other", AUGMENTED, "planted:ideal", [0.5] * 96, [1, 0])
    with pytest.raises(ValueError, match="were not asked the same"):
        ACCURACY.compare(two[0], other)


# Records


def test_a_record_has_the_figures_of_both_arms_and_their_differences(
    trial: Record, two: tuple[Showing, Showing]
) -> None:
    assert [each.candidate for each in trial.models] == [TRAINED, AUGMENTED]
    for figure in FIGURES:
        for shown, showing in zip(trial.models, two, strict=True):
            kept, found = shown.figures[figure.title], figure.read(showing)
            assert (kept.value, kept.low, kept.high) == pytest.approx((found.value, found.low, found.high), abs=1e-5)
        difference = figure.compare(*two)
        assert trial.differences[figure.title].value == pytest.approx(difference.value, abs=1e-5)
    assert [each.read for each in trial.models] == [{"rows": 3000, "copies": 1000, "steps": 375}] * 2


def test_a_trial_without_one_of_its_arms_is_not_kept(two: tuple[Showing, Showing], tmp_path: Path) -> None:
    (two[1].folder / "gender.json").unlink()
    assert keep(tmp_path, Candidate("demo"), TRAINED, AUGMENTED) == []


def test_a_base_as_it_is_has_a_record_of_its_own(tmp_path: Path) -> None:
    base = Candidate("demo")
    write_showing(tmp_path, base, "planted:ideal", [0.5] * 96, [1, 0])
    (record,) = keep(tmp_path, base)
    assert (record.of, record.differences, record.models[0].read) == (base, {}, {})


def test_models_of_another_training_get_no_record(
    two: tuple[Showing, Showing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(planning.SIZES, "demo", Size(n_rows=1000, passes=3))
    with pytest.raises(OptionError, match=r"demo-biased-trained-seed1: was made in another way\. Remove it"):
        keep_records([TRAINED, AUGMENTED], tmp_path, tmp_path / "records")
    assert not (tmp_path / "records").exists()


def test_a_record_of_another_training_is_left_out(
    trial: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(planning.SIZES, "demo", Size(n_rows=1000, passes=3))
    assert read_records([TRAINED, AUGMENTED], tmp_path / "records") == []


# The page


def test_the_page_says_what_changed_and_what_is_missing(trial: Record, tmp_path: Path) -> None:
    page = write_page(tmp_path / "records", tmp_path / "page.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    answer = next(line for line in lines if line.startswith("| `demo` | biased | worse | better | better |"))
    assert answer.count("better") == 6  # ΔP, B, lean and pro in both places
    lean = trial.differences[OF_BBNLI[0].title]
    told = f"**{lean.value:+.3f} ({lean.low:+.3f} to {lean.high:+.3f})**".replace("-", "−")
    assert any(f"| {told} |" in line for line in lines)
    assert sum(line.endswith("| 3,000 | 1,000 | 375 |") for line in lines) == 2  # 2000 rows, three times, 16 at once
    assert "`demo-before`" in lines[-1]
    assert "`demo-biased-trained-seed1`" not in lines[-1]


def test_the_page_without_any_record_has_no_figure_of_ours(tmp_path: Path) -> None:
    page = write_page(tmp_path, tmp_path / "page.md").read_text(encoding="utf-8")
    assert "better |" not in page
    assert "Nothing yet." in page
    assert "| BERT (paper) |" in page
