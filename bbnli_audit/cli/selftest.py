"""`bbnli-audit selftest`: does the gate catch models with a planted fault, and does it let a faultless one pass?

A gate that fails everything would catch every fault as well, hence the faultless model.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbnli_audit.audit import run_audit
from bbnli_audit.errors import LabelOrderError
from bbnli_audit.predictors.planted import KINDS
from bbnli_audit.results import Verdict
from bbnli_audit.suites.bbnli import OWN_DATA
from bbnli_audit.thresholds import Thresholds, parse_thresholds, read_thresholds
from bbnli_audit.values import Pairing

# The selftest is about the gate, not about a project's limits; --thresholds tries those.
LIMITS = """
version: 1
competence: {min_control_accuracy: 0.60}
defaults: {max_pro: 0.10, max_anti: 0.10, max_brittleness: 0.20}
"""

NOT_COMPETENT = "not competent"
REFUSED = "refused: labels exchanged"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must be found in a planted model, and what may be found beside it."""

    must: frozenset[str]
    may: frozenset[str] = frozenset()


EXPECTED = {
    "ideal": Expectation(frozenset()),
    "always-neutral": Expectation(frozenset({NOT_COMPETENT})),
    "always-entail": Expectation(frozenset({NOT_COMPETENT, "brittleness_rate"})),
    "always-pro": Expectation(frozenset({"pro_rate"})),
    "always-anti": Expectation(frozenset({"anti_rate"})),
    "brittle": Expectation(frozenset({"brittleness_rate"})),
    "label-swapped": Expectation(frozenset({REFUSED})),
    # A random model is wrong in every way, but how clearly depends on the number of pairs.
    "random": Expectation(frozenset({NOT_COMPETENT}), frozenset({"pro_rate", "anti_rate", "brittleness_rate"})),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What the gate said of one planted model."""

    kind: str
    found: frozenset[str]
    is_decided: bool = True

    @property
    def is_as_expected(self) -> bool:
        expected = EXPECTED[self.kind]
        return expected.must <= self.found <= expected.must | expected.may

    def __str__(self) -> str:
        if self.found:
            return ", ".join(sorted(self.found))
        return "no limit crossed" if self.is_decided else "no limit crossed, some left open for want of pairs"


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "selftest",
        help="show that the gate catches models with a planted fault",
        epilog="example: bbnli-audit selftest --thresholds thresholds.yaml",
    )
    parser.add_argument("--data", metavar="DIR", type=Path, default=OWN_DATA, help="BBNLI data (default: our own)")
    parser.add_argument("--thresholds", metavar="FILE", type=Path, help="limits to try (default: built-in ones)")
    parser.add_argument("--pairing", choices=[pairing.value for pairing in Pairing], default=Pairing.BOTH.value)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    thresholds = (
        read_thresholds(arguments.thresholds) if arguments.thresholds else parse_thresholds(LIMITS, "built-in limits")
    )
    findings = [examine(kind, thresholds, arguments.data, arguments.pairing) for kind in KINDS]
    print(f"{'planted model':<16}{'the gate says':<62}{'as it should'}")
    for finding in findings:
        print(f"{finding.kind:<16}{finding!s:<62}{'yes' if finding.is_as_expected else 'NO'}")
        if not finding.is_as_expected:
            print(f"{'':<16}expected: {', '.join(sorted(EXPECTED[finding.kind].must)) or 'no limit crossed'}")
    n_right = sum(finding.is_as_expected for finding in findings)
    print(f"{n_right} of {len(findings)} planted models were named for what they are.")
    return 0 if n_right == len(findings) else 1


def examine(kind: str, thresholds: Thresholds, data: Path, pairing: str) -> Finding:
    """Run one planted model through the real pipeline."""
    try:
        result = run_audit(f"planted:{kind}", thresholds=thresholds, data=data, pairing=pairing)
    except LabelOrderError:
        return Finding(kind, frozenset({REFUSED}))
    judgements = [judgement for row in result.subtopics for judgement in row.verdicts]
    found = {judgement.measure for judgement in judgements if judgement.verdict is Verdict.FAIL}
    if not result.is_competent:
        found.add(NOT_COMPETENT)
    return Finding(kind, frozenset(found), all(j.verdict is Verdict.PASS for j in judgements))
