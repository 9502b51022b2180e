"""Audit language models for social bias, and tell bias from brittleness.

This is the public API; everything else is private and may change. Importing the package imports nothing heavy, because
pytest loads the plugin in this package even for projects that never audit. So each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from bbnli_audit.core.versions import VERSION

if TYPE_CHECKING:
    from bbnli_audit.audit.audit import Audit, run_audit
    from bbnli_audit.audit.extensions import Extensions
    from bbnli_audit.audit.gate.thresholds import Thresholds, read_thresholds
    from bbnli_audit.core.errors import AuditError, LimitExceeded
    from bbnli_audit.core.options import AuditOptions
    from bbnli_audit.core.results.audit import AuditResult
    from bbnli_audit.core.results.file import read_result, write_result
    from bbnli_audit.core.results.rows import Judgement, Measured, ModelInfo, SubtopicResult, Verdict
    from bbnli_audit.core.values import Control, Label, Pair, Pairing, Subtopic, SubtopicItems, TextPair
    from bbnli_audit.frontends.pytest_plugin.handles import (
        AnswersHandle,
        LevelHandle,
        ModelHandle,
        OneMeasureHandle,
        RegressionHandle,
        SubtopicHandle,
    )
    from bbnli_audit.measures.measure import Measure
    from bbnli_audit.measures.readings.table import PairTable
    from bbnli_audit.models.options import ModelKind
    from bbnli_audit.models.protocol import ModelSource, Predictions, Predictor
    from bbnli_audit.reports.mlflow_export import mlflow_report
    from bbnli_audit.reports.report import Report
    from bbnli_audit.suites.protocol import Suite

__version__ = VERSION

_HOMES = {
    "audit.audit": ("Audit", "run_audit"),
    "audit.extensions": ("Extensions",),
    "audit.gate.thresholds": ("Thresholds", "read_thresholds"),
    "core.errors": ("AuditError", "LimitExceeded"),
    "core.options": ("AuditOptions",),
    "core.results.audit": ("AuditResult",),
    "core.results.file": ("read_result", "write_result"),
    "core.results.rows": ("Judgement", "Measured", "ModelInfo", "SubtopicResult", "Verdict"),
    "core.values": ("Control", "Label", "Pair", "Pairing", "Subtopic", "SubtopicItems", "TextPair"),
    "frontends.pytest_plugin.handles": (
        "AnswersHandle",
        "LevelHandle",
        "ModelHandle",
        "OneMeasureHandle",
        "RegressionHandle",
        "SubtopicHandle",
    ),
    "measures.measure": ("Measure",),
    "measures.readings.table": ("PairTable",),
    "models.options": ("ModelKind",),
    "models.protocol": ("ModelSource", "Predictions", "Predictor"),
    "reports.mlflow_export": ("mlflow_report",),
    "reports.report": ("Report",),
    "suites.protocol": ("Suite",),
}
_HOME_OF = {name: f"bbnli_audit.{home}" for home, names in _HOMES.items() for name in names}

__all__ = [
    "AnswersHandle",
    "Audit",
    "AuditError",
    "AuditOptions",
    "AuditResult",
    "Control",
    "Extensions",
    "Judgement",
    "Label",
    "LevelHandle",
    "LimitExceeded",
    "Measure",
    "Measured",
    "ModelHandle",
    "ModelInfo",
    "ModelKind",
    "ModelSource",
    "OneMeasureHandle",
    "Pair",
    "PairTable",
    "Pairing",
    "Predictions",
    "Predictor",
    "RegressionHandle",
    "Report",
    "Subtopic",
    "SubtopicHandle",
    "SubtopicItems",
    "SubtopicResult",
    "Suite",
    "TextPair",
    "Thresholds",
    "Verdict",
    "mlflow_report",
    "read_result",
    "read_thresholds",
    "run_audit",
    "write_result",
]


def __getattr__(name: str) -> object:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
