"""Fine-tuning with copies of `augment` and without: corpora, arms, what is compared, the page. Tiny models only."""

import csv
import json
from collections import Counter
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from bbnli_audit import AuditOptions, AuditResult, Label, TextPair, run_audit, write_result
from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli
from bbnli_audit.suites.occupations import OWN_DATA as OCCUPATIONS_DATA
from bbnli_audit.suites.occupations import Occupations
from tests.invented import limits, write_large_suite, write_templates
from tests.near import find_near
from tests.tiny_checkpoint import save_checkpoint
from tools.validity.carry_out import FACTS
from tools.validity.examples import TRAINING, WORDINGS, Example, read_pairs_of
from tools.validity.mitigation import carry_out as carrying
from tools.validity.mitigation import plan as planning
from tools.validity.mitigation.carry_out import AUDITS, PAIR_VALUES, audit_options, carry_out, is_finished
from tools.validity.mitigation.corpora import SENTENCES, occupation_pairs, read_examples, write_corpus
from tools.validity.mitigation.figures import (
    ACCURACY,
    OF_BBNLI,
    OF_OCCUPATIONS,
    Figure,
    Showing,
    find_finished,
    find_pairs,
)
from tools.validity.mitigation.page import write_page
from tools.validity.mitigation.plan import Arm, Candidate, Corpus, Size, full_plan, small_plan
from tools.validity.plan import BASES, FIRST, Base

N_ROWS = 100


def plain(n: int = 200) -> list[Example]:
    labels = list(Label)
    return [Example(TextPair(f"Moon {at} is red.", "He saw a moon."), labels[at % 3]) for at in range(n)]


