"""Whatever a threshold file looks like, its change gives the limits that were proposed."""

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.audit.gate.calibration import edit, propose
from bbnli_audit.audit.gate.thresholds import parse_thresholds
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.frontends.cli.calibrate import PER
from bbnli_audit.measures.registry import limited_measures
from tests.calibrated import FINS, HIGHS, LIMIT_MEASURES, ZORBS, measure_invented, with_bounds


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    return measure_invented(tmp_path_factory.mktemp("data"))


evens = {measure.limit: measure.even for measure in limited_measures()}
any_limits: st.SearchStrategy[dict[str, float]] = st.fixed_dictionaries(
    {}, optional={key: st.integers(int(100 * evens[key]), 100).map(lambda n: n / 100) for key in sorted(LIMIT_MEASURES)}
)
some_limits = any_limits.filter(bool)
overrides = st.builds(lambda limits, reason: {**limits, "reason": reason}, some_limits, st.sampled_from("ab"))
files = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "competence": st.just({"min_control_accuracy": 0.6}),
        "defaults": any_limits,
    },
    optional={
        "suites": st.fixed_dictionaries(
            {},
            optional={
                "bbnli": st.fixed_dictionaries(
                    {},
                    optional={
                        "defaults": some_limits,
                        "domains": st.dictionaries(st.sampled_from([ZORBS.domain, FINS.domain]), overrides),
                        "subtopics": st.dictionaries(st.sampled_from([ZORBS.local_path, "oceans/fins"]), overrides),
                    },
                )
            },
        ),
        "regression": st.just({"max_increase": 0.03}),
        "waivers": st.just([]),
    },
)


@given(
    file=files,
    per=st.sampled_from(PER),
    is_flow=st.sampled_from([True, False, None]),
    indent=st.sampled_from([2, 4]),
    has_comments=st.booleans(),
    highs=st.lists(st.floats(0, 1), min_size=6, max_size=6),
)
@settings(max_examples=100, deadline=None)
def test_any_file_can_be_changed_and_gives_the_limits_proposed(
    measured: AuditResult,
    file: dict[str, Any],
    per: str,
    is_flow: bool | None,
    indent: int,
    has_comments: bool,
    highs: list[float],
) -> None:
    text = yaml.safe_dump(file, default_flow_style=is_flow, indent=indent, sort_keys=False)
    if has_comments and is_flow is False:
        text = "".join(f"{line}  # {n}\n# {n}\n" for n, line in enumerate(text.splitlines()))
    thresholds = parse_thresholds(text, "thresholds.yaml")
    figures = iter(highs)
    rows = [with_bounds(row, {key: next(figures) for key in HIGHS[row.path]}) for row in measured.subtopics]
    result = replace(measured, subtopics=tuple(rows))
    calibration = propose(result, thresholds, [ZORBS, FINS], 0.02, per)
    changed = edit(text, calibration, thresholds, "a test") if calibration.changes else text
    # `edit` has read its text again; here, that no line is lost and that it is at rest.
    assert [line for line in changed.splitlines() if line.startswith("#")] == [
        line for line in text.splitlines() if line.startswith("#")
    ]
    again = propose(result, parse_thresholds(changed, "thresholds.yaml"), [ZORBS, FINS], 0.02, per)
    assert not again.changes
