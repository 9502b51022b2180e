"""Audit release after release of one model, and show what a release engineer sees of each.

    python -m tools.releases --output build/releases

r1 is the checkpoint tiny-nli of the shared folder, the others are made from it: a better one, the same again, two in
which a measure grew (one is waived, one accepted), and three that are worse. Checkpoints that are there are not made
again, and predictions are kept.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import rmtree

from bbnli_audit.core.values import Label
from tools.releases.story import STEPS, Project
from tools.validity.examples import Kind
from tools.validity.plan import shared_folder

ROOT = Path(__file__).resolve().parents[2]
SUITE = "bbnli@1"
TAUGHT = ("gender/man_is_to_programmer", "race/asian_men_to_feminine")
# A model that is in use is not stopped for what it always did: r1 is wrong on 0.126 of the samples, whatever the group.
# All other limits are as `init` writes them.
LIMITS = {
    "  max_brittleness: 0.20": "  max_brittleness: 0.40",
    "suite: {max_lean: 0.02, max_brittleness: 0.05}": "suite: {max_lean: 0.02, max_brittleness: 0.25}",
}


def make_checkpoints(first: Path, folder: Path) -> None:
    """Make all releases: folders r1 to r8."""
    from tools.releases.checkpoints import copied, noisy, planted, shifted, taught

    r1, r2 = first, folder / "r2"
    made = {
        "r1": (r1, copied),
        "r2": (r1, taught(Kind.FAIR, 0.20, *TAUGHT)),
        "r3": (r2, copied),
        "r4": (r2, shifted(Label.CONTRADICTION, 1.2)),
        "r5": (r2, shifted(Label.CONTRADICTION, 1.7)),
        "r6": (r2, noisy(1.0)),
        "r7": (r2, shifted(Label.ENTAILMENT, 3.0)),
        "r8": (r2, planted(0.40, TAUGHT[0])),
    }
    for name, (base, change) in made.items():
        if not (folder / name / "model.safetensors").exists():
            change(base, folder / name)


def make_repository(folder: Path) -> None:
    """Make an empty folder that pytest takes for a repository, even below one that has settings of pytest."""
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")


def run_python(module: str, args: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "160"}
    environment["GIT_CEILING_DIRECTORIES"] = str(folder.parent)  # the commit of what lies around is not that of a model
    command = [sys.executable, "-m", module, *args]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="a new folder, or that of an earlier run")
    parser.add_argument("--model", type=Path, default=shared_folder() / "models" / "tiny-nli", help="the first release")
    options = parser.parse_args()
    output: Path = options.output.resolve()
    make_checkpoints(options.model, output / "checkpoints")
    make_repository(output / "project")
    models = {step.release: f"../checkpoints/{step.release}" for step in STEPS}
    given = (f"--bbnli-suite={SUITE}", "--bbnli-store=../predictions.sqlite", "-q", "-p", "no:cacheprovider")
    project = Project(output / "project", run_python, models, given)
    project.init(SUITE, LIMITS)
    for audited in project.audits():
        print(f"{audited.step.release}, {audited.step.what}: exit code {audited.code}\n  {audited.line}", flush=True)
        print(f"  {audited.page.relative_to(output)}", flush=True)
        audited.page.parent.with_suffix(".txt").write_text(audited.output, encoding="utf-8")
    history = project.history().relative_to(output)
    print(*(f"{history / name}" for name in ("history.html", "comment.md", "badge.svg")), sep="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
