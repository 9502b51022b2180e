"""Fine-tuning with copies of `augment` and without: corpora, arms, what is compared, the page. Tiny models only."""

import json
from collections import Counter
from dataclasses import asdict
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from bbnli_audit import Label, TextPair
from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli
from bbnli_audit.suites.occupations import OWN_DATA as OCCUPATIONS_DATA
from bbnli_audit.suites.occupations import Occupations
from tests.near import find_near
from tests.tiny_checkpoint import save_checkpoint
from tools.validity.examples import TRAINING, WORDINGS, Example, read_pairs_of
from tools.validity.mitigation import plan as planning
from tools.validity.mitigation.carry_out import AUDITS, audit_options, carry_out
from tools.validity.mitigation.corpora import SENTENCES, occupation_pairs, read_examples, write_corpus
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
