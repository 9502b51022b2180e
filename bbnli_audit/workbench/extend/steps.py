"""Does the steps of `bbnli-audit extend` in a workspace, except for `review` and `agree`. Each step is a function."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.words import counted
from bbnli_audit.models.inference.progress import Progress, tell_time
from bbnli_audit.suites.bbnli import FIRST_DATA, Bbnli
from bbnli_audit.suites.template_file import TemplateFile
from bbnli_audit.workbench.extend import counterfactual, expand, fill, filter, mask, release, table  # noqa: A004 - the step's name
from bbnli_audit.workbench.extend.models import estimate_seconds, full_name, open_models
from bbnli_audit.workbench.extend.table import Found, Item, MaskedTemplate, NewPair, Reviewed, Sample, Word, path_of
from bbnli_audit.workbench.review.states import ReviewVerdict
from bbnli_audit.workbench.workspace import (
    Counts,
    Done,
    Made,
    Workspace,
    choose_paths,
    count_by_subtopic,
    hash_json,
)

Say = Callable[[str], object]
JOURNAL = "fill.journal.jsonl"


def do_mask(
    workspace: Workspace,
    data: Path | None,
    strategies: Sequence[str],
    templates: Path | None,
    subtopics: str | None = None,
) -> Done:
    suite = Bbnli(data or FIRST_DATA)
    files = _choose(suite, subtopics)
    if templates is None:
        rows = [row for file in files for row in mask.propose(file, strategies)]
    else:
        rows = mask.read_templates(templates, files)
    if not rows:
        advice = "Try other strategies, or other subtopics."
        raise WorkbenchError(f"{suite.folder}: no template can be masked by {', '.join(strategies)}. {advice}")

    def make() -> Made:
        table.write_table(workspace.path("masked.csv"), MaskedTemplate, rows)
        return Made(mask.count(rows, files))

    settings = {
        "suite": suite.name,
        "suite_version": suite.version,
        "suite_sha256": suite.sha256,
        "data": None if suite.folder == FIRST_DATA else str(suite.folder.resolve()),
        "strategies": list(strategies),
        "templates": None if templates is None else templates.name,
    }
    if subtopics is not None:
        settings["subtopics"] = sorted(file.local_path for file in files)
    inputs = {} if templates is None else {"templates": hash_json(rows)}
    return workspace.run("mask", settings, make, inputs)


def do_expand(workspace: Workspace, n_premises: int | None) -> Done:
    suite = open_source(workspace)

    def make() -> Made:
        files = suite.templates()
        templates = mask.read_templates(workspace.path("masked.csv"), files)  # people may have edited it
        samples = expand.expand(files, templates, n_premises)
        table.write_table(workspace.path("expanded.csv"), Sample, samples)
        return Made(expand.count(samples))

    return workspace.run("expand", {"premises": n_premises, "suite_sha256": suite.sha256}, make)


def do_fill(workspace: Workspace, model: str, top: int, device: str, progress: Progress, say: Say) -> Done:
    found = fill.find_masked_model(model)
    groups = {file.local_path: file.groups for file in open_source(workspace).templates()}
    settings = {"model": found.name, "fingerprint": found.fingerprint, "top": top}

    def make() -> Made:
        samples = table.read_table(workspace.path("expanded.csv"), Sample, lambda row: fill.find_fault(row, groups))
        journal = fill.Journal(workspace.path(JOURNAL), settings)
        words = fill.fill(samples, groups, top, fill.Filler(found, journal, device, progress, say).propose)
        table.write_table(workspace.path("filled.csv"), Word, words)
        journal.remove()
        return Made(fill.count(samples, words))

    return workspace.run("fill", settings, make)


def do_filter(
    workspace: Workspace,
    deciding: Sequence[str],
    held_out: Sequence[str],
    options: ModelOptions,
    progress: Progress,
    say: Say,
    sample: int | None = None,
) -> Done:
    """Filter with the deciding models. Held-out models are only checked. `sample` limits the items of each subtopic."""
    suite = open_source(workspace)
    controls = [control for subtopic in suite.subtopics() for control in suite.items(subtopic).controls]
    with open_models(deciding, held_out, options, progress) as models:
        chosen = [model for model in models if not model.is_held_out]

        def make() -> Made:
            samples = table.read_table(workspace.path("expanded.csv"), Sample)
            words = table.read_table(workspace.path("filled.csv"), Word)
            skills = {model.name: model.check_skill(controls) for model in models}
            candidates = filter.make_candidates(samples, words)
            texts = [candidate.text for candidate in candidates]
            seconds = [estimate_seconds(model, texts) for model in chosen]
            left = f"about {tell_time(sum(seconds))} in all" if any(seconds) else "all stored"
            say(f"{counted(len(chosen), 'model')}, {counted(len(texts), 'text')} each: {left}.")
            found = filter.keep_found(candidates, chosen)
            items = filter.make_items(found, sample)
            table.write_table(workspace.path("filtered.csv"), Found, found)
            table.write_table(workspace.path("items.csv"), Item, items)
            given = {"models": list(map(full_name, deciding)), "held_out": list(map(full_name, held_out))}
            return Made(filter.count(candidates, found, items, chosen), {"control_accuracy": skills, "given": given})

        settings = {
            "models": [model.name for model in chosen],
            "held_out": [model.name for model in models if model.is_held_out],
            "fingerprints": {model.name: model.fingerprint for model in models},
            **({} if sample is None else {"sample": sample}),
        }
        return workspace.run("filter", settings, make)


def do_counterfactual(workspace: Workspace) -> Done:
    if workspace.manifest("agree") is not None:  # otherwise reviewed.csv was made elsewhere
        workspace.need_current(["agree"])

    def make() -> Made:
        found = table.read_table(workspace.path("filtered.csv"), Found, filter.find_fault)
        reviewed = table.read_table(workspace.path("reviewed.csv"), Reviewed, counterfactual.find_fault)
        pairs, counts = counterfactual.make_pairs(found, reviewed)
        table.write_table(workspace.path("pairs.csv"), NewPair, pairs)
        return Made(counts)

    return workspace.run("counterfactual", {}, make)


def do_release(workspace: Workspace, version: str, file_format: str, options: ModelOptions, progress: Progress) -> Done:
    manifests = workspace.need_current(["mask", "expand", "fill", "filter", "agree", "counterfactual"])
    suite = open_source(workspace)
    folder = workspace.path(release.FOLDER)
    filter_manifest = manifests["filter"]
    given, skills = filter_manifest.notes["given"], filter_manifest.notes["control_accuracy"]
    inputs = {  # what the manifests say, apart from versions and times
        f"{step}.manifest": hash_json([each.inputs, each.settings, each.outputs, each.counts, each.notes])
        for step, each in manifests.items()
    }
    workspace = Workspace(workspace.folder, is_again=workspace.is_again or not release.is_whole(folder))
    with open_models(given["models"], given["held_out"], options, progress) as models:
        for model in models:
            if filter_manifest.settings["fingerprints"].get(model.name) != model.fingerprint:
                raise WorkbenchError(f"{model.given}: the model has changed since `filter` used it. Repeat `filter`.")

        def make() -> Made:
            rows = table.read_table(workspace.path("pairs.csv"), NewPair)
            paths = [path_of(row) for row in rows]  # the models are compared on these subtopics only
            items = {each: suite.items(each) for each in suite.subtopics() if each.local_path in paths}
            chosen = manifests["mask"].settings.get("subtopics")
            counts = recount(workspace, _choose(suite, None if chosen is None else ",".join(chosen)))
            before = [pair for found in items.values() for pair in found.usable]
            after = [release.as_pair(row) for row in rows]
            transfers = [
                release.Transfer(
                    model.name, model.is_held_out, skills[model.name], *map(model.count_cells, (before, after))
                )
                for model in models
            ]
            controls = {subtopic: found.controls for subtopic, found in items.items()}
            release.write_release(
                folder, release.Release(version, file_format, rows, controls, manifests, counts, transfers)
            )
            return Made(count_by_subtopic({"pairs": paths, "samples": paths * 2}))

        return workspace.run("release", {"version": version, "format": file_format}, make, inputs)


def _choose(suite: Bbnli, subtopics: str | None) -> list[TemplateFile]:
    """Return the files of the subtopics that are extended."""
    files = {file.local_path: file for file in suite.templates()}
    return [files[path] for path in choose_paths(subtopics, files)]


def recount(workspace: Workspace, files: Sequence[TemplateFile]) -> Mapping[str, Counts]:
    """Count the rows of the tables again. People may have removed rows since the steps wrote the tables."""
    samples = table.read_table(workspace.path("expanded.csv"), Sample)
    words = table.read_table(workspace.path("filled.csv"), Word)
    found = table.read_table(workspace.path("filtered.csv"), Found)
    items = table.read_table(workspace.path("items.csv"), Item)
    reviewed = table.read_table(workspace.path("reviewed.csv"), Reviewed)
    pairs = table.read_table(workspace.path("pairs.csv"), NewPair)
    return {
        "mask": mask.count(mask.read_templates(workspace.path("masked.csv"), files), files),
        "expand": expand.count(samples),
        "fill": fill.count(samples, words),
        "filter": filter.count((), found, items, ()),
        "agree": count_by_subtopic({"valid": [path_of(row) for row in reviewed if row.verdict == ReviewVerdict.VALID]}),
        "counterfactual": counterfactual.make_pairs(found, reviewed, kept=pairs)[1],
    }


def open_source(workspace: Workspace) -> Bbnli:
    """Open the suite that is extended. Refuse it if it has changed since `mask`."""
    settings = workspace.need("mask").settings
    suite = Bbnli(FIRST_DATA if settings["data"] is None else Path(settings["data"]))
    fault = None
    if not suite.folder.is_dir():
        fault = "the suite that is extended is no longer there. Restore it, or start over with --data DIR"
    elif suite.sha256 != settings["suite_sha256"]:
        fault = "has changed since its templates were masked. Start over"
    if fault is not None:
        raise WorkbenchError(f"{suite.folder}: {fault}: bbnli-audit extend mask {workspace.folder} --again")
    return suite
