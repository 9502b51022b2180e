"""Writes the notes beside the tables, in the same words for the terminal, the page and the Markdown files.

Most functions take a `quote`, which marks up names from outside (models, files, subtopics) for Markdown. With the
default, `str`, names stay as they are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from bbnli_audit.core.results.audit import RECALL, AuditResult
from bbnli_audit.core.results.comparison import Comparison, Regression
from bbnli_audit.core.results.rows import Judgement, SubtopicResult, Verdict
from bbnli_audit.core.words import counted, figure
from bbnli_audit.measures.readings.kinds import reading_of
from bbnli_audit.reports.failure import what_would_decide
from bbnli_audit.reports.markdown import figures
from bbnli_audit.reports.shown import (
    ROWS_WORST_FIRST,
    growth_verdict,
    interval,
    judged_levels,
    measure_name,
    row_verdict,
    short_name,
    tell_unseen,
    worst_first,
)

Quote = Callable[[str], str]

NO_TASK = "This model is read by its likelihoods, and a likelihood is neither right nor wrong."
RELIABILITY = (
    "Near 1, another set of templates would show the same differences between subtopics; near 0, these differences "
    "come from the wordings alone."
)
NO_CONTROLS = "no control was predicted, so nothing can PASS."


def count_verdicts(result: AuditResult, rows: Sequence[SubtopicResult]) -> dict[str, int]:
    """Count the rows by verdict, the worst verdict first."""
    return _tally(row_verdict(result, row) for row in rows)


def count_growth(comparison: Comparison) -> dict[str, int]:
    """Count the measures compared with the baseline by verdict, the worst verdict first."""
    return _tally(growth_verdict(regression) for regression in comparison.regressions)


def _tally(verdicts: Iterable[str]) -> dict[str, int]:
    tally = Counter(verdicts)
    return {verdict: tally[verdict] for verdict in ROWS_WORST_FIRST if tally[verdict]}


def show_counts(result: AuditResult, rows: Sequence[SubtopicResult]) -> str:
    """Show how many rows have which verdict, as in "3 FAIL, 21 PASS"."""
    return ", ".join(f"{n} {verdict}" for verdict, n in count_verdicts(result, rows).items())


def audited(result: AuditResult) -> str:
    """Count the verdicts on all audited subtopics, and on the suites and domains with limits."""
    judged = judged_levels(result)
    told = f"{counted(len(result.subtopics), 'subtopic')} audited: {show_counts(result, result.subtopics)}"
    if judged:
        told += f"; suites and domains, each as a whole: {show_counts(result, judged)}"
    return f"{told}. PASS says: no limit was crossed on these pairs."


def corrected(result: AuditResult, mark: str) -> Iterator[str]:
    """Say for how many limits FAIL is corrected, and how many verdicts are open only because of this correction.

    `mark` is what tables show for these verdicts.
    """
    if not result.settings.n_limits:
        return
    told = f"FAIL is corrected for the {counted(result.settings.n_limits, 'limit')} of this run (Holm)"
    n_held = count_held(result)
    if n_held:
        verdicts = counted(n_held, "verdict is", "verdicts are")
        told += f"; {verdicts} open because of it, marked {mark}: beyond the limit by the plain interval alone"
    yield f"{told}."


def count_held(result: AuditResult) -> int:
    """Count the required verdicts that would be FAIL without the correction for the number of limits."""
    required = [judgement for row in result.all_rows for judgement in result.required_of(row)]
    return sum(judgement.is_corrected and not judgement.is_waived for judgement in required)


def competence(result: AuditResult, quote: Quote = str) -> Iterator[str]:
    """Say whether the model can do the task, with the figures that show it."""
    judgement, skill, total = result.competence, result.settings.skill, result.total
    if not result.has_task:
        yield f"Token probability: {NO_TASK[0].lower()}{NO_TASK[1:]}"
        yield from _facts(result, quote)
        return
    if judgement is None or total.control_accuracy is None:
        yield f"Competence could not be measured: {NO_CONTROLS}"
        return
    is_recall = judgement.measure == RECALL
    limit = f"{'recall ' if is_recall else ''}limit {judgement.limit:.2f}, {quote(judgement.source)}"
    yield (
        f"Competence: {figure(total.control_accuracy)} of {counted(total.n_controls, 'control')} right "
        f"({limit}; best constant answer {figure(skill.best_constant)}; "
        f"accuracy on plain NLI items {figure(skill.probe_accuracy)}): {judgement.verdict}."
    )
    if skill.recalls and reading_of(result.model.kind).has_measures_of(["labels"]):
        yield f"Recall: {', '.join(f'{label} {figure(share)}' for label, share in skill.recalls.items())}."
    if not result.is_competent:
        yield "A model that cannot do the task cannot PASS any limit."


def _facts(result: AuditResult, quote: Quote) -> Iterator[str]:
    """Say whether a model that is read by its likelihoods finds true facts likelier than false ones."""
    judgement, facts = result.competence, result.settings.skill.facts
    if facts is None:  # a result of an earlier version
        return
    if judgement is None or facts.value is None:
        yield "Competence could not be measured: no control has a fact in a true and a false version. Nothing can PASS."
        return
    yield (
        f"Competence: the true version is likelier than the false one in {figure(facts.value)} of the {facts.n} facts "
        f"of the controls (interval {interval(facts)}; limit {judgement.limit:.2f}, {quote(judgement.source)}; "
        f"0.5 is chance): {judgement.verdict}."
    )
    if not result.is_competent:
        yield "A model that is not shown to tell true from false cannot PASS any limit."


def reliability(result: AuditResult, quote: Quote = str) -> Iterator[str]:
    """Show for each suite how reliable the differences between its subtopics are, if enough subtopics were measured."""
    suites = list(dict.fromkeys(each.suite for each in result.reliability))
    for suite in suites:
        found = [each for each in result.reliability if each.suite == suite]
        values = ", ".join(f"{quote(measure_name(each.measure))} {figure(each.value, 2)}" for each in found)
        n_subtopics = counted(found[0].n_subtopics, "subtopic")
        told = f"Split-half reliability over the templates of {quote(suite)}, {n_subtopics}: {values}."
        yield f"{told} {RELIABILITY}" if suite == suites[-1] else told


TAGS = {"aggregate": "roughly true on average"}  # tag -> what it says of the hypotheses that carry it


def apart(rows: Sequence[SubtopicResult], quote: Quote = str) -> Iterator[str]:
    """Say how many pairs of each row carry a tag, and show the row's measures with and without these pairs."""
    for row in rows:
        for tag, found in row.apart.items():
            meaning = f" ({TAGS[tag]})" if tag in TAGS else ""
            told = "; ".join(
                f"{measure_name(name)} {figures(row.measures.get(name))} with them, {figures(measured)} without"
                for name, measured in found.without.items()
            )
            share = f"{found.n_pairs:,} of {row.n_pairs:,} pairs"
            yield f"{quote(row.path)}: {share} carry the tag {quote(tag)}{meaning}: {told}."


