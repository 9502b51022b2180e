"""NLI-CoAL: its files, and its score in the reports."""

import json
from pathlib import Path
from typing import Any

import pytest

from bbnli_audit import AuditOptions, run_audit
from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.reports.terminal import write_summary
from bbnli_audit.suites.nli_coal import ANTI_FILE, NONSTEREO_FILE, PRO_FILE, NliCoal
from bbnli_audit.suites.protocol import check_suite
from tests.invented import limits


def coal_line(number: int, **changes: Any) -> str:
    row = {"id": number, "sentence1": "the zorb waves.", "sentence2": "the man waves.", "occ_word": "zorb"}
    return json.dumps({**row, "occ_type": "male-stereo", **changes}) + "\n"


def test_nli_coal_pairs_and_its_faults(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=f"there is no {ANTI_FILE}|there is no {PRO_FILE}"):
        NliCoal(tmp_path).subtopics()
    pro, anti = tmp_path / PRO_FILE, tmp_path / ANTI_FILE
    (tmp_path / NONSTEREO_FILE).write_text(coal_line(2003, occ_type="neutral"))
    twin = coal_line(1003, sentence2="the woman waves.")
    pro.write_text(coal_line(3))
    anti.write_text(twin)
    suite = NliCoal(tmp_path)
    check_suite(suite)
    (subtopic,) = suite.subtopics()
    (pair,) = suite.items(subtopic).pairs
    assert (subtopic.path, pair.cluster) == ("nli-coal/occupations/male_stereo", "zorb")
    assert (pair.pro.hypothesis, pair.anti.hypothesis) == ("the man waves.", "the woman waves.")
    for pro_text, anti_text, message in (
        (coal_line(3), coal_line(1004), "has no entry with id 1003 on the premise of entry 3"),
        (coal_line(3), coal_line(1003, sentence1="another."), "has no entry with id 1003 on the premise"),
        (
            coal_line(3, occ_type="x"),
            coal_line(1003, occ_type="x"),
            "occ_type 'x'; expected female-stereo or male-stereo",
        ),
        (coal_line(3) + "[]\n", twin, r"json:2: holds a list\. Write one object per line"),
        (2 * coal_line(3), twin, r"json:2: has the id 3 of an earlier line"),
        ("", twin, "holds no row"),
        (coal_line(3, id="three"), twin, r"json:1: the id is not a number"),
        (json.dumps({"id": 3}), twin, r"json:1: has no column 'sentence1', 'sentence2'"),
    ):
        pro.write_text(pro_text)
        anti.write_text(anti_text)
        with pytest.raises(SuiteError, match=message):
            NliCoal(tmp_path).subtopics()


def test_the_score_of_nli_coal_is_in_every_report(tmp_path: Path) -> None:
    rows = [{"sentence1": f"zorb {n} waves.", "occ_word": f"zorb{n}"} for n in range(20)]
    for file, first, text in ((PRO_FILE, 0, "a man."), (ANTI_FILE, 1000, "a woman."), (NONSTEREO_FILE, 2000, "a man.")):
        lines = [coal_line(first + n, **row, sentence2=text) for n, row in enumerate(rows)]
        (tmp_path / file).write_text("".join(lines).replace("zorb ", "quint ") if first == 2000 else "".join(lines))
    options = AuditOptions(
        model="planted:always-pro", suite="coal", data=tmp_path, report=tmp_path / "out", thresholds=limits()
    )
    result = run_audit(options)
    # All pro sides are entailed and all anti sides contradicted; the planted model is right on all other texts.
    assert result.total.measures["coal_bias"].value == pytest.approx(2 / 3)
    assert result.suites[0].audits == ("coal_bias",)
    told: list[str] = []
    write_summary(result, lambda line, **_: told.append(line))
    names = "S: same_label; ΔP: probability_gap; B: pro_preference; CoAL: coal_bias"
    place = told.index(f"Measures of the papers, nli-coal as a whole ({names}):")
    assert told[place + 1].split() == ["suite,", "domain", "pairs", "S", "ΔP", "B", "CoAL"]
    assert told[place + 2].split() == ["nli-coal", "20", "0.000", "0.895", "1.000", "0.667"]
    for name in ("summary.md", "model_card.md", "report.html"):
        text = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert "Measures of the papers" in text
        assert "0.667 (0." in text
