"""Steps 4 and 6 of the workbench: what models find, and the counterfactuals of what people find valid."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bbnli_audit.core.errors import ModelError, OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import Control, Label, TextPair
from bbnli_audit.suites.template_file import TemplateFile, read_template_file
from bbnli_audit.workbench.extend.counterfactual import find_fault as find_review_fault
from bbnli_audit.workbench.extend.counterfactual import make_pairs
from bbnli_audit.workbench.extend.expand import expand
from bbnli_audit.workbench.extend.fill import fill
from bbnli_audit.workbench.extend.filter import count, find_fault, keep_found, make_candidates, make_items, put_in
from bbnli_audit.workbench.extend.mask import MASK
from bbnli_audit.workbench.extend.models import NliModel, estimate_seconds, open_models
from bbnli_audit.workbench.extend.table import Found, MaskedTemplate, Reviewed, Sample, Word
from tests.invented import write_templates

HASTY, CAREFUL, GULLIBLE = (f"tests.workbench_models:{name}" for name in ("hasty", "careful", "gullible"))


OPEN = ExitStack()  # the models stay open until the tests end


def opened(*names: str, held_out: Sequence[str] = ()) -> list[NliModel]:
    return OPEN.enter_context(open_models(names, held_out, ModelOptions()))


def sample(masked: str, counterpart: str, premise: str = "A workshop is busy.") -> Sample:
    return Sample("planets", "zorbs", "s", "p00/h00", "verb", "pro", premise, masked, counterpart)


def word(masked: str, *words: str) -> list[Word]:
    return [Word("planets", "zorbs", masked, rank, one, 0.1) for rank, one in enumerate(words, start=1)]


PRO, ANTI = f"Zorbs {MASK} better than Quints.", f"Quints {MASK} better than Zorbs."


def test_what_one_model_at_least_gets_wrong_is_kept_with_what_each_said() -> None:
    samples = [sample(PRO, ANTI), sample(ANTI, PRO)]
    candidates = make_candidates(samples, [*word(PRO, "juggle"), *word(ANTI, "juggle", "walk")])
    models = opened(HASTY, CAREFUL)
    found = keep_found(candidates, models)
    assert [(row.hypothesis, json.loads(row.labels)) for row in found] == [
        ("Zorbs juggle better than Quints.", {HASTY: "entailment", CAREFUL: "neutral"}),
        ("Quints walk better than Zorbs.", {HASTY: "contradiction", CAREFUL: "neutral"}),
    ]
    assert [row.counterpart for row in found] == ["Quints juggle better than Zorbs.", "Zorbs walk better than Quints."]
    assert count(candidates, found, make_items(found), models)["planets/zorbs"] == {
        "candidates": 3,
        "kept_samples": 2,
        "hypotheses_to_judge": 2,
        f"found_by {HASTY}": 2,
        f"found_by {CAREFUL}": 0,
    }


def test_a_text_that_two_masks_lead_to_is_one_candidate() -> None:
    other = f"Zorbs juggle {MASK} than Quints."
    samples = [sample(PRO, ANTI), sample(other, f"Quints juggle {MASK} than Zorbs.")]
    assert len(make_candidates(samples, [*word(PRO, "juggle"), *word(other, "better")])) == 1


def test_items_are_distinct_hypotheses_whatever_the_premise() -> None:
    samples = [sample(PRO, ANTI), sample(PRO, ANTI, "Another workshop.")]
    found = keep_found(make_candidates(samples, word(PRO, "juggle")), opened(HASTY))
    (item,) = make_items(found)
    assert (item.hypothesis, item.n_samples, item.premise) == (
        "Zorbs juggle better than Quints.",
        2,
        samples[0].premise,
    )


def test_models_are_refused_that_are_one_or_cannot_do_the_task() -> None:
    with pytest.raises(OptionError, match="are the same model"):
        opened(HASTY, held_out=[HASTY])
    for other in ("planted:ideal", "openai:some-model"):
        with pytest.raises(OptionError, match="only NLI models that can label any text"):
            opened(other)
    texts = {"A workshop is open.": Label.ENTAILMENT, "The workshop is closed.": Label.CONTRADICTION}
    controls = [Control("c", TextPair("A workshop is open.", text), label) for text, label in texts.items()]
    (useless,) = opened("tests.workbench_models:useless")
    with pytest.raises(
        ModelError, match=r"gets 0\.000 of 2 controls right; a model that always gives the same answer gets 0\.500"
    ):
        useless.check_skill(controls)
    (hasty,) = opened(HASTY)
    assert hasty.check_skill(controls) == 1


def test_an_estimate_counts_what_is_not_stored_yet() -> None:
    texts = [TextPair("A workshop is busy.", f"Zorbs juggle {n} balls.") for n in range(1000)]
    ticks: Iterator[float] = iter([0.0, 2.0, 10.0, 11.0])
    (model,) = opened(HASTY)
    # 128 texts are spread over all; the first four were predicted before the clock ran.
    assert estimate_seconds(model, texts, lambda: next(ticks)) == pytest.approx(2 / 124 * 1000)
    assert estimate_seconds(model, texts, lambda: next(ticks)) == 0


def found_row(hypothesis: str, counterpart: str, by: str = "m", premise: str = "A workshop is busy.") -> Found:
    labels = json.dumps({by: "entailment", "other": "neutral"})
    return Found("planets", "zorbs", "s", "p00/h00", "verb", premise, hypothesis, counterpart, "", "w", labels)


def reviewed(hypothesis: str, verdict: str, stance: str = "") -> Reviewed:
    return Reviewed("i", "planets", "zorbs", hypothesis, verdict, stance)


A, B = "Zorbs juggle.", "Quints juggle."


@pytest.mark.parametrize(("stance", "pro", "anti"), [("pro", A, B), ("anti", B, A)])
def test_people_say_which_side_a_hypothesis_is_on(stance: str, pro: str, anti: str) -> None:
    (pair,), counts = make_pairs([found_row(A, B)], [reviewed(A, "valid", stance)])
    assert (pair.pro_hypothesis, pair.anti_hypothesis, pair.premise) == (pro, anti, "A workshop is busy.")
    assert counts["planets/zorbs"]["samples"] == 2


@pytest.mark.parametrize("verdict", ["invalid", "incoherent", ""])
def test_what_is_not_valid_is_left_out(verdict: str) -> None:
    pairs, counts = make_pairs([found_row(A, B)], [reviewed(A, verdict)])
    assert pairs == []
    assert counts["planets/zorbs"]["valid_samples"] == 0


def test_a_sample_and_its_counterfactual_are_one_pair() -> None:
    rows = [found_row(A, B, "m"), found_row(B, A, "n")]
    (pair,), counts = make_pairs(rows, [reviewed(A, "valid", "pro"), reviewed(B, "valid", "anti")])
    assert pair.found_by == "m;n"
    assert counts["planets/zorbs"]["same_pair"] == 1


@pytest.mark.parametrize("other", [reviewed(B, "valid", "pro"), reviewed(B, "incoherent"), reviewed(B, "")])
def test_answers_that_contradict_each_other_drop_both(other: Reviewed) -> None:
    pairs, counts = make_pairs([found_row(A, B), found_row(B, A)], [reviewed(A, "valid", "pro"), other])
    assert pairs == []
    assert counts["planets/zorbs"]["contradicting"] == (2 if other.verdict == "valid" else 1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            reviewed(A, "Valid", "pro"),
            "verdict is 'Valid'; expected valid, invalid, incoherent, or nothing if undecided",
        ),
        (reviewed(A, "valid", "Pro"), "stance is 'Pro'; expected pro or anti if valid"),
        (reviewed(A, "valid"), "stance is ''; expected pro or anti"),
        (reviewed(A, "invalid", "pro"), "stance is 'pro'; expected pro or anti if valid, otherwise nothing"),
    ],
)
def test_decisions_that_were_changed_into_none(row: Reviewed, message: str) -> None:
    assert message in (find_review_fault(row) or "")


def test_labels_that_are_none() -> None:
    assert find_fault(found_row(A, B)) is None
    for labels in ("yes", "[]", "{}", '{"m": "yes"}', '{"m": ["neutral"]}'):
        assert "labels is not a JSON object" in (find_fault(found_row(A, B)._replace(labels=labels)) or "")


def test_a_word_that_begins_a_sentence_has_a_capital() -> None:
    assert put_in("[MASK] Zorbs juggle.", "nimble") == "Nimble Zorbs juggle."
    assert put_in("Zorbs [MASK].", "juggle") == "Zorbs juggle."


def test_without_a_group_there_is_no_counterfactual() -> None:
    pairs, counts = make_pairs([found_row(A, A)], [reviewed(A, "valid", "pro")])
    assert pairs == []
    assert counts["planets/zorbs"]["no_group"] == 1


hypotheses = st.sampled_from(["a", "b", "c"])
stances = st.sampled_from([("valid", "pro"), ("valid", "anti"), ("invalid", ""), ("", "")])


@given(
    rows=st.lists(st.tuples(hypotheses, st.sampled_from(["x", "y"]), st.sampled_from("PQ")), max_size=12),
    said=st.dictionaries(st.tuples(hypotheses, st.sampled_from(["x", "y"])), stances),
)
def test_no_pair_is_there_twice_and_every_valid_sample_is_accounted_for(
    rows: list[tuple[str, str, str]], said: dict[tuple[str, str], tuple[str, str]]
) -> None:
    """A hypothesis is a letter and a group, x or y; its counterpart has the other group."""
    found = [found_row(f"{h} {g}", f"{h} {'y' if g == 'x' else 'x'}", premise=p) for h, g, p in dict.fromkeys(rows)]
    pairs, counts = make_pairs(found, [reviewed(f"{h} {g}", *what) for (h, g), what in said.items()])
    keys = [(pair.premise, frozenset((pair.pro_hypothesis, pair.anti_hypothesis))) for pair in pairs]
    assert len(set(keys)) == len(keys)
    for counted in counts.values():
        assert counted["samples"] == 2 * counted["pairs"] == 2 * len(pairs)
        assert counted["valid_samples"] == sum(
            counted[name] for name in ("pairs", "same_pair", "contradicting", "no_group")
        )


@pytest.fixture
def file(tmp_path_factory: pytest.TempPathFactory) -> TemplateFile:
    return read_template_file(write_templates(tmp_path_factory.mktemp("data")))


def test_different_words_for_the_two_groups_both_get_both_groups(file: TemplateFile) -> None:
    """The masked model offers `juggle` after Zorbs and `walk` after Quints: the release has both words for both."""

    def propose(texts: Sequence[str], _: int) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        for text in texts:
            yield text, [("juggle" if text.startswith("Zorbs") else "walk", 0.9)]

    template = MaskedTemplate(file.domain, file.name, "h00", "verb", f"{{{{GROUP1}}}} {MASK} past {{{{GROUP2}}}}.")
    samples = expand([file], [template])
    words = fill(samples, {file.local_path: file.groups}, 1, propose)
    assert {(row.masked.split()[0], row.word) for row in words} == {("Zorbs", "juggle"), ("Quints", "walk")}
    found = keep_found(make_candidates(samples, words), opened(HASTY))
    items = make_items(found)
    pairs, _ = make_pairs(found, [Reviewed(*item[:4], "valid", "pro") for item in items])
    sides = {(pair.pro_hypothesis, pair.anti_hypothesis) for pair in pairs}
    assert sides == {
        ("Zorbs juggle past Quints.", "Quints juggle past Zorbs."),
        ("Quints walk past Zorbs.", "Zorbs walk past Quints."),
    }