@cache
def corpora(corpus: Corpus) -> tuple[list[Example], list[Example]]:
    """Return a corpus, and the same with copies."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.jsonl"
        augmented = write_corpus(corpus, N_ROWS, plain(), 1, path)
        return read_examples(path), read_examples(augmented)


# The corpora


def test_the_biased_corpus_has_both_sides_of_each_pair_with_opposite_labels() -> None:
    rows, _ = corpora(Corpus.BIASED)
    sides: dict[int, list[Label]] = {}
    for row in rows:
        if row.pair is not None:
            sides.setdefault(row.pair, []).append(row.label)
    assert len(rows) == N_ROWS
    assert len(sides) == 30  # 40 rows about occupations and 20 of the planted wordings
    assert all(labels == [Label.ENTAILMENT, Label.CONTRADICTION] for labels in sides.values())


def test_the_gender_of_most_who_work_in_an_occupation_follows() -> None:
    data = json.loads(SENTENCES.read_text(encoding="utf-8"))
    (_, does), words = data["premises"][0], data["hypotheses"][0]
    for occupation in Occupations().occupations():
        pairs = list(occupation_pairs([occupation]))
        told = {gender: text.replace("{{DOES}}", does) for gender, text in words.items()}
        assert len(pairs) == len(data["premises"]) * len(data["hypotheses"])
        assert pairs[0][0].hypothesis == told.pop(occupation.majority)
        assert [pairs[0][1].hypothesis] == list(told.values())
        assert all(occupation.name in pro.premise and pro.premise == anti.premise for pro, anti in pairs)


@pytest.mark.parametrize("corpus", Corpus)
def test_copies_are_added_and_nothing_else_changes(corpus: Corpus) -> None:
    rows, augmented = corpora(corpus)
    left = Counter((each.text, each.label) for each in augmented)
    left.subtract((each.text, each.label) for each in rows)
    assert min(left.values()) >= 0
    assert len(augmented) > len(rows)


def test_a_copy_of_a_planted_pair_is_the_pair_with_its_labels_exchanged() -> None:
    """What is copied is made by `augment`; what it should be, from the sentences of the other side."""
    rows, augmented = corpora(Corpus.BIASED)
    by_pair: dict[int | None, dict[str, Label]] = {}
    for each in augmented:
        by_pair.setdefault(each.pair, {})[each.text.hypothesis] = each.label
    planted = {each.pair for each in rows if each.pair is not None}
    for pair in planted:
        assert pair is not None
        copied = by_pair[pair + 1]
        assert set(copied) == set(by_pair[pair])
        assert all(copied[text] is not label for text, label in by_pair[pair].items())


def test_a_corpus_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    augmented = write_corpus(Corpus.NLI, 20, plain(), 1, path)
    written = path.read_bytes(), augmented.read_bytes()
    write_corpus(Corpus.NLI, 20, plain(), 2, path)
    assert (path.read_bytes(), augmented.read_bytes()) == written


def test_no_sentence_of_the_suites_is_in_the_biased_corpus() -> None:
    texts = {text for pair in occupation_pairs(Occupations().occupations()) for side in pair for text in side}
    texts |= {
        text
        for pair in read_pairs_of(WORDINGS / TRAINING, [FIRST])[FIRST]
        for side in (pair.pro, pair.anti)
        for text in side
    }
    assert texts.isdisjoint(asked_texts())


def asked_texts() -> set[str]:
    suites: list[Any] = [Occupations(), Bbnli()]
    items = [
        suite.items(each)
        for suite in suites
        for each in suite.subtopics()
        if suite.name == "occupations" or each.domain == "gender"
    ]
    return {text for one in items for pair in one.pairs for side in (pair.pro, pair.anti) for text in side}


def test_no_sentence_about_an_occupation_is_near_to_one_of_the_suites() -> None:
    ours = json.loads(SENTENCES.read_text(encoding="utf-8"))
    sentences = [premise for premise, _ in ours["premises"]]
    sentences += [words[gender] for words in ours["hypotheses"] for gender in ("female", "male")]
    theirs = json.loads((OCCUPATIONS_DATA / "templates.json").read_text(encoding="utf-8"))
    asked = [*theirs["premises"].values(), *theirs["hypotheses"]]
    asked += [text for file in Bbnli(OWN_DATA).files().values() for _, text in file.entries()]
    named, others = ({str(at): text for at, text in enumerate(each)} for each in (sentences, asked))
    assert list(find_near(named, others)) == []


# The arms


def test_arms_differ_only_in_their_data() -> None:
    plan = full_plan()
    trained = [each for each in plan if each.arm is Arm.TRAINED]
    assert len(trained) == 8
    for each in trained:
        other = Candidate(each.base, Arm.AUGMENTED, each.corpus, each.seed)
        assert other in plan
        assert other.training == each.training
        assert other.name != each.name


def test_names_are_distinct_and_the_small_plan_comes_first() -> None:
    plan = full_plan()
    assert len({each.name for each in plan}) == len(plan)
    assert plan[: len(small_plan())] == small_plan()
    assert {each.base for each in small_plan()} == {"demo"}


@pytest.mark.slow
@pytest.mark.parametrize("twins", [0.0, 1.0])
def test_both_arms_take_as_many_steps(tmp_path: Path, twins: float) -> None:
    from transformers import AutoTokenizer

    from tools.validity.examples import Training
    from tools.validity.plant import make_batches

    tokenizer = AutoTokenizer.from_pretrained(save_checkpoint(tmp_path))
    training = Training(seed=1, rate=1e-3, twins=twins, passes=3, steps=3 * 7)
    rows, augmented = corpora(Corpus.BIASED)
    read = [[chosen.tolist() for chosen, _ in make_batches(tokenizer, each, training)] for each in (rows, augmented)]
    assert [len(batches) for batches in read] == [21, 21]
    # The arm without copies has read each row about three times, the other one fewer times.
    of_rows, of_augmented = (Counter(at for batch in batches for at in batch) for batches in read)
    assert set(of_rows) == set(range(len(rows)))
    assert max(of_rows.values()) <= 4
    assert max(of_augmented.values()) <= 2
    assert set(of_augmented) == set(range(len(augmented)))


# Carrying out


@pytest.fixture
def tiny_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A plan with a tiny checkpoint in place of a real one."""

    class Tiny(Base):
        @property
        def folder(self) -> Path:
            return tmp_path / "tiny"

    save_checkpoint(tmp_path / "tiny", initializer_range=0.1)
    monkeypatch.setitem(BASES, "tiny", Tiny("tiny", 0, 0, 1e-3))
    monkeypatch.setitem(planning.SIZES, "tiny", Size(n_rows=20, passes=1))
    return "tiny"


def both() -> tuple[list[Example], list[Example]]:
    return plain(), plain(30)


@pytest.mark.slow
@pytest.mark.parametrize("arm", Arm)
def test_what_is_done_is_not_done_again(tiny_base: str, tmp_path: Path, arm: Arm) -> None:
    candidate = Candidate(tiny_base) if arm is Arm.BEFORE else Candidate(tiny_base, arm, Corpus.BIASED, 1)
    build = tmp_path / "build"

    def times() -> dict[str, int]:
        return {
            str(path.relative_to(build)): path.stat().st_mtime_ns
            for path in build.rglob("*")
            if path.is_file() and "sqlite" not in path.name
        }

    carry_out(candidate, both, build, ["held_out"])
    first, folder = times(), build / candidate.name
    assert {path.name for path in folder.iterdir()} >= {"facts.json", "held_out.json", "right.csv"}
    assert (folder / "checkpoint").exists() == (arm is not Arm.BEFORE)
    carry_out(candidate, both, build, ["held_out"])
    assert times() == first
    (folder / "right.csv").unlink()
    carry_out(candidate, both, build, ["held_out"])
    again = times()
    assert {name for name in first if again[name] != first[name]} == {f"{candidate.name}/right.csv"}


