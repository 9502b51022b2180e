"""What a caller of the Python API may give as an option, and what is refused with a message."""

from pathlib import Path
from typing import Any

import pytest

from bbnli_audit import AuditOptions, read_result, run_audit, write_result
from bbnli_audit.core.errors import OptionError
from tests.invented import write_large_suite


def test_a_path_may_be_text_and_a_tuple_a_list() -> None:
    given: Any = {
        "report": "out",
        "store": "s.sqlite",
        "baseline": "b.json",
        "data_folder": "d",
        "subtopics": ["a/b/c"],
    }
    options = AuditOptions(model="demo", **given)
    assert (options.report, options.store, options.baseline) == (Path("out"), Path("s.sqlite"), Path("b.json"))
    assert (options.data_folder, options.subtopics, options.save_baseline) == (Path("d"), ("a/b/c",), None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"report": 3}, "AuditOptions(report=3): expected a path, got int."),
        ({"size": 3}, "AuditOptions(size=3): expected a string, got int."),
        ({"suite": ["bbnli"]}, "AuditOptions(suite=['bbnli']): expected a string, got list."),
        ({"reveal": "no"}, "AuditOptions(reveal='no'): expected True or False, got str."),
        ({"subtopics": "a/b/c"}, "AuditOptions(subtopics='a/b/c'): expected a tuple or a list, got str."),
        ({"suites": 3}, "AuditOptions(suites=3): expected a tuple or a list, got int."),
        ({"max_disagreement": []}, "AuditOptions(max_disagreement=[]): expected a string or a number, got list."),
        ({"thresholds": None}, "AuditOptions(thresholds=None): expected a path or a Thresholds object, got NoneType."),
        ({"model": 5}, "AuditOptions(model=5): expected a string or an object with `info` and `predict`, got int."),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        run_audit(AuditOptions(**{"model": "planted:ideal", **given}))
    assert str(caught.value) == message


def test_a_long_value_is_cut() -> None:
    with pytest.raises(OptionError) as caught:
        AuditOptions(model="demo", size=list(range(1000)))  # type: ignore[arg-type]  # that is what is refused
    assert len(str(caught.value)) < 200


def test_results_and_limits_are_read_by_text_too(tmp_path: Path) -> None:
    data, written = write_large_suite(tmp_path / "data"), str(tmp_path / "result.json")
    (tmp_path / "limits.yaml").write_text(
        "version: 1\ncompetence: {min_control_accuracy: 0.6}\ndefaults: {max_pro: 0.1}\n"
    )
    result = run_audit(AuditOptions(model="planted:ideal", data=data, thresholds=str(tmp_path / "limits.yaml")))
    write_result(result, written)
    assert read_result(written) == result
