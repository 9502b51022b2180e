"""What the top of the page says in words: the verdict, which model and data, what was measured and what was not."""

from collections.abc import Iterator
from dataclasses import dataclass

from bbnli_audit.core.results.audit import AuditResult, Verdict
from bbnli_audit.reports import notes
from bbnli_audit.reports.ranking import NOT_REQUIRED, WAIVED

Facts = list[tuple[str, str]]

# How each verdict of a row continues "3 of 16 subtopics ...", for one subtopic and for several.
_SAID = {
    "FAIL": ("crosses a limit", "cross a limit"),
    "NO_DATA": ("has no usable pair", "have no usable pair"),
    WAIVED: ("needs its waiver", "need their waivers"),
    "INCONCLUSIVE": ("is undecided", "are undecided"),
    "PASS": ("crosses no limit on these pairs", "cross no limit on these pairs"),
    NOT_REQUIRED: ("was held to no limit", "were held to no limit"),
}


@dataclass(frozen=True, slots=True)
class Overview:
    """Words and facts at the top of the page."""

    verdict: str
    brief: str
    notes: list[str]
    tally: list[tuple[str, int]]
    groups: list[tuple[str, Facts]]
    measured: list[str]
    not_measured: list[str]


def overview(result: AuditResult) -> Overview:
    counted = list(notes.count_verdicts(result).items())
    return Overview(
        verdict=_verdict_line(counted, len(result.subtopics)),
        brief=_brief(result),
        notes=list(_notes(result)),
        tally=counted,
        groups=[
            ("Model", model_facts(result)),
            ("Data", _suite_facts(result)),
            ("Limits", _limit_facts(result)),
            ("Versions", [(name, str(version)) for name, version in result.settings.get("versions", {}).items()]),
        ],
        measured=list(_measured(result)),
        not_measured=list(_not_measured(result)),
    )


def short_name(result: AuditResult, path: str) -> str:
    """Leave the suite out where there is only one."""
    return path.partition("/")[2] or path if len(result.suites) == 1 else path


def model_facts(result: AuditResult) -> Facts:
    model = result.model
    return [
        ("Name", model.name),
        ("Fingerprint", model.fingerprint[:12]),
        ("Kind", model.kind),
        ("Computed by", f"{model.backend}, {model.dtype}"),
        ("Labels", ", ".join(model.labels)),
    ]


def _verdict_line(tally: list[tuple[str, int]], n: int) -> str:
    if [verdict for verdict, _ in tally] == ["PASS"]:
        return f"No limit was crossed on these pairs, in {_number(n, 'subtopic')}."
    (first, n_first), *others = tally or [(NOT_REQUIRED, 0)]
    parts = [f"{n_first} of {_number(n, 'subtopic')} {_SAID[first][n_first != 1]}"]
    parts += [f"{count} {_SAID[verdict][count != 1]}" for verdict, count in others]
    return "; ".join(parts) + "."


def _brief(result: AuditResult) -> str:
    suites = ", ".join(f"{suite.name} {suite.version}" for suite in result.suites)
    total = result.total
    controls = "none" if total.control_accuracy is None else f"{total.control_accuracy:.3f} right"
    return (
        f"{_number(total.counts.n_pairs, 'pair')} of {suites}. Controls: {controls}, so the model "
        f"{'counts' if result.is_competent else 'does not count'} as able to do the task."
    )


def _notes(result: AuditResult) -> Iterator[str]:
    if not result.is_competent:
        yield "The model was not shown to do the task well enough, so nothing can read PASS."
    if result.comparison is not None:
        regressions = result.comparison.regressions
        n_worse = sum(regression.verdict is Verdict.FAIL for regression in regressions)
        grew = f"{n_worse} of" if n_worse else "none of"
        yield (
            f"Since the baseline {result.comparison.baseline.name}, {grew} {_number(len(regressions), 'measure')} "
            "grew by more than the margin as far as these pairs show."
        )
    n_waived = sum(judgement.is_waived for row in result.subtopics for judgement in row.verdicts)
    if n_waived:
        yield f"Passing by a waiver: {_number(n_waived, 'verdict')}."


def _suite_facts(result: AuditResult) -> Facts:
    return [
        (suite.name, f"version {suite.version}, pairing {suite.pairing}, sha256 {suite.sha256[:12]}")
        for suite in result.suites
    ]


def _limit_facts(result: AuditResult) -> Facts:
    settings = result.settings
    decide = settings.get("decide", "")
    said = {"bounds": "bounds: the interval decides", "point": "point: the value alone decides"}
    undecided = {"warn": "warn: blocks nothing", "fail": "fail: fails its test"}
    return [
        ("File", str(settings.get("thresholds", ""))),
        ("Decided by", said.get(decide, str(decide))),
        ("Confidence", _share(settings.get("confidence"))),
        ("Undecided", undecided.get(settings.get("inconclusive", ""), str(settings.get("inconclusive", "")))),
    ]


def _share(value: object) -> str:
    return f"{value:.0%}" if isinstance(value, float) else "–"


def _measured(result: AuditResult) -> Iterator[str]:
    total = result.total
    yield (
        f"{_number(total.counts.n_pairs, 'pair')} ({total.counts.n_samples:,} samples) from "
        f"{_number(total.n_clusters, 'cluster')} of templates, in {_number(len(result.subtopics), 'subtopic')}."
    )
    if total.control_accuracy is not None and "skill" in result.settings:
        yield from notes.competence(result)
    agreement = result.settings.get("agreement")
    if agreement:
        yield (
            f"A fast path was used: of {_number(agreement['n_checked'], 'text')} that were also run on the exact path, "
            f"{agreement['n_different']:,} got another label (refused above {agreement['limit']:.1%})."
        )


def _not_measured(result: AuditResult) -> Iterator[str]:
    if result.total.control_accuracy is None:
        yield "Competence: the suites have no controls, so nothing can read PASS."
    yield from notes.left_out(result)
    not_audited = result.settings.get("not_audited", [])
    if not_audited:
        yield f"Not audited in this run: {', '.join(not_audited)}."
    yield "Other stereotypes, groups, languages and wordings, and what the model does in use."


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
