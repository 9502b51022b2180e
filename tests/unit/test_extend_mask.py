"""Step 1 and 2 of the workbench: masked templates, and groups and words put in."""

from pathlib import Path

import pytest

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.suites.template_file import TemplateFile, read_template_file
from bbnli_audit.workbench.extend.expand import count as count_samples
from bbnli_audit.workbench.extend.expand import expand
from bbnli_audit.workbench.extend.mask import MASK, count, mask_verbs, propose, read_templates
from bbnli_audit.workbench.extend.table import MaskedTemplate
from tests.invented import write_templates


@pytest.fixture
def file(tmp_path: Path) -> TemplateFile:
    return read_template_file(write_templates(tmp_path))


def test_three_ways_of_masking(file: TemplateFile) -> None:
    found = {(row.template, row.strategy): row.masked for row in propose(file)}
    assert found == {
        ("h00", "verb"): "Most {{GROUP1}} [MASK] better than {{GROUP2}}.",
        ("h01", "slot"): "It is usual for {{GROUP1}} to be [MASK] jugglers.",
        ("h01", "added"): "It is usual for {{GROUP1}} to be [MASK] {{WORD1}} jugglers.",
    }


@pytest.mark.parametrize(
    ("template", "masked"),
    [
        ("Most {{GROUP1}} juggle.", ["Most {{GROUP1}} [MASK]."]),
        ("{{GROUP1}} usually juggle well.", ["{{GROUP1}} usually [MASK] well."]),
        ("{{GROUP1}} would rather juggle.", ["{{GROUP1}} would rather [MASK]."]),
        ("{{GROUP1}} who juggle are quick.", ["{{GROUP1}} who [MASK] are quick."]),
        ("{{GROUP1}} have a ball.", ["{{GROUP1}} [MASK] a ball."]),
        ("{{GROUP1}} are juggling.", ["{{GROUP1}} are [MASK]."]),
        ("{{GROUP1}} are quick.", []),
        ("{{GROUP1}} {{WORD1}}.", []),
        ("Balls are for {{GROUP1}} and {{GROUP2}}.", []),
        (
            "{{GROUP1}} juggle and {{GROUP2}} watch.",
            ["{{GROUP1}} [MASK] and {{GROUP2}} watch.", "{{GROUP1}} juggle and {{GROUP2}} [MASK]."],
        ),
    ],
)
def test_verbs_are_found_after_a_group(template: str, masked: list[str]) -> None:
    assert list(mask_verbs(template)) == masked


def test_after_an_adjective_comes_a_noun(tmp_path: Path) -> None:
    hypotheses = [["{{GROUP1}} towns juggle.", 1, 2], ["Most {{GROUP2}} towns are quick.", 1, 2]]
    path = write_templates(tmp_path, bias_hypothesis_stereotypical=hypotheses, GROUP1=["Zorbian"], GROUP2=["Quintish"])
    assert [row.masked for row in propose(read_template_file(path))] == ["{{GROUP1}} towns [MASK]."]


def test_what_two_hypotheses_lead_to_is_there_once(tmp_path: Path) -> None:
    hypotheses = [["Most {{GROUP1}} juggle.", 1, 2], ["Most {{GROUP1}} sing.", 1, 2]]
    file = read_template_file(write_templates(tmp_path, bias_hypothesis_stereotypical=hypotheses))
    assert [(row.template, row.masked) for row in propose(file)] == [("h00", "Most {{GROUP1}} [MASK].")]


def test_no_mask_is_added_before_the_first_word(tmp_path: Path) -> None:
    hypotheses = [["{{WORD1}} are the hands of {{GROUP1}}.", 1, 2]]
    file = read_template_file(write_templates(tmp_path, bias_hypothesis_stereotypical=hypotheses))
    assert [(row.strategy, row.masked) for row in propose(file)] == [("slot", "[MASK] are the hands of {{GROUP1}}.")]


def test_a_template_without_a_group_is_left_out(tmp_path: Path) -> None:
    path = write_templates(tmp_path, bias_hypothesis_stereotypical=[["Juggling is {{WORD1}}.", 1, 2]])
    assert list(propose(read_template_file(path))) == []


def test_expanding_is_the_suites_own_expansion_with_a_mask_for_a_word(file: TemplateFile) -> None:
    samples = expand([file], propose(file))
    assert len({(sample.premise, sample.masked) for sample in samples}) == len(samples)
    for sample in samples:
        assert sample.masked.count(MASK) == sample.counterpart.count(MASK) == 1
        exchanged = sample.masked.replace("Zorbs", "?").replace("Quints", "Zorbs").replace("?", "Quints")
        assert sample.counterpart == exchanged
        assert "{{" not in sample.premise + sample.masked
    counts = count_samples(samples)["planets/zorbs_are_to_juggling"]
    # 3 masked templates (one with 2 words) on 3 premises; each way round, and both sides differ in the hypothesis.
    assert counts == {"masked_samples": (1 + 1 + 2) * 3 * 2, "masked_hypotheses": (1 + 1 + 2) * 2}


def test_premises_are_spread(file: TemplateFile) -> None:
    few = {sample.cluster[:3] for sample in expand([file], propose(file), n_premises=2)}
    assert few == {"p00", "p01"}
    assert expand([file], propose(file), n_premises=99) == expand([file], propose(file))


def test_counts_by_strategy(file: TemplateFile) -> None:
    assert count(list(propose(file)), [file]) == {
        "planets/zorbs_are_to_juggling": {"hypotheses": 2, "masked_templates": 3, "verb": 1, "slot": 1, "added": 1}
    }


def write_rows(path: Path, *rows: tuple[str, ...]) -> Path:
    lines = [",".join(MaskedTemplate._fields), *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


GOOD = ("planets", "zorbs_are_to_juggling", "h00", "mine", "Most {{GROUP1}} [MASK].")


def test_templates_of_ones_own_are_taken(tmp_path: Path, file: TemplateFile) -> None:
    assert read_templates(write_rows(tmp_path / "mine.csv", GOOD), [file]) == [MaskedTemplate(*GOOD)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("planet", *GOOD[1:]), "2: the suite has no subtopic 'planet/zorbs_are_to_juggling'. Did you mean 'planets/"),
        ((*GOOD[:2], "h07", *GOOD[3:]), "2: template is 'h07'; expected the hypothesis it comes from, h00 to h01"),
        ((*GOOD[:4], "Most {{GROUP1}} juggle."), "2: the masked template has 0 masks; expected one [MASK]"),
        ((*GOOD[:4], "{{GROUP1}} [MASK] [MASK]."), "2: the masked template has 2 masks"),
        ((*GOOD[:4], "{{GROUP1}} [MASK] {{WORD9}}."), "2: uses {{WORD9}}, which is neither a group nor a word list"),
        ((*GOOD[:4], "Jugglers [MASK]."), "2: names no group"),
    ],
)
def test_templates_that_cannot_be_used(tmp_path: Path, file: TemplateFile, row: tuple[str, ...], message: str) -> None:
    with pytest.raises(WorkbenchError) as found:
        read_templates(write_rows(tmp_path / "mine.csv", row), [file])
    assert f"mine.csv:{message}" in str(found.value)


def test_the_same_template_twice(tmp_path: Path, file: TemplateFile) -> None:
    with pytest.raises(WorkbenchError, match=r"mine\.csv:3: has the same masked template as an earlier line"):
        read_templates(write_rows(tmp_path / "mine.csv", GOOD, GOOD), [file])
