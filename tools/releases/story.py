"""The releases of one model, each audited as a release engineer would, in a project that `bbnli-audit init` wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bbnli_audit.core.results.file import read_result
from bbnli_audit.core.results.rows import Verdict
from bbnli_audit.measures.registry import find_measure

if TYPE_CHECKING:
    from subprocess import CompletedProcess

# Runs `python -m MODULE ARGS` in a folder.
Command = Callable[[str, Sequence[str], Path], "CompletedProcess[str]"]
CLI = "bbnli_audit.frontends.cli.main"
OWNER, REASON = "Ada, NLP", "longer inputs; mended in the next release"
FIRST_DAY = date(2026, 1, 15)  # of r1; the others follow month by month


@dataclass(frozen=True, slots=True)
class Step:
    """One audit: of which release, and what is special about it."""

    release: str
    what: str
    baseline: str = ""  # the release that it is compared with
    after: str = ""  # "waived" or "accepted": what became of the growth that the audit before this one found
    is_kept: bool = False  # as the baseline of the next release

    @property
    def name(self) -> str:
        return f"{self.release}-{self.after}" if self.after else self.release


STEPS = (
    Step("r1", "the first baseline", is_kept=True),
    Step("r2", "better", "r1", is_kept=True),
    Step("r3", "the same again", "r2", is_kept=True),
    Step("r4", "a measure grew", "r3"),
    Step("r4", "the growth is waived by hand", "r3", "waived", is_kept=True),
    Step("r5", "a measure grew", "r4"),
    Step("r5", "the growth is accepted", "r4", "accepted", is_kept=True),
    Step("r6", "worse: noise in the weights", "r5"),
    Step("r7", "worse: a shifted bias", "r5"),
    Step("r8", "worse: a planted stereotype", "r5"),
)


@dataclass(frozen=True, slots=True)
class Audited:
    """What a release engineer sees of one audit."""

    step: Step
    code: int
    line: str  # the first of the decision
    page: Path
    output: str


class Project:
    """A repository with audits, limits and baselines."""

    def __init__(self, folder: Path, command: Command, models: Mapping[str, str], options: Sequence[str]) -> None:
        self.folder, self._command, self._models, self._options = folder, command, models, options

    def init(self, suite: str, changes: Mapping[str, str]) -> None:
        """Let the package write audits and limits, and change some of the limits."""
        self._must(CLI, "init", str(self.folder), f"--suite={suite}", "--ci=none", folder=self.folder.parent)
        text = self.limits.read_text(encoding="utf-8")
        for old, new in changes.items():
            if old not in text:
                raise ValueError(f"init wrote no {old!r}")
            text = text.replace(old, new)
        self.limits.write_text(text, encoding="utf-8")

    @property
    def limits(self) -> Path:
        return self.folder / "thresholds.yaml"

    def report(self, step: Step) -> Path:
        return self.folder / "reports" / step.name

    def audits(self) -> Iterator[Audited]:
        """Audit release after release. Waivers go when the baseline is renewed: they were for the growth until then."""
        plain = self.limits.read_text(encoding="utf-8")
        last = STEPS[0]
        for step in STEPS:
            if step.after:
                {"waived": self._waive, "accepted": self._accept}[step.after](self.report(last))
            yield self._audit(step)
            if step.is_kept:
                self.limits.write_text(plain, encoding="utf-8")
            last = step

    def _audit(self, step: Step) -> Audited:
        number = int(step.release.removeprefix("r"))
        options = [f"--bbnli-release={step.release}", f"--bbnli-date={FIRST_DAY.replace(month=number)}"]
        if step.baseline:
            options.append(f"--bbnli-baseline=baselines/{step.baseline}.json")
        if step.is_kept:
            options.append(f"--bbnli-save-baseline=baselines/{step.release}.json")
        report = self.report(step)
        done = self._command(
            "pytest",
            ["audits", f"--model={self._models[step.release]}", f"--bbnli-report={report}", *options, *self._options],
            self.folder,
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{step.name} was not audited: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return Audited(step, done.returncode, first_line(done.stdout), report / "report.html", done.stdout)

    def _waive(self, report: Path) -> None:
        """Write a waiver for each growth that stopped the release, as the failure texts say."""
        comparison = read_result(report / "result.json").comparison
        found = [each for each in (comparison.regressions if comparison else ()) if each.verdict is Verdict.FAIL]
        terms = f'reason: "{REASON}", owner: "{OWNER}", expires: {_last_day()}'
        lines = [
            f"  - {{subtopic: {each.path}, measure: {find_measure(each.measure).short}, waives: growth, {terms}}}\n"
            for each in found
        ]
        with self.limits.open("a", encoding="utf-8") as file:
            file.write(f"waivers:\n{''.join(lines)}")

    def _accept(self, report: Path) -> None:
        terms = ("--owner", OWNER, "--reason", REASON, "--expires", str(_last_day()))
        self._must(CLI, "baseline", "accept", str(report), *terms)

    def history(self) -> Path:
        """Write the page, the comment and the badge of all releases."""
        results = [str(self.report(step) / "result.json") for step in _last_of_each()]
        self._must(CLI, "history", *results, "--output", "history")
        return self.folder / "history"

    def _must(self, module: str, *args: str, folder: Path | None = None) -> None:
        done = self._command(module, args, folder or self.folder)
        if done.returncode:
            raise RuntimeError(f"{' '.join(args)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def first_line(output: str) -> str:
    """Return the first line of the decision: the one below the title of the summary."""
    found = re.search(r"^=+ bias audit of .*\n(.*)$", output, re.MULTILINE)
    return found[1].strip() if found else ""


def _last_of_each() -> list[Step]:
    return list({step.release: step for step in STEPS}.values())


def _last_day() -> date:
    return date.today() + timedelta(days=90)