def left_open(result: AuditResult, quote: Quote = str) -> list[str]:
    """List the inconclusive verdicts, each with what would decide it. Suites and domains come before subtopics."""
    return [
        f"{quote(row.path)} {quote(short_name(judgement.measure))}: {what_would_decide(row, judgement)}"
        for row in (*judged_levels(result), *worst_first(result))
        for judgement in result.required_of(row)
        if judgement.verdict is Verdict.INCONCLUSIVE and result.is_competent
    ]


def left_out(result: AuditResult) -> Iterator[str]:
    """Say what could not be seen, was left out, or was cut off."""
    if result.settings.size != "full":
        size = result.settings.size
        yield f"Size {size}: a part of the pairs was audited, so intervals are wider (--bbnli-size=full takes all)."
    if "not_entailment" in result.model.labels:
        yield (
            "The model has two labels: it cannot answer contradiction, so errors of that kind could not be seen; "
            "not_entailment was read as neutral."
        )
    total = result.total
    if total.n_identical or total.n_duplicates:
        yield (
            f"Left out of the measures: {counted(total.n_identical, 'pair')} that are the same on both sides, as the "
            f"model reads them; {counted(total.n_duplicates, 'duplicate')}."
        )
    if total.n_unparsed:
        yield (
            f"Not read: {counted(total.n_unparsed, 'answer was', 'answers were')} not among those that the prompt asks "
            f"for. {'Its pair counts' if total.n_unparsed == 1 else 'Their pairs count'} towards "
            f"{short_name('unparsed_rate')}, but not towards the measures of bias."
        )
    if total.n_truncated:
        yield (
            f"Cut off: {total.n_truncated:,} of {counted(max(2 * total.n_asked, total.n_samples), 'sample')} "
            f"{'was' if total.n_truncated == 1 else 'were'} longer than the model takes; "
            "what was cut off was not read."
        )
    if total.n_unseen:
        yield (
            f"Not seen whole: {tell_unseen(total)}. A limit gets PASS only if it would hold whatever "
            f"{'this pair shows' if total.n_unseen == 1 else 'these pairs show'}."
        )


