"""The steps of the workbench on a workspace: what each reads, what decides its result, what it writes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.values import Control
from bbnli_audit.models.inference.opening import Inference
from bbnli_audit.models.inference.progress import Progress, tell_time
from bbnli_audit.suites.bbnli import OWN_DATA, Bbnli
from bbnli_audit.suites.template_file import TemplateFile
from bbnli_audit.workbench.extend import counterfactual, expand, fill, filter, mask, release  # noqa: A004 - the step's name
from bbnli_audit.workbench.extend.journal import Journal
from bbnli_audit.workbench.extend.models import NliModel, estimate_seconds, full_name, opened
from bbnli_audit.workbench.extend.table import (
    Found,
    Item,
    MaskedTemplate,
    NewPair,
    Reviewed,
    Sample,
    Word,
    read_table,
    write_table,
)
from bbnli_audit.workbench.extend.transfer import Transfer, measure
from bbnli_audit.workbench.extend.workspace import Counts, Made, Manifest, Workspace, hash_json

Done = tuple[Manifest, bool]  # what a step wrote, and whether it was done now
JOURNAL = "fill.journal.jsonl"


def do_mask(
    workspace: Workspace,
    data: Path | None,
    strategies: Sequence[str],
    templates: Path | None = None,
    *,
    is_again: bool = False,
) -> Done:
    """Propose masked templates of a suite, or check those of a file."""
    suite = Bbnli(data)
    files = suite.files()
    rows = (
        [row for file in files for row in mask.propose(file, strategies)]
        if templates is None
        else mask.read_templates(templates, files)
    )
    if not rows:
        raise WorkbenchError(f"No template of {suite.folder} can be masked by {', '.join(strategies)}. Try others.")

    def make() -> Made:
        write_table(workspace.path("masked.csv"), MaskedTemplate, rows)
        return Made(mask.count(rows, files))

    settings = {
        "suite": suite.name,
        "suite_version": suite.version,
        "suite_sha256": suite.sha256,
        "data": None if suite.folder == OWN_DATA else str(suite.folder.resolve()),
        "strategies": list(strategies),
        "templates": None if templates is None else templates.name,
    }
    inputs = {} if templates is None else {"templates": hash_json(rows)}
    return workspace.run("mask", settings, make, inputs=inputs, is_again=is_again)


def do_expand(workspace: Workspace, n_premises: int | None = None, *, is_again: bool = False) -> Done:
    """Put groups and words in."""
    suite = open_source(workspace)

    def make() -> Made:
        files = suite.files()
        templates = mask.read_templates(workspace.path("masked.csv"), files)  # people may have changed it
        samples = expand.expand(files, templates, n_premises)
        write_table(workspace.path("expanded.csv"), Sample, samples)
        return Made(expand.count(samples))

    settings = {"premises": n_premises, "suite_sha256": suite.sha256}
    return workspace.run("expand", settings, make, is_again=is_again)


def do_fill(
    workspace: Workspace,
    model: str,
    top: int,
    *,
    device: str = "auto",
    progress: Progress | None = None,
    say: Callable[[str], object] = lambda _: None,
    is_again: bool = False,
) -> Done:
    """Propose words for the masks."""
    found = fill.find_masked_model(model)
    groups = {(file.domain, file.name): file.groups for file in open_source(workspace).files()}
    settings = {"model": found.name, "fingerprint": found.fingerprint, "top": top}

    def make() -> Made:
        samples = read_table(workspace.path("expanded.csv"), Sample, lambda row: fill.find_fault(row, groups))
        journal = Journal(workspace.path(JOURNAL), settings)
        filler = fill.Filler(found, journal, device=device, progress=progress, say=say)
        words = fill.fill(samples, groups, top, filler.propose)
        write_table(workspace.path("filled.csv"), Word, words)
        journal.remove()
        return Made(fill.count(samples, words))

    return workspace.run("fill", settings, make, is_again=is_again)


def do_filter(
    workspace: Workspace,
    deciding: Sequence[str],
    held_out: Sequence[str],
    inference: Inference,
    *,
    progress: Progress | None = None,
    say: Callable[[str], object] = lambda _: None,
    is_again: bool = False,
) -> Done:
    """Keep what at least one of the deciding models mispredicts."""
    controls = _controls(open_source(workspace))
    with opened(deciding, held_out, inference, progress) as models:
        settings = {
            "models": [model.name for model in models if not model.is_held_out],
            "held_out": [model.name for model in models if model.is_held_out],
            "fingerprints": {model.name: model.fingerprint for model in models},
        }
        given = {"models": list(map(full_name, deciding)), "held_out": list(map(full_name, held_out))}
        return workspace.run(
            "filter", settings, lambda: _make_filter(workspace, models, controls, given, say), is_again=is_again
        )


def _make_filter(
    workspace: Workspace,
    models: Sequence[NliModel],
    controls: Sequence[Control],
    given: Mapping[str, Sequence[str]],
    say: Callable[[str], object],
) -> Made:
    chosen = [model for model in models if not model.is_held_out]
    samples = read_table(workspace.path("expanded.csv"), Sample)
    words = read_table(workspace.path("filled.csv"), Word)
    skills = {model.name: model.check_skill(controls) for model in models}
    candidates = filter.make_candidates(samples, words)
    texts = [candidate.text for candidate in candidates]
    seconds = [estimate_seconds(model, texts) for model in chosen]
    left = f"about {tell_time(sum(seconds))} in all" if any(seconds) else "all stored"
    say(f"{len(texts):,} texts for each of {len(chosen)} models: {left}.")
    found = filter.keep_found(candidates, chosen)
    items = filter.make_items(found)
    write_table(workspace.path("filtered.csv"), Found, found)
    write_table(workspace.path("items.csv"), Item, items)
    return Made(filter.count(candidates, found, items, chosen), {"control_accuracy": skills, "given": given})


def do_counterfactual(workspace: Workspace, *, is_again: bool = False) -> Done:
    """Give every valid sample its counterfactual."""
    if workspace.manifest("agree") is not None:  # else others have made the table
        workspace.need_current(["agree"])

    def make() -> Made:
        found = read_table(workspace.path("filtered.csv"), Found, filter.find_fault)
        reviewed = read_table(workspace.path("reviewed.csv"), Reviewed, counterfactual.find_fault)
        pairs, counts = counterfactual.make_pairs(found, reviewed)
        write_table(workspace.path("pairs.csv"), NewPair, pairs)
        return Made(counts)

    return workspace.run("counterfactual", {}, make, is_again=is_again)


def do_release(
    workspace: Workspace,
    version: str,
    file_format: str,
    inference: Inference,
    *,
    progress: Progress | None = None,
    is_again: bool = False,
) -> Done:
    """Write the next version, with the models before and after."""
    manifests = workspace.need_current(["mask", "expand", "fill", "filter", "agree", "counterfactual"])
    suite = open_source(workspace)
    given = manifests["filter"].notes["given"]
    inputs = {f"{step}.manifest": _identity(manifest) for step, manifest in manifests.items()}
    settings = {"version": version, "format": file_format}
    is_whole = release.is_whole(workspace.path(release.FOLDER))
    with opened(given["models"], given["held_out"], inference, progress) as models:
        _check_same(models, manifests["filter"])
        return workspace.run(
            "release",
            settings,
            lambda: _make_release(workspace, suite, models, manifests, version, file_format),
            inputs=inputs,
            is_again=is_again or not is_whole,
        )


def _check_same(models: Sequence[NliModel], filtering: Manifest) -> None:
    for model in models:
        if filtering.settings["fingerprints"].get(model.name) != model.fingerprint:
            raise WorkbenchError(
                f"{model.given}: is not the model that `filter` was done with (its content has changed). Do that again."
            )


def _make_release(
    workspace: Workspace,
    suite: Bbnli,
    models: Sequence[NliModel],
    manifests: Mapping[str, Manifest],
    version: str,
    file_format: str,
) -> Made:
    items = {subtopic: suite.items(subtopic) for subtopic in suite.subtopics()}
    skills = manifests["filter"].notes["control_accuracy"]
    counts = recount(workspace, suite.files())
    rows = read_table(workspace.path("pairs.csv"), NewPair)
    before = [pair for found in items.values() for pair in found.usable]
    after = [release.as_pair(row) for row in rows]
    release.write_release(
        workspace.path(release.FOLDER),
        version=version,
        file_format=file_format,
        pairs=rows,
        controls={subtopic: found.controls for subtopic, found in items.items()},
        manifests=manifests,
        counts=counts,
        transfers=[
            Transfer(model.name, model.is_held_out, skills[model.name], measure(model, before), measure(model, after))
            for model in models
        ],
    )
    return Made(counts["counterfactual"])


def recount(workspace: Workspace, files: Sequence[TemplateFile]) -> dict[str, Counts]:
    """Count the tables as they are now: people may have struck out rows since they were written."""
    samples = read_table(workspace.path("expanded.csv"), Sample)
    words = read_table(workspace.path("filled.csv"), Word)
    found = read_table(workspace.path("filtered.csv"), Found)
    items = read_table(workspace.path("items.csv"), Item)
    reviewed = read_table(workspace.path("reviewed.csv"), Reviewed)
    pairs = read_table(workspace.path("pairs.csv"), NewPair)
    return {
        "mask": mask.count(mask.read_templates(workspace.path("masked.csv"), files), files),
        "expand": expand.count(samples),
        "fill": fill.count(samples, words),
        "filter": filter.count((), found, items, ()),
        "agree": counterfactual.count_reviewed(reviewed),
        "counterfactual": counterfactual.count_pairs(found, reviewed, pairs),
    }


def open_source(workspace: Workspace) -> Bbnli:
    """Open the suite that is extended, as `mask` found it.

    Raises:
        WorkbenchError: when its files have changed since.
    """
    settings = workspace.need("mask").settings
    suite = Bbnli(None if settings["data"] is None else Path(settings["data"]))
    if not suite.folder.is_dir():
        raise WorkbenchError(
            f"{suite.folder}: the suite that is extended is no longer there. Put it back, or start anew: bbnli-audit "
            f"extend mask {workspace.folder} --data DIR --again"
        )
    if suite.sha256 != settings["suite_sha256"]:
        raise WorkbenchError(
            f"{suite.folder}: has changed since its templates were masked. Start anew: bbnli-audit extend mask "
            f"{workspace.folder} --again"
        )
    return suite


def _controls(suite: Bbnli) -> list[Control]:
    return [control for subtopic in suite.subtopics() for control in suite.items(subtopic).controls]


def _identity(manifest: Manifest) -> str:
    """Give what a manifest says but how long it took."""
    return hash_json([manifest.inputs, manifest.settings, manifest.outputs, manifest.counts, manifest.notes])
