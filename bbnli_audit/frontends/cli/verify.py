"""Say whether a report folder holds a complete, fresh pass of a model.

Reads the report folder of a run with --bbnli-strict, and compares it with the model, the limits and the suites as they
are now. The exit code is 0 only if the folder agrees with all of these, nothing is missing, and no limit is crossed
without a waiver. No model is loaded. Give the same options as in the run, without the prefix "bbnli-".

Examples:
    bbnli-audit verify bias-report --model path/to/checkpoint
    bbnli-audit verify bias-report --model path/to/checkpoint --suite all --baseline baselines/result.json
"""

import argparse
import math
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import AuditError, ResultError
from bbnli_audit.core.options import AuditOptions, find_options
from bbnli_audit.core.words import counted
from bbnli_audit.frontends.cli.arguments import add_documented, tell_model

if TYPE_CHECKING:
    from bbnli_audit.audit.audit import Audit
    from bbnli_audit.core.results.audit import AuditResult

# The command `verify` takes these options of a run too. The result must agree with their values.
_OPTIONS = (
    *("thresholds", "baseline", "suite", "data", "pairing", "labels", "dtype", "backend"),
    *("prompt", "prompts", "answers", "base_url"),
)
_PATHS = ("thresholds", "baseline", "prompts")
_FINGERPRINT = (
    "import sys; from bbnli_audit.models.python_callable import CallablePredictor; "
    "print(CallablePredictor(sys.argv[1]).info.fingerprint)"
)


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "verify", run, __doc__).add_argument
    add("folder", metavar="DIR", type=Path, help="the folder that --bbnli-report named")
    known = find_options()
    add("--model", metavar=known["model"].metavar, required=True, help="the model that should be in the result")
    for name in _OPTIONS:
        option = known[name]
        default = Path("thresholds.yaml") if name == "thresholds" else None
        kind = Path if name in _PATHS else str
        add(f"--{name.replace('_', '-')}", metavar=option.metavar, type=kind, default=default, help=option.help)
    add("--max-age", metavar="HOURS", type=_hours, default=24.0, help="how old the result may be (default: 24)")


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not 0 < hours < math.inf:  # nan and inf would allow any age
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0, such as 24.")
    return hours


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.audit.audit import Audit
    from bbnli_audit.audit.verify import find_faults, read_left

    folder: Path = arguments.folder
    options = AuditOptions(model=arguments.model, **{name: getattr(arguments, name) for name in _OPTIONS})
    with closing(Audit(options)) as audit:
        try:
            result = read_left(folder, arguments.max_age)
            faults = list(find_faults(result, folder, audit, find_fingerprint(audit)))
        except ResultError as exc:
            faults = [str(exc).partition("\n")[0].rstrip(".")]
    if faults:
        print(f"NOT VERIFIED: {folder} is no complete, fresh pass of {arguments.model}:")
        for fault in faults:
            print(f"  {fault}.")
        return 1
    print(f"Verified: {tell(result, folder)}")
    return 0


def find_fingerprint(audit: "Audit") -> str | None:
    """Return the fingerprint of the model as it is now. Return None if no fingerprint can be found.

    A callable is imported in a separate process, because its code could end or change this process.
    """
    from bbnli_audit.models import python_callable
    from bbnli_audit.models.find import find_kind

    name = str(audit.options.model)
    if find_kind(name) is not python_callable.KIND:
        try:
            return audit.reader.info.fingerprint
        except AuditError:
            return None
    done = subprocess.run(  # noqa: S603 - our own interpreter and code; the name is an argument
        [sys.executable, "-c", _FINGERPRINT, name], capture_output=True, text=True, check=False
    )
    lines = done.stdout.split()
    return lines[-1] if done.returncode == 0 and lines else None


def tell(result: "AuditResult", folder: Path) -> str:
    from bbnli_audit.core.results.rows import Verdict

    required = [judgement for row in result.all_rows for judgement in result.required_of(row)]
    n_open = sum(one.verdict is Verdict.INCONCLUSIVE for one in required)
    n_waived = sum(one.is_waived for one in required)
    counts = f"{counted(len(result.subtopics), 'subtopic')}, {counted(len(required), 'limit')}"
    model = tell_model(result.model)
    told = f"{counts}, {n_open} open, {n_waived} waived"
    return f"{folder} is a complete result of {model}: {told}. No limit was crossed on these pairs without a waiver."
