"""What is written of second readings: into files that are read again, on the page, on the terminal and in Markdown."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.core.outcomes import CAUSES
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import (
    LEANS,
    AgreementRow,
    PromptDifference,
    PromptRow,
    SecondModel,
    SecondPrompt,
)
from bbnli_audit.core.results.file import dump, json_schema, read_result, write_result
from bbnli_audit.core.results.rows import Measured, ModelInfo, Skill
from bbnli_audit.measures.readings.kinds import LIKELIHOOD
from bbnli_audit.measures.readings.table import PairTable
from bbnli_audit.measures.registry import find_measure
from bbnli_audit.reports.html_page import render_page
from bbnli_audit.reports.second import agreement_notes
from bbnli_audit.reports.summary import summary_markdown
from bbnli_audit.reports.terminal import write_summary
from tests.browser.pages import FINS, HOSTILE, ZORBS, audit, many_pairs
from tests.reported import TRACES, hostile_texts, read
from tests.strategies import audit_results, differences, frame_of, measures, names, shares, skills, sound_results

signed = st.floats(-1, 1)
counts = st.integers(0, 9999)


@st.composite
def seconds(draw: st.DrawFn, texts: st.SearchStrategy[str] = names) -> tuple[SecondModel, SecondPrompt]:
    """Any second readings that could be written, under any names."""
    leans = st.fixed_dictionaries(dict.fromkeys(LEANS, counts))
    interval = st.none() | st.tuples(signed, signed)
    row = st.builds(AgreementRow, texts, counts, counts, measures, measures, leans, measures, st.none() | shares,
                    st.none() | signed, st.none() | signed, interval, interval)  # fmt: skip
    asked = st.builds(
        PromptRow, texts, counts, counts, counts, counts, measures,
        st.tuples(*(st.builds(PromptDifference, st.just(name), st.none() | shares, st.none() | shares, differences)
                    for name in CAUSES)),
    )  # fmt: skip
    model = st.builds(ModelInfo, texts, names, texts, names, names, st.just(("entailment", "not_entailment")))
    pairs = st.tuples(texts, texts)
    r = st.none() | signed
    rows, asks = st.lists(row, max_size=2).map(tuple), st.lists(asked, max_size=2).map(tuple)
    return (
        draw(
            st.builds(
                SecondModel, model, skills, st.booleans(), pairs, counts, counts, st.none() | shares, rows, row, r
            )
        ),
        draw(st.builds(SecondPrompt, model, skills, st.booleans(), pairs, asks, asked)),
    )


@settings(max_examples=15)
@given(sound_results, seconds())
def test_second_readings_survive_their_file_and_fit_the_schema(
    tmp_path_factory: pytest.TempPathFactory, result: AuditResult, second: tuple[SecondModel, SecondPrompt]
) -> None:
    path = tmp_path_factory.getbasetemp() / "second.json"
    given_result = replace(result, second_model=second[0], second_prompt=second[1])
    write_result(given_result, path)
    assert read_result(path) == given_result
    jsonschema.validate(json.loads(path.read_text()), json_schema())


@settings(max_examples=5)
@given(sound_results)
def test_a_result_from_before_second_readings_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, result: AuditResult
) -> None:
    path = tmp_path_factory.getbasetemp() / "before.json"
    data = dump(result)
    assert data.pop("second_model") is None
    assert data.pop("second_prompt") is None
    path.write_text(json.dumps(data))
    assert read_result(path) == result


def test_a_second_model_without_a_sign_and_intervals_can_be_read(audited: AuditResult, tmp_path: Path) -> None:
    """Earlier versions kept R² alone."""
    data = dump(replace(audited, second_model=second_model(audited)))
    found = data["second_model"]
    del found["r"]
    for row in (*found["subtopics"], found["total"]):
        del row["kappa_interval"], row["rank_interval"]
    (tmp_path / "before.json").write_text(json.dumps(data))
    second = read_result(tmp_path / "before.json").second_model
    assert second is not None
    assert (second.r, second.r_squared, second.total.kappa, second.total.kappa_interval) == (None, 0.0625, 0.25, None)
    assert "R² of the two measures over 2 subtopics: 0.062; the sign was not kept." in list(agreement_notes(second))


@settings(max_examples=15)
@given(audit_results, seconds(hostile_texts))
def test_hostile_names_stay_text_in_markdown(result: AuditResult, second: tuple[SecondModel, SecondPrompt]) -> None:
    plain = replace(result, comparison=None, subtopics=(), domains=(), required=())
    page = read(summary_markdown(replace(plain, second_model=second[0], second_prompt=second[1])))
    assert not page.markup
    assert not [trace for trace in TRACES if trace in page.loose]
    assert all(len(set(rows)) == 1 for rows in page.tables)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    return audit(tmp_path_factory.mktemp("suite"), n_premises=5)[0]


def measure(value: float) -> Measured:
    return Measured(value, value - 0.1, value + 0.1, 80)


def second_model(result: AuditResult, name: str = "tiny-masked-lm") -> SecondModel:
    leans = {**dict.fromkeys(LEANS, 0), "PP": 30, "AA": 20, "PA": 20, "AP": 10}

    def row(path: str) -> AgreementRow:
        return AgreementRow(
            path, 80, 40, measure(0.5), measure(0.625), leans, measure(0.625), 0.5, 0.25, None, (-0.125, 0.5)
        )

    model = replace(result.model, name=name, kind="masked-lm")
    skill = Skill(None, None, 0, 0.0)
    measured = ("entailment_preference", "token_preference")
    return SecondModel(model, skill, True, measured, 4, 0, 0.0625, (row(ZORBS), row(FINS)), row("total"), -0.25)


def second_prompt(result: AuditResult) -> SecondPrompt:
    difference = PromptDifference("pro_rate", 0.25, 0.125, Measured(-0.125, -0.25, 0.0, 160))

    def row(path: str) -> PromptRow:
        return PromptRow(path, 80, 40, 24, 3, measure(0.15), (difference,) * 3)

    skill = Skill(0.5, 0.4, 480, 0.66)
    return SecondPrompt(result.model, skill, False, ("entailed", "true"), (row(ZORBS), row(FINS)), row("total"))


def test_the_terminal_has_a_short_table(audited: AuditResult) -> None:
    lines: list[str] = []

    def write(line: str, **_: bool) -> None:
        lines.append(line)

    write_summary(replace(audited, second_model=second_model(audited), second_prompt=second_prompt(audited)), write)
    shown = "\n".join(" ".join(line.split()) for line in lines)
    assert f"{FINS} 80 0.500 0.625 0.625 (0.525-0.725) 0.500 0.250 (-0.125 to 0.500) –" in shown
    assert "in all 80 0.500 0.625" in shown
    assert "Second model tiny-masked-lm (masked-lm) on the same pairs, held to no limit." in shown
    told = "Not compared: 4 pairs that only the first model could be measured on, and 0 that only the second could."
    assert told in shown
    assert "Correlation r of the two measures over 2 subtopics: -0.250." in shown
    assert f"{ZORBS} 80 0.150 (0.050-0.250) -0.125 (-0.250 to 0.000)" in shown
    assert "With true it was not shown to do the task (control accuracy 0.400)." in shown
    assert "An answer that could be read with one prompt only counts as changed." in shown
    assert "Not read under one prompt or both: the answers to 3 samples." in shown
    # Columns end under each other.
    table = [line for line in lines if line.startswith(("subtopic  ", ZORBS, FINS, "in all"))]
    assert len({len(line) for line in table[:4]}) == 1


def test_the_page_has_a_section_for_each_and_none_without(audited: AuditResult) -> None:
    plain = render_page(audited, many_pairs(0))
    assert "second-" not in plain
    made = render_page(
        replace(audited, second_model=second_model(audited, HOSTILE[0]), second_prompt=second_prompt(audited)),
        many_pairs(0),
    )
    for part in (
        '<a href="#second-model">Agreement</a>',
        '<a href="#second-prompt">Prompts</a>',
        "token preference, second</th>",
        '<span class="value">+0.250</span>\n<span class="interval">−0.125 to +0.500</span>',
        '<span class="interval">−0.250 to 0.000; 0.250, then 0.125</span>',
        "&lt;/script&gt;&lt;script&gt;window.pwned",
    ):
        assert part in made, part
    assert '<span class="value"><' not in made, "a macro's mark-up must not be escaped"
    assert "&lt;span" not in made


def test_a_failing_likelihood_names_its_worst_pairs() -> None:
    frame = frame_of([("", "")] * 4).assign(
        likelier=["pro", "pro", "pro", "anti"],
        pro_likelihood_share=[0.6, 0.99, 0.8, 0.1],
        anti_likelihood_share=[0.4, 0.01, 0.2, 0.9],
    )
    measure = find_measure("token_preference")
    assert measure.evidence is not None
    found = measure.evidence(measure, PairTable(frame, LIKELIHOOD))
    assert list(found.pairs) == ["0001", "0002", "0000"]
    lines = list(found.pairs.values())
    assert [line.split("(")[0] for line in lines] == [f"worst pair {n:04d} " for n in (1, 2, 0)]
    assert lines[0].endswith("pro side 0.99 of the two likelihoods")
