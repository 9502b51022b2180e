"""What is written is read back unchanged."""

import json
from typing import Any

import yaml
from hypothesis import given

from bbnli_audit.audit.gate.thresholds import parse_thresholds
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, load
from tests.strategies import audit_results, threshold_files


@given(audit_results)
def test_a_result_survives_a_json_file(result: AuditResult) -> None:
    assert load(AuditResult, json.loads(json.dumps(dump(result), allow_nan=False))) == result


@given(threshold_files())
def test_thresholds_survive_a_yaml_file(data: dict[str, Any]) -> None:
    once = parse_thresholds(yaml.safe_dump(data), "thresholds.yaml").file
    again = parse_thresholds(yaml.safe_dump(once.model_dump(exclude_unset=True)), "thresholds.yaml").file
    assert once == again
    assert once.model_dump(exclude_unset=True) == data
