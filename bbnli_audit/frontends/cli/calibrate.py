"""Propose limits from a measured model, as a change to thresholds.yaml.

A proposed limit is the upper bound of a measure plus a margin, rounded up to 0.01. For a measure where more is better,
the limit is the lower bound minus the margin, rounded down. Limits under `levels` come from the bounds of whole suites
and domains. The change is printed for review; only --write changes the file.

Examples:
    bbnli-audit calibrate bias-report/result.json
    bbnli-audit calibrate bias-report/result.json --per domain --margin 0.03
    bbnli-audit calibrate bias-report/result.json --per subtopic --write
"""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.values import Subtopic
from bbnli_audit.core.words import counted, figure
from bbnli_audit.frontends.cli.arguments import (
    add_data,
    add_documented,
    add_thresholds,
    share,
    tell_model,
    write_file,
    write_json,
    write_out,
)
from bbnli_audit.frontends.cli.changes import make_diff, name_subtopics, read_text_and_limits, unknown_subtopic

if TYPE_CHECKING:
    from bbnli_audit.audit.gate.calibration import Calibration
    from bbnli_audit.audit.gate.thresholds import Thresholds
    from bbnli_audit.core.results.audit import AuditResult

PER = ("defaults", "domain", "subtopic")


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "calibrate", run, __doc__).add_argument
    add("result", metavar="RESULT", type=Path, help="a result.json, or the report folder with it")
    add_thresholds(add, "the file to change")
    add("--margin", metavar="SHARE", type=share, default=0.02, help="allowed beyond each bound (default: 0.02)")
    add("--per", choices=PER, default="defaults", help="where limits of subtopics are written (default: defaults)")
    add_data(add)
    add("--write", action="store_true", help="change the file")
    add("--json", action="store_true", help="print one JSON document instead (docs/commands.md)")


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.audit.gate.calibration import edit, propose
    from bbnli_audit.audit.gate.recheck import read_judged

    margin: float = arguments.margin
    result = read_judged(arguments.result)
    path: Path = arguments.thresholds
    text, thresholds = read_text_and_limits(path)
    name = thresholds.name
    subtopics = _find_subtopics(result, thresholds, arguments.data)
    calibration = propose(result, thresholds, subtopics, margin, arguments.per)
    model = tell_model(result.model)
    source = f"{model}: upper bound plus {margin:g}"
    changed = edit(text, calibration, thresholds, source) if calibration.changes else text
    if arguments.write and changed != text:
        write_file(path.resolve(), changed, name)
    diff = make_diff(text, changed, name)
    notes = list(_notes(arguments.per, result, thresholds, calibration))
    if arguments.json:
        document = {
            "model": {"name": result.model.name, "fingerprint": result.model.fingerprint},
            "thresholds": name,
            "per": arguments.per,
            "margin": margin,
            "proposals": [{**asdict(each), "is_looser": each.is_looser} for each in calibration.proposals],
            "kept": [asdict(kept) for kept in calibration.kept],
            "failures": [asdict(failure) for failure in calibration.failures],
            "notes": notes,
            "diff": diff,
            "is_written": bool(arguments.write and diff),
        }
        write_json(document)
    else:
        n_subtopics = counted(len(subtopics), "subtopic")
        title = f"Limits from {model}, {n_subtopics}: upper bounds plus {margin:g}, rounded up to 0.01."
        lines = (title, *_changes(calibration, name, is_written=arguments.write), *notes)
        write_out("".join(f"# {line}\n" for line in lines) + diff)
    return 0


def _find_subtopics(result: "AuditResult", thresholds: "Thresholds", data: Path | None) -> list[Subtopic]:
    """Return the audited subtopics with their aliases. Refuse a threshold file that names an unknown subtopic."""
    from bbnli_audit.audit.gate.thresholds import local_names

    named, audited = name_subtopics(result, data), [row.path for row in result.subtopics]
    known = {(each.suite, name) for each in named.values() for name in local_names(each)}
    for suite_name in {path.partition("/")[0] for path in audited} & set(thresholds.file.suites):
        for name in thresholds.file.suites[suite_name].subtopics:
            if (suite_name, name) not in known:
                raise unknown_subtopic(thresholds.source("suites", suite_name, "subtopics", name), name)
    return [named[path] for path in audited]


def _changes(calibration: "Calibration", name: str, *, is_written: bool) -> Iterator[str]:
    """List the changes, and say whether they were written."""
    changes = calibration.changes
    if not changes:
        yield f"Nothing to change in {name}: it has these limits already."
    elif is_written:
        yield f"Written to {name}."
    else:
        otherwise = "" if Path(name).is_absolute() or ".." in name else ", or pipe this output to: git apply -p0"
        yield f"Nothing was written. Review the change, then run with --write{otherwise}"
    for each in changes:
        yield (
            f"{'loosens' if each.is_looser else 'tightens'} {'.'.join(each.where)} {each.key}: {each.old:.2f} -> "
            f"{each.new:.2f} ({each.subtopic}: {_bound_name(each.measure)} {figure(each.bound)})"
        )
    n_same = len(calibration.proposals) - len(changes)
    if changes and n_same:
        yield f"{n_same} other {'limit stays as it is' if n_same == 1 else 'limits stay as they are'}."


def _bound_name(measure: str) -> str:
    from bbnli_audit.measures.registry import find_measure

    return "lower bound" if find_measure(measure).is_minimum else "upper bound"


def _notes(per: str, result: "AuditResult", thresholds: "Thresholds", calibration: "Calibration") -> Iterator[str]:
    from bbnli_audit.audit.gate.calibration import own_reasons
    from bbnli_audit.reports.shown import short_name

    for failure in calibration.failures:
        value = "" if failure.value is None else f" ({figure(failure.value)}, limit {failure.limit:g})"
        told = f"{failure.subtopic} FAILs {short_name(failure.measure)}{value}"
        yield f"WARNING: {told}: a limit made from it lets that fault pass."
    for kept in calibration.kept:
        yield (
            f"kept {kept.key}: {kept.limit:.2f} of {kept.subtopic} ({kept.source}), a nearer limit; its "
            f"{_bound_name(kept.measure)} is {figure(kept.bound)}"
        )
    for where in own_reasons(calibration, thresholds):
        yield f"kept the reason of {'.'.join(where)}: check whether it still holds"
    for path, measure in calibration.no_data:
        yield f"no data: {short_name(measure)} of {path} was not measured"
    missing = result.settings.not_audited
    if missing and per != "subtopic":
        yield f"not audited, though these limits hold for them too: {', '.join(missing)}"
    measured, wanted = result.settings.confidence, thresholds.file.confidence
    if measured != wanted:
        yield f"WARNING: the result was measured at confidence {measured}, and {thresholds.name} asks for {wanted}"
    if calibration.changes:
        yield "Comments in the file stay as they are: check whether they still hold."
