"""`make audit`: audits the demo model, keeps its result as the baseline, then audits a successor that got worse.

The second run shows what the gate is for: `demo-next` has a stereotype planted in two subtopics, and the run must stop
it for these two. Ends with 0 when both audits ran to their end, whatever the verdicts; with a run's own code when
something kept it from being measured. Writes into `build`, or into the folder that is given.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def main(folder: Path = ROOT / "build") -> int:
    report, next_report, baseline = (folder / name for name in ("audit", "audit-next", "baseline.json"))
    first, code = audit("demo", report, f"--bbnli-save-baseline={told(baseline)}")
    if first is None:
        return code or 1
    if code == 0:
        second, next_code = audit("demo-next", next_report, f"--bbnli-baseline={told(baseline)}")
        if second is None:
            return next_code or 1
        print(f"\n`pytest --model=demo-next` gives a release job exit code {next_code}. {told_growth(second)}")
    meaning = "a release would stop here" if code else "no limit was crossed on these pairs"
    print(f"`pytest --model=demo` gives a release job exit code {code}: {meaning}.")
    print(f"Both pages: {told(report / 'report.html')}, {told(next_report / 'report.html')}. Next: docs/walkthrough.md")
    return 0


def audit(model: str, report: Path, *options: str) -> tuple[dict[str, Any] | None, int]:
    """Run an audit as a user would. Return its result, None if it did not run to its end, and its exit code."""
    result = report / "result.json"
    result.unlink(missing_ok=True)
    command = [f"--model={model}", f"--bbnli-report={told(report)}", *options]
    print(f"\n$ pytest {' '.join(command)}\n", flush=True)
    code = subprocess.run([sys.executable, "-m", "pytest", *command], cwd=ROOT, check=False).returncode
    if code not in (0, 1) or not result.exists():
        print(f"\nThe audit of {model} did not run to its end (exit code {code}).")
        return None, code
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    if found["settings"]["not_audited"]:
        print(f"\nNot measured: {', '.join(found['settings']['not_audited'])}.")
        return None, code
    return found, code


def told_growth(result: dict[str, Any]) -> str:
    """Say in which subtopics a measure grew by more than the margin since the baseline."""
    levels = {row["path"] for row in result["subtopics"]}
    grown = [
        each for each in result["comparison"]["regressions"] if each["verdict"] == "FAIL" and each["path"] in levels
    ]
    paths = sorted({each["path"] for each in grown})
    return (
        f"Since demo, bias grew in {' and '.join(paths)}." if paths else "Nothing was shown to have grown since demo."
    )


def told(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


if __name__ == "__main__":
    raise SystemExit(main(*map(Path, sys.argv[1:2])))
