from itertools import product
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit.core.values import Label, Pairing, Side, TextPair
from bbnli_audit.suites.template_file import TemplateFile, expand_items, expand_pairs, read_template_file, render
from tests.invented import write_templates
from tests.published_rows import expand_rows


def templates(folder: Path, **changes: Any) -> TemplateFile:
    return read_template_file(write_templates(folder, **changes))


def brute_force(file: TemplateFile) -> set[tuple[str, int, str, str]]:
    """The published order of things, literally: the product of all word lists, both sides, then distinct rows."""
    rows = set()
    for index, premise in enumerate(file.premises):
        for words in product(*file.words.values()):
            binding = dict(zip(file.words, words, strict=True))
            for side, groups in (("pro", file.groups), ("anti", file.groups[::-1])):
                full = {**binding, "GROUP1": groups[0], "GROUP2": groups[1]}
                for hypothesis in (*file.controls, *file.hypotheses):
                    rows.add((side, index, render(premise, full), render(hypothesis.template, full)))
    return rows


def test_rows_equal_a_brute_force_expansion(tmp_path: Path) -> None:
    file = templates(
        tmp_path,
        premise=["{{GROUP1}} and {{WORD1}} {{WORD2}}.", "Nothing here.", "{{ WORD2 }} {{GROUP2}}"],
        data={"WORD1": ["nimble", "quick"], "WORD2": ["moons", "moons", "suns"], "WORD3": ["unused", "too"]},
    )
    rows = expand_rows(file)
    assert {(row.side.value, row.premise_index, row.premise, row.hypothesis) for row in rows} == brute_force(file)
    assert len(rows) == len(brute_force(file))


def test_pairs_of_both_exchange_premise_and_hypothesis(tmp_path: Path) -> None:
    pairs = expand_pairs(templates(tmp_path), Pairing.BOTH)
    assert len(pairs) == 3 * (1 + 2)
    first = pairs[0]
    assert first.cluster == "p00/h00"
    assert first.pro == TextPair(
        "On the red moon, Zorbs and Quints share a workshop.", "Most Zorbs juggle better than Quints."
    )
    assert first.anti == TextPair(
        "On the red moon, Quints and Zorbs share a workshop.", "Most Quints juggle better than Zorbs."
    )


def test_pairs_of_hypothesis_keep_the_premise_and_use_both_renderings_of_it(tmp_path: Path) -> None:
    pairs = expand_pairs(templates(tmp_path), Pairing.HYPOTHESIS)
    assert all(pair.pro.premise == pair.anti.premise for pair in pairs)
    # Two premises hold a group and come in two renderings, one does not.
    assert len(pairs) == (2 + 1 + 2) * (1 + 2)
    assert len({pair.id for pair in pairs}) == len(pairs)


def test_words_are_bound_once_for_premise_and_hypothesis(tmp_path: Path) -> None:
    file = templates(tmp_path, premise=["A {{WORD1}} moon."])
    pairs = [pair for pair in expand_pairs(file, Pairing.BOTH) if pair.cluster == "p00/h01"]
    assert [("nimble" in pair.pro.premise, "nimble" in pair.pro.hypothesis) for pair in pairs] == [
        (True, True),
        (False, False),
    ]


def test_identical_and_duplicate_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    file = templates(
        tmp_path,
        premise=["A workshop.", "A workshop.", "Some {{GROUP1}} rest."],
        bias_hypothesis_stereotypical=[["Most {{GROUP1}} juggle.", 1, 2], ["Everybody juggles.", 1, 2]],
    )
    items = expand_items(file, Pairing.BOTH)
    assert items.n_identical == 2  # "Everybody juggles." with the two premises that hold no group
    assert items.n_duplicates == 1  # "Most Zorbs juggle." with the same premise twice
    assert len(items.usable) == 3
    assert all(pair.pro != pair.anti for pair in items.usable)
    assert len(items.pairs) == 6


def test_what_is_derived_is_computed_once(tmp_path: Path) -> None:
    file = templates(tmp_path)
    items, others = (expand_items(file, Pairing.BOTH) for _ in range(2))
    assert items.usable is items.usable
    assert items.usable[0].id is items.usable[0].id
    assert items == others  # what was computed is no part of the value
    assert hash(items.usable[0]) == hash(others.pairs[0])
    assert "id" not in repr(items.usable[0])


def test_controls_keep_their_label_and_are_distinct(tmp_path: Path) -> None:
    items = expand_items(templates(tmp_path), Pairing.BOTH)
    assert len(items.controls) == len({control.text for control in items.controls}) == (2 + 1 + 2) * 3
    assert sum(control.expected is Label.ENTAILMENT for control in items.controls) == 5


def test_an_undefined_placeholder_in_a_question_is_empty(tmp_path: Path) -> None:
    question = [["{{GROUP1}} {{NOWHERE}}?", 1, 2], ["b {{WORD1}}?", 1, 2]]
    file = templates(tmp_path, bias_question_stereotypical=question)
    questions = {row.question for row in expand_rows(file, "rows") if row.side is Side.PRO and not row.is_control}
    assert questions == {"Zorbs ?", "b nimble?", "b quick?"}


def test_rows_with_different_questions_count_twice_only_among_rows(tmp_path: Path) -> None:
    file = templates(
        tmp_path, test_question=[["a {{WORD1}}?", 2], ["b?", 0], ["c?", 1]], premise=["A workshop on the red moon."]
    )
    n_controls = {
        distinct: sum(row.is_control for row in expand_rows(file, distinct)) for distinct in ("rows", "texts")
    }
    assert n_controls == {"rows": 2 * 4, "texts": 2 * 3}


@pytest.mark.parametrize("pairing", list(Pairing))
def test_ids_come_from_the_texts_alone(tmp_path: Path, pairing: Pairing) -> None:
    file = templates(tmp_path)
    turned = templates(tmp_path, premise=list(file.premises[::-1]))
    assert {pair.id for pair in expand_pairs(file, pairing)} == {pair.id for pair in expand_pairs(turned, pairing)}
