"""`make audit`: audits a model and says what a release job would see.

Ends with 0 when the audit ran to its end, whatever the verdicts; with the run's own code when something kept it from
being measured.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "audit"


def choose_model() -> str:
    """Take a real checkpoint where one is at hand, else the planted random model."""
    shared = Path(os.environ.get("BBNLI_SHARED", ROOT.parent / "shared"))
    checkpoint = shared / "models" / "tiny-nli"
    return os.path.relpath(checkpoint, ROOT) if checkpoint.is_dir() else "planted:random"


def main() -> int:
    model = choose_model()
    result = REPORT / "result.json"
    result.unlink(missing_ok=True)
    command = [f"--model={model}", f"--bbnli-report={REPORT.relative_to(ROOT)}"]
    print(f"pytest {' '.join(command)}\n", flush=True)
    code = subprocess.run([sys.executable, "-m", "pytest", *command], cwd=ROOT, check=False).returncode
    if code not in (0, 1) or not result.exists():
        print(f"\nThe audit did not run to its end (exit code {code}).")
        return code or 1
    listed = sum(1 for _ in (ROOT / "bbnli_audit" / "suites" / "data" / "bbnli").rglob("*/*.json"))
    measured = len(json.loads(result.read_text(encoding="utf-8"))["subtopics"])
    if measured < listed:
        print(f"\nOnly {measured} of {listed} subtopics were measured.")
        return code or 1
    meaning = "limits were crossed: a release job would stop here" if code else "no limit was crossed on these pairs"
    print(f"\nThe audit ran to its end. `pytest --model=...` gives a release job exit code {code}: {meaning}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