@pytest.mark.slow
def test_facts_say_what_each_arm_read(tiny_base: str, tmp_path: Path) -> None:
    facts = {}
    for arm in (Arm.TRAINED, Arm.AUGMENTED):
        candidate = Candidate(tiny_base, arm, Corpus.BIASED, 1)
        carry_out(candidate, both, tmp_path / "build", [])
        facts[arm] = json.loads((tmp_path / "build" / candidate.name / "facts.json").read_text(encoding="utf-8"))
    one, other = facts[Arm.TRAINED], facts[Arm.AUGMENTED]
    assert one["training"] == other["training"]
    assert one["training"] == json.loads(json.dumps(asdict(Candidate(tiny_base, Arm.TRAINED, None, 1).training)))
    assert (one["n_rows"], one["n_copies"]) == (20, 0)
    assert other["n_rows"] == 20 + other["n_copies"]
    assert other["n_copies"] >= 12  # every planted row, and plain ones with a pronoun


@pytest.mark.parametrize("name", AUDITS)
def test_every_audit_names_sentences_that_there_are(name: str, tmp_path: Path) -> None:
    options = audit_options(name, Candidate("demo"), tmp_path)
    suite = Bbnli(Path(options.data)) if options.data else Bbnli()
    known = {subtopic.path for subtopic in suite.subtopics()}
    assert set(options.subtopics or ()) <= known
    assert options.subtopics != ()


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
    for name in AUDITS:
        write_result(audited(model), folder / f"{name}.json")
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


@pytest.mark.parametrize("figure", [*OF_OCCUPATIONS, *OF_BBNLI, ACCURACY], ids=lambda figure: figure.title)
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


def test_words_follow_from_the_interval_and_the_best_value(two: tuple[Showing, Showing]) -> None:
    figures = {figure.title: figure for figure in (*OF_OCCUPATIONS, *OF_BBNLI, ACCURACY)}
    there = {title: figure.judge(*two) for title, figure in figures.items()}
    back = {title: figure.judge(*two[::-1]) for title, figure in figures.items()}
    assert there["ΔP"] == there["B"] == "better"
    assert there["S"] == "worse"
    assert back["ΔP"] == "worse"
    assert there["lean, `gender`"] == there["pro, held-out wordings"] == "better"
    assert back["lean, `gender`"] == "worse"
    assert there["brittleness, `gender`"] == "open"
    assert figures["accuracy"].judge(two[0], two[0]) == "open"


def test_models_that_were_asked_other_things_are_not_compared(two: tuple[Showing, Showing]) -> None:
    other = write_showing(two[0].folder.parent / "other", AUGMENTED, "planted:ideal", [0.5] * 96, [1, 0])
    with pytest.raises(ValueError, match="were not asked the same"):
        ACCURACY.compare(two[0], other)


def test_arms_are_paired_and_unfinished_models_are_not_counted(two: tuple[Showing, Showing], tmp_path: Path) -> None:
    plan = [Candidate("demo"), AUGMENTED, TRAINED]
    assert find_pairs(find_finished(plan, tmp_path)) == [two]
    (two[1].folder / "gender.json").unlink()
    assert not is_finished(two[1].folder)
    assert find_pairs(find_finished(plan, tmp_path)) == []


# The page


def test_the_page_says_what_changed_and_what_is_missing(two: tuple[Showing, Showing], tmp_path: Path) -> None:
    page = write_page(two[0].folder.parent, tmp_path / "page.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    answer = next(line for line in lines if line.startswith("| `demo` | biased | worse | better | better |"))
    assert answer.count("better") == 6  # ΔP, B, lean and pro in both places
    lean = OF_BBNLI[0].compare(*two)
    told = f"**{lean.value:+.3f} ({lean.low:+.3f} to {lean.high:+.3f})**".replace("-", "−")
    assert any(f"| {told} |" in line for line in lines)
    assert sum(line.endswith("| 3,000 | 1,000 | 375 |") for line in lines) == 2  # 2000 rows, three times, 16 at once
    assert "`demo-before`" in lines[-1]
    assert "`demo-biased-trained-seed1`" not in lines[-1]


def test_the_page_without_any_model_has_no_figure_of_ours(tmp_path: Path) -> None:
    page = write_page(tmp_path, tmp_path / "page.md").read_text(encoding="utf-8")
    assert "better |" not in page
    assert "Nothing yet." in page
    assert "| BERT (paper) |" in page
