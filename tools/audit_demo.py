"""`make audit`: audits the bundled demo model and says what a release job would see.

Ends with 0 when the audit ran to its end, whatever the verdicts; with the run's own code when something kept it from
being measured.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "audit"


def main() -> int:
    result = REPORT / "result.json"
    result.unlink(missing_ok=True)
    command = ["--model=demo", f"--bbnli-report={REPORT.relative_to(ROOT)}"]
    print(f"pytest {' '.join(command)}\n", flush=True)
    code = subprocess.run([sys.executable, "-m", "pytest", *command], cwd=ROOT, check=False).returncode
    if code not in (0, 1) or not result.exists():
        print(f"\nThe audit did not run to its end (exit code {code}).")
        return code or 1
    missing = json.loads(result.read_text(encoding="utf-8"))["settings"]["not_audited"]
    if missing:
        print(f"\nNot measured: {', '.join(missing)}.")
        return code or 1
    meaning = "a release would stop here" if code else "no limit was crossed on these pairs"
    print(f"\nThe audit ran to its end. `pytest --model demo` gives a release job exit code {code}: {meaning}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
