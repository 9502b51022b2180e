"""Writes docs/validity.md and its picture from the records of the runs. No figure is written by hand."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from bbnli_audit.core.words import figure
from bbnli_audit.reports.markdown import figures, signed, table
from tools.validity.carry_out import ROOT
from tools.validity.convergence import find_agreements
from tools.validity.examples import Kind
from tools.validity.figures import (
    LEAST_RUNS,
    MEASURES,
    Finding,
    Place,
    by_learnt,
    comparable,
    find_row,
    is_rising,
    mean_by_dose,
    read_findings,
    smallest_dose,
    smallest_seen,
    values_by_dose,
)
from tools.validity.picture import draw
from tools.validity.plan import BASES, DOSES, LARGEST, OWN, Run, full_plan
from tools.validity.records import RECORDS, Row

PAGE = ROOT / "docs" / "validity.md"
PICTURE = ROOT / "docs" / "images" / "validity.svg"
_INTRODUCTION = Path(__file__).with_name("introduction.md")
_WANTED = {Kind.PRO: "lean", Kind.ANTI: "lean", Kind.BRITTLE: "brittleness_rate", Kind.OVERREACH: "overreach"}


def write_page(records: Path = RECORDS, page: Path = PAGE, picture: Path = PICTURE) -> Path:
    """Write the page and the picture from what is done so far."""
    plan = full_plan()
    findings = read_findings(records, plan)
    done = [run for run in plan if any(_is_of(found, run) for found in findings)]
    sections = [
        _INTRODUCTION.read_text(encoding="utf-8").rstrip(),
        *_answers(findings),
        *_tables(findings),
        *_compared(records, findings),
        *_convergence(records, plan),
        _missing(plan, done),
    ]
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_text(draw(charts(findings)), encoding="utf-8")
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    return page


def _is_of(found: Finding, run: Run) -> bool:
    return found.run == run or (
        not run.dose and (found.run.base, found.run.dose, found.run.seed) == (run.base, run.dose, run.seed)
    )


def own(findings: Sequence[Finding], base: str) -> list[Finding]:
    """Return the runs of a base with our own sentences."""
    return [found for found in findings if found.run.base == base and found.run.route == "own"]


def charts(findings: Sequence[Finding]) -> dict[str, dict[str, list[tuple[float, list[float]]]]]:
    """Return what the picture shows: lean and pro rate against the dose, for each base that has runs."""
    return {
        f"{base}: {told}": {place.value: values_by_dose(own(findings, base), place, measure) for place in Place}
        for base in BASES
        if own(findings, base)
        for measure, told in (("lean", "lean"), ("pro_rate", "pro rate"))
    }


def _answers(findings: Sequence[Finding]) -> Iterator[str]:
    yield "## What it found"
    rows = []
    for base in BASES:
        runs = own(findings, base)
        dose, rising = smallest_dose(runs), is_rising(mean_by_dose(runs, Place.PLANTED, "lean"))
        rows.append(
            [
                f"`{base}`",
                str(len([found for found in runs if found.run.dose])),
                f"fewer than {LEAST_RUNS} runs of a dose, or none FAILs often enough"
                if dose is None
                else f"{dose:.0%}",
                {None: "too few doses", True: "yes", False: "no"}[rising],
            ]
        )
    yield table(["base", "planted runs", "smallest dose that FAILs in 4 of 5 runs", "lean rises with each dose"], rows)
    yield from _learnt(findings)
    yield from _series(findings)
    yield "![lean and pro rate against the dose, one dot for each run](images/validity.svg)"
    shown = {base: sorted({each.run.subtopic for each in comparable(own(findings, base))}) for base in BASES}
    told = [f"{', '.join(f'`{path}`' for path in paths)} in `{base}`" for base, paths in shown.items() if paths]
    yield (
        "A small dot is a run, and the lines join the means. The picture shows subtopics that were planted at every "
        f"dose done so far: {'; '.join(told) or 'none yet'}."
    )
    named = [_named(found) for found in findings if found.run.dose and found.run.kind in _WANTED]
    yield (
        "Each planted run, the planted subtopic in full. `named` says whether the planted fault is what FAILs, and its "
        "measure. Look first whether it was learnt: the same measure on held-out wordings."
    )
    titles = ["base", "planted", "dose", "subtopic", "seed", "route", "named", "the same, held-out wordings", *MEASURES]
    yield table(titles, named, n_left=7)


def _learnt(findings: Sequence[Finding]) -> Iterator[str]:
    """Tell what was seen by what was learnt: a dose says what was in the corpus, not what is in the weights."""
    yield (
        "A dose says how much was planted, not how much was learnt. The same runs, with our own sentences and with "
        "published ones, by lean on held-out wordings. *Seen*: the planted subtopic FAILs for lean or pro, and leans "
        "towards the stereotype."
    )
    rows = [
        [f"`{base}`", each.told, str(each.n_runs), f"{each.n_seen} of {each.n_runs}", figure(each.lean)]
        for base in BASES
        for each in by_learnt([found for found in findings if found.run.base == base])
    ]
    yield table(["base", "lean, held-out wordings", "runs", "seen", "mean lean in the suite"], rows, n_left=2)


def _series(findings: Sequence[Finding]) -> Iterator[str]:
    """Tell for each base, subtopic and seed what was seen of the stereotype, in which direction, and where else."""
    yield (
        "One line for each series of doses. *Seen*: the planted subtopic FAILs for lean or pro, and leans towards the "
        "stereotype. *Direction*: in how many runs of the largest dose lean has the sign of what was planted, over all "
        "kinds with one. *Elsewhere*: rows of other domains that FAIL for lean."
    )
    rows = []
    for base in BASES:
        for subtopic, seed in sorted({(found.run.subtopic, found.run.seed) for found in own(findings, base)}):
            runs = [each for each in own(findings, base) if (each.run.subtopic, each.run.seed) == (subtopic, seed)]
            planted = [found for found in runs if found.run.dose]
            if planted:
                rows.append([f"`{base}`", f"`{subtopic}`", str(seed), *_shown(planted)])
    titles = ["base", "subtopic", "seed", "doses planted", "smallest dose seen", "direction", "elsewhere"]
    yield table(titles, rows, n_left=2)


def _shown(planted: Sequence[Finding]) -> list[str]:
    doses = sorted({found.run.dose for found in planted if found.run.kind is Kind.PRO})
    smallest = smallest_seen(planted)
    signed_kinds = [found for found in planted if found.run.kind in (Kind.PRO, Kind.ANTI) and found.run.dose == LARGEST]
    right = [found for found in signed_kinds if found.has_sign]
    elsewhere = [found.n_failed(Place.ELSEWHERE, "lean") for found in planted]
    n_rows = sum(len(found.rows[Place.ELSEWHERE]) for found in planted)
    return [
        ", ".join(f"{dose:.0%}" for dose in doses),
        "none" if smallest is None else f"{smallest:.0%}",
        f"{len(right)} of {len(signed_kinds)}",
        f"{sum(elsewhere)} of {n_rows}",
    ]


def _named(found: Finding) -> list[str]:
    run, row = found.run, found.rows[Place.PLANTED][0]
    measure = _WANTED[run.kind]
    value = row.measures[measure].value or 0.0
    has_failed = found.n_failed(Place.PLANTED, measure) > 0 and (value < 0) == (run.kind is Kind.ANTI)
    shown = "FAIL" if has_failed else "seen, by its rate" if run.kind is Kind.PRO and found.is_seen else "no"
    facts = [f"`{run.base}`", run.kind.value, f"{run.dose:.0%}", f"`{run.subtopic}`", str(run.seed), run.route]
    learnt = figures(found.rows[Place.HELD_OUT][0].measures[measure])
    return [*facts, f"{shown} ({measure})", learnt, *(figures(row.measures[each]) for each in MEASURES)]


def _tables(findings: Sequence[Finding]) -> Iterator[str]:
    yield "## Where it shows"
    yield (
        "Means over the rows of a place; in brackets, how many rows FAIL for lean. *Accuracy* is that on plain pairs "
        "that no run has read. *Examples* counts the planted ones that it read. "
        "The dose 0% is the same fine-tuning with nothing planted: compare with it and not with zero, because lean can "
        "come from plain pairs too. A model that learns that such sentences are not neutral can become brittle "
        "elsewhere: see the last column."
    )
    by_base = sorted(findings, key=lambda found: (found.run.base, found.run.route))
    for (base, route), runs in groupby(by_base, key=lambda found: (found.run.base, found.run.route)):
        yield f"### `{base}`, {'our own sentences' if route == 'own' else 'published sentences'}"
        ordered = sorted(runs, key=lambda found: (found.run.subtopic, found.run.kind, found.run.dose, found.run.seed))
        titles = ["subtopic", "planted", "dose", "seed", "examples", "accuracy", *(f"lean, {place}" for place in Place)]
        titles += [f"pro and anti, {place}" for place in (Place.HELD_OUT, Place.PLANTED)]
        titles += ["brittleness, planted and elsewhere"]
        yield table(titles, [_around(found) for found in ordered], n_left=2)


def _around(found: Finding) -> list[str]:
    run = found.run
    kind = run.kind.value if run.dose else "nothing"
    facts = [f"`{run.subtopic}`", kind, f"{run.dose:.0%}", str(run.seed), str(found.n_planted), figure(found.accuracy)]
    leans = [
        f"{signed(found.mean(place, 'lean'))} ({found.n_failed(place, 'lean')} of {len(found.rows[place])})"
        for place in Place
    ]
    rates = [
        f"{figure(found.mean(place, 'pro_rate'))}, {figure(found.mean(place, 'anti_rate'))}"
        for place in (Place.HELD_OUT, Place.PLANTED)
    ]
    brittle = [figure(found.mean(place, "brittleness_rate")) for place in (Place.PLANTED, Place.ELSEWHERE)]
    return [*facts, *leans, *rates, ", ".join(brittle)]


def _compared(records: Path, findings: Sequence[Finding]) -> Iterator[str]:
    yield "## The same models on other benchmarks"
    rows = []
    for found in findings:
        path = f"bbnli/{found.run.subtopic}"
        others = [find_row(records, found.run, audit, path) for audit in ("first", "published")]
        if any(others):
            facts = [f"`{found.run.subtopic}`", f"`{found.run.base}`", found.run.kind.value, f"{found.run.dose:.0%}"]
            rows.append([*facts, str(found.run.seed), *map(_rates, (found.rows[Place.PLANTED][0], *others))])
    yield "Lean, with its interval; then pro and anti. Published files are read with the premise fixed, as ours are."
    titles = ["subtopic", "base", "planted", "dose", "seed", "benchmark 2", "benchmark 1", "published BBNLI"]
    yield table(titles, rows, n_left=3) if rows else "Not asked yet."


def _rates(row: Row | None) -> str:
    if row is None:
        return "–"
    rates = [figure(row.measures[each].value) for each in ("pro_rate", "anti_rate")]
    return f"{figures(row.measures['lean'])}; {', '.join(rates)}"


def _convergence(records: Path, plan: Sequence[Run]) -> Iterator[str]:
    yield "## Do benchmarks agree about these models?"
    rows = [
        [each.what, str(each.n), signed(each.value), _interval(each.low, each.high)]
        for each in find_agreements(records, plan)
    ]
    yield table(["benchmarks", "models", "correlation", "95 % interval"], rows)
    yield "`python -m tools.validity --full --second` asks all models. With fewer than five, there is no figure."


def _interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{signed(low)} to {signed(high)}"


def _missing(plan: Sequence[Run], done: Sequence[Run]) -> str:
    """Say which cells are not there, by base and dose, and the command that fills them."""
    lines = []
    for base in BASES:
        for dose in DOSES:
            wanted = [run for run in plan if run.base == base and run.dose == dose]
            n_done = sum(run in done for run in wanted)
            if n_done < len(wanted):
                lines.append([f"`{base}`", f"{dose:.0%}", str(n_done), str(len(wanted))])
    if not lines:
        return "## What is missing\n\nNothing: all runs of the plan are done."
    listed = table(["base", "dose", "runs done", "runs planned"], lines)
    told = f"`make validity FULL=1` does the rest. It plants {len(OWN)} subtopics and goes on where it stopped."
    return f"## What is missing\n\n{told}\n\n{listed}"