def waived(result: AuditResult, quote: Quote = str) -> list[str]:
    """Return a line that counts the verdicts with a waiver, then a line for each waiver. The list may be empty."""
    judged: list[tuple[str, str, Judgement | Regression]] = [
        (row.path, short_name(judgement.measure), judgement) for row in result.all_rows for judgement in row.verdicts
    ]
    if result.comparison is not None:
        judged += [(each.path, f"growth of {short_name(each.measure)}", each) for each in result.comparison.regressions]
    lines = []
    for path, measure, each in judged:
        if each.waiver is not None:
            used = " - no longer needed, remove it" if each.verdict is Verdict.PASS else ""
            used = " - not enough" if isinstance(each, Regression) and each.is_beyond_waiver else used
            lines.append(f"{quote(path)} {quote(measure)}: {quote(str(each.waiver))}{used}")
    return [f"Waivers: {len(lines)} of {counted(len(judged), 'verdict')}.", *lines] if lines else []


def against_baseline(comparison: Comparison, quote: Quote = str) -> Iterator[str]:
    """Say what was compared with the baseline, and how the comparison ended."""
    tally = count_growth(comparison)
    outcomes = [f"{tally.pop('PASS', 0)} of {len(comparison.regressions)} within the margin"]
    if comparison.is_unchanged:
        outcomes = [f"the same model (fingerprint {comparison.baseline.fingerprint[:12]}), so nothing can have grown"]
    outcomes += [f"{n} {verdict}" for verdict, n in tally.items()]
    yield (
        f"Against the baseline {quote(comparison.baseline.name)} ({quote(comparison.source)}): {', '.join(outcomes)}; "
        f"{counted(comparison.n_shared, 'shared pair')}, {comparison.n_only_candidate:,} only here, "
        f"{comparison.n_only_baseline:,} only there; corrected for {counted(comparison.n_tests, 'test')} (Holm)."
    )
    if not comparison.is_same_data:
        yield "The suites are not those of the baseline: only the pairs that both have are compared."


def grown(comparison: Comparison, *verdicts: str) -> list[Regression]:
    """Return the regressions with these verdicts, sorted by verdict (worst first), level (widest first) and growth."""

    def key(regression: Regression) -> tuple[int, int, float, str, str]:
        growth = regression.increase.value
        place, depth = ROWS_WORST_FIRST.index(growth_verdict(regression)), min(regression.path.count("/"), 2)
        return place, depth, 0.0 if growth is None else -growth, regression.path, regression.measure

    return sorted((one for one in comparison.regressions if growth_verdict(one) in verdicts), key=key)


def loosened(comparison: Comparison, quote: Quote = str) -> list[str]:
    """List the limits that are wider than in the baseline."""
    return [
        f"Limit loosened since the baseline: {quote(limit.path)} {quote(short_name(limit.measure))} "
        f"from {figure(limit.before)} to {figure(limit.after)} ({quote(limit.source)})"
        for limit in comparison.loosened
    ]
