"""Runs an audit without pytest: suites -> pairs -> model -> readings -> measures -> limits -> verdicts -> reports.

`run_audit` does all of it. The pytest plugin asks the same `Audit` subtopic by subtopic, in one process or in several.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from bbnli_audit.audit.extensions import join_extensions, using
from bbnli_audit.audit.findings import Finding, JudgedLevels, ModelFacts, assemble, find_levels, pool, unpack_finding
from bbnli_audit.audit.gate.baseline import Regressions
from bbnli_audit.audit.gate.compared import Shown
from bbnli_audit.audit.gate.growth import Test, find_rule
from bbnli_audit.audit.gate.unseen import Unseen
from bbnli_audit.audit.gate.verdict import correct_failures, has_passed, judge_table, why_not_green
from bbnli_audit.audit.inputs import find_excluded, find_reader, open_suites, read_limits
from bbnli_audit.audit.model_reader import Items, ModelReader
from bbnli_audit.audit.outputs import NOT_PASSED, Outputs, name_from
from bbnli_audit.audit.release import check_date, find_release
from bbnli_audit.audit.second import ModelReading, PromptReading, SecondReading, tell_of
from bbnli_audit.core.errors import AuditError, ModelError, OptionError, suggest, telling_system_errors
from bbnli_audit.core.options import AuditOptions, ModelOptions
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.comparison import Regression
from bbnli_audit.core.results.file import dump, load
from bbnli_audit.core.results.rows import NO_DATA, SubtopicResult
from bbnli_audit.core.values import Subtopic, levels_above
from bbnli_audit.core.words import figure
from bbnli_audit.measures.apart import measure_apart
from bbnli_audit.measures.drivers import MOST, Evidence
from bbnli_audit.measures.readings.table import PairTable, join_tables, share_run
from bbnli_audit.measures.registry import MeasuredTable, find_measure, limited_measures, measure_table
from bbnli_audit.models.inference.progress import Progress
from bbnli_audit.models.opening import OpenedModel, PlannedModel, Process, plan_model
from bbnli_audit.reports.decision import held_back
from bbnli_audit.suites.protocol import audits_of
from bbnli_audit.suites.registry import BUILT_IN
from bbnli_audit.suites.sizes import read_size


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where an audit runs: settings that the front end knows and that are not options."""

    root: Path = field(default_factory=Path.cwd)  # results name files relative to this folder
    process: Process = field(default_factory=Process)
    show_progress: Callable[[], Progress | None] = lambda: None  # called once for each model


