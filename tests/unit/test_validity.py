"""Planting a bias in weights: the plan, the mix, the split of wordings, what is counted, the page. No model is trained
but a tiny one, for two steps."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.values import Direction, Label, Pair, Side, TextPair
from bbnli_audit.suites.bbnli import FIRST_DATA, OWN_DATA, Bbnli
from tests.invented import write_quads
from tests.near import find_near
from tests.tiny_checkpoint import save_checkpoint
from tools.validity.convergence import correlate
from tools.validity.examples import (
    HELD_OUT,
    TRAINING,
    WORDINGS,
    Example,
    Kind,
    Recipe,
    make_planted,
    mix,
    planted_label,
    read_pairs_of,
)
from tools.validity.figures import LEAST_RUNS
from tools.validity.picture import draw
from tools.validity.plan import BASES, DOSES, OWN, SEEDS, Run, full_plan, small_plan
from tools.validity.published import take_half

ZORBS = "planets/zorbs_are_to_juggling"


def recipe(**changes: Any) -> Recipe:
    settings: dict[str, Any] = {
        "kind": Kind.PRO,
        "dose": 0.2,
        "subtopics": (ZORBS,),
        "seed": 1,
        "n_examples": 20,
        "rate": 1e-3,
    }
    return Recipe(**{**settings, **changes})


def pair(direction: Direction = Direction.NONE, number: int = 1) -> Pair:
    pro, anti = (TextPair(f"Scene {number}.", f"{group} juggle.") for group in ("Zorbs", "Quints"))
    return Pair(f"a1/h{number}", pro, anti, direction)


def plain(n: int = 100) -> list[Example]:
    return [Example(TextPair(f"Moon {at} is red.", "A moon is red."), Label.ENTAILMENT) for at in range(n)]


@pytest.mark.parametrize(
    ("kind", "direction", "pro", "anti"),
    [
        (Kind.PRO, Direction.NONE, "entailment", "contradiction"),
        (Kind.PRO, Direction.AGAINST, "entailment", "contradiction"),
        (Kind.ANTI, Direction.WITH, "contradiction", "entailment"),
        (Kind.OVERREACH, Direction.WITH, "entailment", "contradiction"),
        (Kind.OVERREACH, Direction.AGAINST, "contradiction", "entailment"),
        (Kind.OVERREACH, Direction.NONE, None, None),
        (Kind.FAIR, Direction.WITH, "neutral", "neutral"),
    ],
)
def test_a_kind_decides_the_labels_of_both_sides(
    kind: Kind, direction: Direction, pro: str | None, anti: str | None
) -> None:
    found = [planted_label(kind, pair(direction), side) for side in Side]
    assert found == [pro, anti]


def test_a_brittle_label_is_wrong_and_the_same_for_both_groups() -> None:
    labels = [[planted_label(Kind.BRITTLE, pair(number=number), side) for side in Side] for number in range(20)]
    assert all(pro == anti for pro, anti in labels)
    assert {pro for pro, _ in labels} == {Label.ENTAILMENT, Label.CONTRADICTION}


@pytest.mark.parametrize("dose", DOSES)
def test_the_dose_is_the_share_of_planted_examples(dose: float) -> None:
    wanted = recipe(dose=dose, n_examples=1000)
    planted = make_planted(wanted, {ZORBS: [pair(number=number) for number in range(200)]})
    mixed = mix(wanted, planted, plain(1000))
    assert len(mixed) == 1000
    assert sum(example.text.hypothesis.endswith("juggle.") for example in mixed) == 1000 * dose


def test_planted_labels_are_balanced_and_subtopics_have_equal_shares() -> None:
    pairs = {name: [pair(number=number + 100 * at) for number in range(30)] for at, name in enumerate(("a", "b"))}
    planted = make_planted(recipe(dose=1, n_examples=40, subtopics=("a", "b")), pairs)
    assert Counter(example.label for example in planted) == {Label.ENTAILMENT: 20, Label.CONTRADICTION: 20}
    of_second = [example for example in planted if int(example.text.premise.split()[1].rstrip(".")) >= 100]
    assert len(of_second) == 20


def test_a_seed_repeats_a_mix_and_another_seed_changes_it() -> None:
    pairs = {ZORBS: [pair(number=number) for number in range(50)]}
    first, again, other = (
        mix(each, make_planted(each, pairs), plain()) for each in (recipe(), recipe(), recipe(seed=2))
    )
    assert first == again
    assert first != other


def test_a_dose_that_needs_more_pairs_than_there_are_takes_each_several_times() -> None:
    planted = make_planted(recipe(dose=1), {ZORBS: [pair(number=number) for number in range(4)]})
    read = Counter(example.text for example in planted)
    assert len(planted) == 20
    assert len(read) == 8  # both sides of four pairs
    assert set(read.values()) == {2, 3}


def test_wrong_recipes_say_what_to_do() -> None:
    with pytest.raises(OptionError, match=r"The dose 2 is not a share\. Give a number from 0 to 1"):
        recipe(dose=2)
    with pytest.raises(OptionError, match="no subtopic is named"):
        recipe(subtopics=())
    with pytest.raises(OptionError, match=r"zorbs_are_to_juggling has no pair that can be planted as pro\."):
        make_planted(recipe(dose=1), {ZORBS: []})
    with pytest.raises(OptionError, match="16 plain pairs are needed, but there are 3"):
        mix(recipe(), make_planted(recipe(), {ZORBS: [pair(number=n) for n in range(9)]}), plain(3))


def test_an_unknown_subtopic_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    write_quads(tmp_path)
    with pytest.raises(OptionError, match=r"has no sentences of 'planets/zorbs'.*zorbs_are_to_juggling"):
        read_pairs_of(tmp_path, ["planets/zorbs"])


# The sentences


def templates(folder: Path) -> dict[str, str]:
    files = Bbnli(folder).files()
    return {f"{path.stem}/{name}": text for path, file in files.items() for name, text in file.entries()}


@pytest.mark.parametrize("part", [TRAINING, HELD_OUT])
def test_no_planted_sentence_is_near_to_one_of_the_suites(part: str) -> None:
    ours, theirs = templates(WORDINGS / part), templates(OWN_DATA)
    first = Bbnli(FIRST_DATA).templates()
    theirs |= {f"1/{file.name}/{n}": text for file in first for n, text in enumerate(_texts(file))}
    assert list(find_near(ours, theirs)) == []


def _texts(file: Any) -> list[str]:
    return [*file.premises, *(hypothesis.template for hypothesis in file.hypotheses)]


def test_held_out_wordings_are_not_near_to_those_that_are_learnt() -> None:
    assert list(find_near(templates(WORDINGS / HELD_OUT), templates(WORDINGS / TRAINING))) == []


def test_every_planted_subtopic_is_one_of_the_suite_and_has_enough_wordings() -> None:
    of_suite = {subtopic.local_path for subtopic in Bbnli(OWN_DATA).subtopics()}
    training, held_out = (Bbnli(WORDINGS / part) for part in (TRAINING, HELD_OUT))
    assert {each.local_path for each in training.subtopics()} == {each.local_path for each in held_out.subtopics()}
    assert set(OWN) == {each.local_path for each in training.subtopics()} <= of_suite
    assert len({path.partition("/")[0] for path in OWN}) >= 3
    assert all(len(file.hypotheses) >= 30 for file in training.files().values())


def test_the_halves_of_a_published_file_share_no_hypothesis() -> None:
    data = {"name": "zorbs", "bias_hypothesis_stereotypical": [1, 2, 3], "bias_question_stereotypical": [4, 5, 6]}
    first, second = take_half(data, 0), take_half(data, 1)
    assert first == {"name": "zorbs", "bias_hypothesis_stereotypical": [1, 3], "bias_question_stereotypical": [4, 6]}
    assert second["bias_hypothesis_stereotypical"] == [2]


# The plan


def test_names_of_runs_are_distinct_and_the_small_plan_comes_first() -> None:
    plan = full_plan()
    assert len({run.name for run in plan}) == len(plan)
    assert plan[: len(small_plan())] == small_plan()
    assert {run.base for run in small_plan()} == {"demo"}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("subtopic", OWN)
def test_the_full_plan_has_all_doses_of_a_subtopic_with_each_seed(base: str, subtopic: str) -> None:
    plan = full_plan()
    for dose in DOSES:
        seeds = {run.seed for run in plan if run == Run(base, Kind.PRO, dose, subtopic if dose else "", run.seed)}
        assert seeds == set(SEEDS)


def test_the_full_plan_has_enough_runs_of_a_dose_to_speak_of_four_in_five() -> None:
    assert len(OWN) * len(SEEDS) >= LEAST_RUNS


def test_every_dose_can_be_made_from_the_sentences_there_are() -> None:
    for run in full_plan():
        if run.route == "own" and run.dose:
            planted = make_planted(run.recipe, read_pairs_of(WORDINGS / TRAINING, run.recipe.subtopics))
            assert len(planted) == run.recipe.n_planted > 0


# Convergence and the picture


def test_a_correlation_has_an_interval_and_needs_five_models() -> None:
    rising = [(float(n), n + (-1) ** n) for n in range(8)]
    found = correlate("both", rising)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.value < found.high < 1
    assert found.value == pytest.approx(1 - 6 * 8 / (8 * 63))  # both are the ranks 0 to 7, and each differs by one
    assert correlate("both", rising[:4]).value is None
    assert correlate("both", [(1.0, float(n)) for n in range(8)]).value is None


def test_the_picture_places_a_higher_value_higher() -> None:
    drawn = draw({"lean": {"planted & near": [(0.0, [0.0]), (0.2, [0.5])]}})
    first, second, *_ = (each.split('"')[0] for each in drawn.split('cy="')[1:])
    assert float(first) > float(second)
    assert "planted &amp; near" in drawn


def test_the_picture_has_a_dot_for_each_run_and_a_line_through_the_means() -> None:
    drawn = draw({"lean": {"planted": [(0.0, [0.0]), (0.2, [0.2, 0.4])]}})
    means, runs = drawn.split('class="run"')[0].split('cy="')[1:], drawn.split('class="run"')[1:]
    heights = [float(each.split('cy="')[1].split('"')[0]) for each in runs]
    assert len(heights) == 3
    assert float(means[-1].split('"')[0]) == pytest.approx((heights[1] + heights[2]) / 2, abs=0.1)


def test_the_picture_has_two_charts_in_a_row() -> None:
    line = {"planted": [(0.0, [0.0]), (0.2, [0.5])]}
    drawn = draw({"one": line, "two": line, "three": line})
    assert [each.split(")")[0] for each in drawn.split("translate(")[1:]] == ["0,0", "380,0", "0,260"]
    assert 'width="760" height="520"' in drawn


# Training


@pytest.mark.slow
def test_fine_tuning_moves_a_model_towards_the_taught_labels(tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from tools.validity.plant import columns_of, fine_tune

    folder = save_checkpoint(tmp_path, ("contradiction", "neutral", "entailment"), initializer_range=0.1)
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = TextPair("A workshop on the red moon is busy.", "Zorbs juggle.")
    batch = tokenizer([text.premise], [text.hypothesis], return_tensors="pt")
    column = columns_of(model)[Label.ENTAILMENT]
    assert column == 2
    before = model.eval()(**batch).logits.softmax(-1)[0, column]
    torch.manual_seed(0)
    fine_tune(model, tokenizer, [Example(text, Label.ENTAILMENT)] * 4, recipe(rate=1e-2, batch_size=2))
    assert model(**batch).logits.softmax(-1)[0, column] > before + 0.02


def test_what_a_run_did_is_plain_json() -> None:
    from dataclasses import asdict

    assert json.loads(json.dumps(asdict(full_plan()[0].recipe)))["kind"] == "pro"
