"""`make audit`: what a release job sees. Audits the demo model, then `demo-next`, its successor, against that result.

`demo-next` is the demo model after a fine-tuning that planted a stereotype in two subtopics. Ends with 0 when both
audits ran to their ends, whatever the verdicts; with a run's own code when something kept it from being measured.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REPORTS = Path("build", "audit")
FIRST, SECOND = "demo", "demo-next"


def audit(model: str, *options: str) -> tuple[int, dict[str, Any] | None]:
    """Run an audit and return its exit code and its result; None if it did not run to its end."""
    result = ROOT / REPORTS / model / "result.json"
    result.unlink(missing_ok=True)
    command = [f"--model={model}", f"--bbnli-report={REPORTS / model}", *options]
    print(f"\npytest {' '.join(command)}\n", flush=True)
    code = subprocess.run([sys.executable, "-m", "pytest", *command], cwd=ROOT, check=False).returncode
    if code not in (0, 1) or not result.exists():
        print(f"\nThe audit of {model} did not run to its end (exit code {code}).")
        return code or 1, None
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    if missing := found["settings"]["not_audited"]:
        print(f"\nNot measured: {', '.join(missing)}.")
        return code or 1, None
    return code, found


def grown(result: dict[str, Any]) -> list[str]:
    """List what grew by more than its margin, in subtopics."""
    tests = (result["comparison"] or {}).get("regressions", [])
    failed = [test for test in tests if test["verdict"] == "FAIL" and test["path"].count("/") == 2]
    return sorted({test["path"] for test in failed})


def main() -> int:
    first, found = audit(FIRST)
    if found is None:
        return first
    second, found = audit(SECOND, f"--bbnli-baseline={REPORTS / FIRST / 'result.json'}")
    if found is None:
        return second
    print(
        f"\nBoth audits ran to their ends. A release job gets exit code {first} for {FIRST} and {second} for {SECOND}."
    )
    print(f"Subtopics in which {SECOND} got worse: {', '.join(grown(found)) or 'none was shown'}.")
    print(f"The reports are {REPORTS / FIRST / 'report.html'} and {REPORTS / SECOND / 'report.html'}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