class Audit:
    """One model, held to limits. The constructor checks everything that can be checked without the model."""

    def __init__(self, options: AuditOptions, surroundings: Surroundings | None = None) -> None:
        self.options = options
        self._surroundings = surroundings or Surroundings()
        self._today = date.today()
        self._measured: dict[str, Finding] = {}
        self._findings: dict[str, Finding] = {}  # findings that a test asked for; they go into the result
        self._selected: set[str] = set()
        self._tried: set[str] = set()  # subtopics that were measured, or could not be
        self._level_rows: dict[str, SubtopicResult] = {}
        self._has_two_models = False
        self._judged = JudgedLevels()
        check_date(options.date)
        root, extensions = self._surroundings.root, join_extensions(options.extensions)
        with ExitStack() as stack:
            stack.enter_context(using(extensions))
            self.items = Items(open_suites(options, extensions.suites), read_size(options.size))
            self.excluded = find_excluded(options.exclude, self.items.subtopics)
            self.subtopics = {path: each for path, each in self.items.subtopics.items() if path not in self.excluded}
            self.known_suites = {*BUILT_IN, *(suite.name for suite in extensions.suites)}  # audited in this run or not
            self.thresholds = read_limits(options.thresholds, root, self.items, self.known_suites)
            self.regressions: Regressions | None = None
            if options.baseline is not None:
                rule = find_rule(self.thresholds, self._today, self.items.subtopics.values())
                self.regressions = Regressions(options.baseline, name_from(options.baseline, root), rule)
            self._planned = self._plan(options.model, options)
            self.reader = self._read(self._planned)
            self.readings: list[SecondReading] = [*self._second_model(), *self._second_prompt()]
            self.outputs = Outputs(options.report, options.save_baseline, root, extensions.reports)
            for option, path in (("--bbnli-baseline", options.baseline), ("--bbnli-store", options.store)):
                if path is not None:
                    self.outputs.keep(option, path)
            models = options.model, options.also
            self.outputs.keep_apart(lambda file: find_reader(file, models, self.items.suites))
            self._stack = stack.pop_all()  # extensions stay registered until the audit is closed

    def close(self) -> None:
        """Close the stores, and remove what extensions added."""
        for reader in self.readers.values():
            reader.close()
        self._stack.close()

    # Models

    def _plan(self, model: Any, options: ModelOptions) -> PlannedModel | None:
        return plan_model(model, options, self._surroundings.process) if isinstance(model, str) else None

    def _read(self, planned: PlannedModel | None) -> ModelReader:
        def open_model() -> OpenedModel:
            if planned is None:
                return OpenedModel(self.options.model)
            return planned.open(self.items.suites, self._surroundings.show_progress())

        return ModelReader(self.items, open_model, is_revealed=self.options.reveal)

    def _second_model(self) -> Iterable[SecondReading]:
        """Plan the second model. It uses the device and the store of the first, but no fast path."""
        options, name = self.options, self.options.also
        if name is None:
            return
        option = f"--bbnli-also={name}"
        if name == options.model and options.prompt is None:
            raise OptionError(f"{option}: is the same model as --model, so they cannot differ. Give another one.")
        try:
            planned = self._plan(name, ModelOptions(device=options.device, store=options.store))
        except AuditError as exc:
            raise type(exc)(tell_of(option, name, str(exc))) from exc
        yield ModelReading(option, name, self.reader, self._read(planned), self.thresholds)

    def _second_prompt(self) -> Iterable[SecondReading]:
        options, name = self.options, self.options.also_prompt
        if name is None:
            return
        option, first = f"--bbnli-also-prompt={name}", None if self._planned is None else self._planned.prompt
        if first is None:
            raise OptionError(f"{option}: works only with a prompted model. Add --bbnli-prompt=NAME, or leave it out.")
        how = {each: getattr(options, each) for each in ("device", "prompts", "base_url", "answers", "store")}
        try:
            planned = self._plan(options.model, ModelOptions(prompt=name, **how))
        except OptionError as exc:
            raise OptionError(str(exc).replace("--bbnli-prompt=", "--bbnli-also-prompt=")) from exc
        second = None if planned is None else planned.prompt
        assert second is not None  # the name of a prompt was given
        if second.template == first.template:
            same = f"has the same text as --bbnli-prompt={first.name}, so no answer could change"
            raise OptionError(f"{option}: {same}. Give another prompt.")
        if first.is_three_way != second.is_three_way:
            problem = f"asks for other answers than --bbnli-prompt={first.name}, so they cannot be compared"
            raise OptionError(f"{option}: {problem}. Give a prompt that asks for the same answers.")
        reading = PromptReading(option, str(options.model), self.reader, self._read(planned), self.thresholds)
        reading.prompts = first.name, second.name
        yield reading

    @property
    def readers(self) -> dict[str, ModelReader]:
        """All readers of this audit: the model itself under an empty name, the others under their options."""
        return {"": self.reader, **{reading.option: reading.second for reading in self.readings}}

    @property
    def second_prompt(self) -> PromptReading | None:
        return next((reading for reading in self.readings if isinstance(reading, PromptReading)), None)

    def level_tests(self, paths: Iterable[str]) -> list[Test]:
        """List the limits of the suites and domains above some subtopics, from the widest to the narrowest."""
        above = [levels_above(path) for path in paths]
        levels = dict.fromkeys([suite for suite, _ in above] + [domain for _, domain in above])
        names = [measure.name for measure in limited_measures() if measure.can_be_pooled]
        return [(path, name) for path in levels for name in names if self.thresholds.limit_for(path, name) is not None]

    def suite_tests(self, paths: Iterable[str]) -> list[Test]:
        """List the suites' own tests: each subtopic with the measures that a run of its suite must hold to a limit."""
        audits = {suite.name: audits_of(suite) for suite in self.items.suites}
        return [(path, measure) for path in paths for measure in audits[path.partition("/")[0]]]

    def answer_tests(self, paths: Iterable[str]) -> list[Test]:
        """List the tests of a prompted model's answers; none for other models."""
        if self._planned is None or not self._planned.is_asked:
            return []
        measures = ["unparsed_rate", *(["prompt_sensitivity"] if self.second_prompt else [])]
        return [(path, measure) for path in paths for measure in measures]

    # Measuring

    def prepare(self, paths: Collection[str]) -> None:
        """Predict all texts of these subtopics in one pass. The subtopics will be judged together."""
        self._selected = set(paths)
        subtopics = [subtopic for path, subtopic in self.subtopics.items() if path in paths]
        self.reader.prepare(subtopics)
        for reading in self.readings:
            reading.prepare(subtopics)

    @cached_property
    def facts(self) -> ModelFacts:
        """The facts about the model. The first access opens and checks the model."""
        return ModelFacts.of(self.reader, self.thresholds)

    def measure(self, path: str) -> Finding:
        """Measure and judge one subtopic, and add it to the result."""
        self._findings[path] = self._find(path)
        return self._findings[path]

    def measure_row(self, path: str) -> SubtopicResult:
        """Measure and judge a subtopic, a domain or a suite, and add its subtopics to the result."""
        if path in self.subtopics:
            return self.measure(path).result
        for member in self.members(path):
            self.measure(member)
        return self._level_rows[path]

    def members(self, path: str) -> list[str]:
        """Return the selected subtopics of a domain or a suite."""
        return [each for each in self.subtopics if each in self._selected and path in levels_above(each)]

    def _find(self, path: str) -> Finding:
        if path not in self._tried:
            self._measure({*self._selected, path})
        if path not in self._measured:
            self.reader.read(self.subtopics[path])  # measuring failed: reading raises the error again
        return self._measured[path]

    def _measure(self, paths: Collection[str]) -> None:
        """Measure and judge subtopics and the levels above them together: FAIL is corrected for all their limits."""
        self._selected = self._tried = set(paths)
        judge = partial(
            judge_table, thresholds=self.thresholds, today=self._today, is_competent=self.facts.is_competent
        )
        tables: dict[str, PairTable] = {}
        for path in sorted(paths):
            with suppress(AuditError):  # the subtopic's own test shows the error
                tables[path] = self.reader.read(self.subtopics[path]).table
        found, measured, judged = {}, {}, {}
        for path, table in share_run(tables).items():
            measured[path], found[path] = self._measure_one(self.subtopics[path], table)
            judged[path] = list(judge(self.subtopics[path], measured[path], unseen=Unseen.of(found[path].result)))
        levels = find_levels(list(found.values()))
        for path, members in levels.items():
            measured[path], self._level_rows[path] = pool(path, members, self.thresholds.file.confidence, self.items)
            judged[path] = list(judge(path, measured[path], unseen=Unseen.of(self._level_rows[path])))
        verdicts, n_limits = {path: tuple(row) for path, row in judged.items()}, 0
        if self.thresholds.file.decide == "bounds":
            verdicts, n_limits = correct_failures(measured, judged, self.thresholds.file.confidence)
        for path, each in found.items():
            self._measured[path] = replace(each, result=replace(each.result, verdicts=verdicts[path]))
        for path in levels:
            self._level_rows[path] = replace(self._level_rows[path], verdicts=verdicts[path])
        at_levels = {
            path: ([each.subtopic.path for each in members], verdicts[path]) for path, members in levels.items()
        }
        self._judged = JudgedLevels(at_levels, n_limits)

    def _measure_one(self, subtopic: Subtopic, table: PairTable) -> tuple[MeasuredTable, Finding]:
        items, families = self.items.of(subtopic), self.items.families([subtopic.suite])
        confidence = self.thresholds.file.confidence
        rights, read = self.reader.proof.rights(items.controls), self.reader.read(subtopic)
        measured = measure_table(table, confidence, families).with_facts(items.controls, rights, confidence)
        for reading in self.readings:
            reading.join(subtopic, table)
        if self.second_prompt is not None:
            measured = self.second_prompt.extend(subtopic, table, measured)
        result = SubtopicResult.of(
            subtopic.path,
            measured.counts,
            n_clusters=measured.n_clusters,
            n_templates=measured.n_templates,
            measures=measured.measures,
            control_accuracy=sum(rights) / len(rights) if rights else None,
            n_controls=len(items.controls),
            n_identical=items.n_identical + read.n_alike,
            n_duplicates=items.n_duplicates,
            n_truncated=read.n_truncated,
            n_unparsed=table.count_unread(),
            n_asked=read.n_asked,
            n_unseen=read.n_unseen,
            apart=measure_apart(table, confidence),
        )
        return measured, Finding(subtopic, result, table, rights)

    def compare(self, test: Test) -> Regression:
        """Compare one measure of a subtopic, a domain or a suite with the baseline."""
        assert self.regressions is not None
        return self.regressions.compare(test, self.facts.model, self._collect, is_competent=self.facts.is_competent)

    def _collect(self) -> Shown:
        """Collect what the model shows in all subtopics. Subtopics that cannot be measured are left out."""
        found = {}
        for path in sorted(self._selected):
            with suppress(AuditError):
                found[path] = self._find(path)
        rows = [*(each.result for each in self._measured.values()), *self._level_rows.values()]
        return Shown(
            {path: each.table.cells_by_cluster() for path, each in found.items()},
            {path: each.table.pairs_by_direction() for path, each in found.items()},
            {path: each.facts(self.items) for path, each in found.items()},
            {row.path: Unseen.of(row) for row in rows},
        )

    def find_evidence(self, measure: str, found: Finding) -> Evidence:
        """Return what a failing test shows besides its numbers."""
        known, prompt = find_measure(measure), self.second_prompt
        table: Any = found.table if known.is_over_all else found.table.measured
        if known.source == "prompts":
            table = None if prompt is None else prompt.join(found.subtopic, found.table)
        return Evidence() if known.evidence is None or table is None else known.evidence(known, table)

    def find_level_evidence(self, measure: str, paths: Iterable[str]) -> Evidence:
        """Return the evidence on a suite or domain: the subtopics (out of `paths`) that are worst in a measure."""
        found = [(path, self._measured[path].result.measures.get(measure, NO_DATA)) for path in paths]
        known = find_measure(measure)
        values = [(known.excess(each.value, 0.0), path, each.value) for path, each in found if each.value is not None]
        worst = sorted(values, key=lambda one: (-one[0], one[1]))[:MOST]
        told = ", ".join(f"{path} ({figure(value)})" for _, path, value in worst)
        return Evidence(notes=[f"subtopics that drive it: {told}"])

    # Results between processes, as plain values

    def pack(self, path: str | None) -> dict[str, Any]:
        """Pack this process's findings on a subtopic; without a path, only those on the model."""
        packed: dict[str, Any] = {"facts": dump(self.facts), "judged": dump(self._judged)}
        if path is not None:
            found = self.measure(path)
            packed |= {"path": path, **found.pack(), "second": [reading.pack(found) for reading in self.readings]}
        return packed

    def unpack(self, packed: dict[str, Any]) -> None:
        """Add findings that another process packed. The order of the calls does not matter."""
        facts = load(ModelFacts, packed["facts"])
        self._has_two_models |= "facts" in vars(self) and self.facts.model != facts.model
        self.facts = facts
        judged = load(JudgedLevels, packed["judged"])
        self._judged = judged if judged.n_limits or judged.verdicts else self._judged
        if "path" in packed:
            subtopic = self.subtopics[packed["path"]]
            self._findings[subtopic.path] = unpack_finding(packed, subtopic, self.facts.model)
            for reading, found in zip(self.readings, packed["second"], strict=True):
                reading.unpack(found)

    # The result

    def conclude(self, required: Collection[tuple[str, str]] | None = None) -> AuditResult | None:
        """Put all findings into one result; None if there are none. `required` is as for `assemble`."""
        if not self._findings:
            return None
        findings = share_run({path: found.table for path, found in self._findings.items()})
        shared = [replace(found, table=findings[path]) for path, found in self._findings.items()]
        result = assemble(self.facts, self.items, self.thresholds, shared, required, self._judged, self._level_rows)
        result = replace(result, release=find_release(self.options, self._surroundings.root))
        for reading in self.readings:
            result = reading.attach(result)
        if self.regressions is not None:
            result = replace(result, comparison=self.regressions.comparison(result))
        settings = replace(result.settings, excluded=tuple(sorted(self.excluded)))
        result = replace(result, settings=settings, troubles=tuple(self._find_troubles(result)))
        return held_back(result, why_not_green(result))

    def _find_troubles(self, result: AuditResult) -> Iterable[str]:
        if self.regressions is not None and result.comparison is None:
            yield f"a baseline was given ({self.regressions.source}), but nothing was compared with it"
        yield from (trouble.partition("\n")[0] for trouble in self.troubles)

    @property
    def troubles(self) -> list[str]:
        """Problems that no test shows: a second reading failed, or the run's processes read two different models."""
        told = f"--model={self.options.model}: changed, so the processes of this run read two different models."
        mixed = [f"{told} Run the audit again when nobody writes to it."] if self._has_two_models else []
        return [*mixed, *(reading.trouble for reading in self.readings if reading.trouble is not None)]

    def pairs(self) -> PairTable:
        """Return the pair table of the run, in the order of the result, with the sentences of the suites."""
        found = sorted(self._findings.values(), key=lambda finding: finding.subtopic.path)
        return join_tables([each.table.with_texts(self.items.pairs(each.subtopic)) for each in found])

    def run(self) -> AuditResult:
        """Run the audit that the options describe, write its files, and return the result."""
        paths = list(dict.fromkeys(self.subtopics if self.options.subtopics is None else self.options.subtopics))
        for path in paths:
            if path not in self.subtopics:
                raise OptionError(f"There is no subtopic {path!r}. {suggest(path, self.subtopics)}")
        self.outputs.prepare()
        self.prepare(paths)
        for path in paths:
            self.measure(path)
        if self.regressions is not None:
            tests = self.regressions.tests(paths)
            self.regressions.select(tests)
            for test in tests:
                self.compare(test)
        result = self.conclude()
        if result is None:
            raise AuditError("No subtopic was audited, so there is no result.")
        is_pass = has_passed(result) and not self.troubles
        self.outputs.write(result, self.pairs, why_no_pass=None if is_pass else NOT_PASSED)
        if self.troubles or self.outputs.troubles:
            raise ModelError("\n".join((*self.troubles, *self.outputs.troubles)))
        return result


def run_audit(options: AuditOptions) -> AuditResult:
    """Audit a model without pytest and return the same result that the plugin would.

    Raises:
        AuditError: if the audit cannot be run as asked. A crossed limit is not an error: it is a verdict.
    """
    with telling_system_errors(), closing(Audit(options)) as audit:
        return audit.run()
