"""Exchanges judgements with other machines and tools: as CSV (a row per annotator and item), or with Label Studio.

Label Studio's JSON is a list of tasks, each with its data and annotations (https://labelstud.io/guide/task_format;
choices: https://labelstud.io/tags/choices). An annotator is a user of Label Studio, written as `{"email": ...}` or as
the user's number. Label Studio takes imported annotations only from e-mail addresses of its own users.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core import tables
from bbnli_audit.core.errors import OptionError, WorkbenchError
from bbnli_audit.core.reading import Source
from bbnli_audit.workbench.review import items
from bbnli_audit.workbench.review.judgements import Given, Judgements, Taken
from bbnli_audit.workbench.review.states import State, States, as_time, as_verdict, check_annotator, clean_note
from bbnli_audit.workbench.workspace import read_lines, write_rows, write_text

COLUMNS = ("item", "annotator", "verdict", "stance", "note", "time")
# The user pastes the content of this file into Label Studio: Settings, Labeling Interface, Code.
LABELLING_CONFIG = Path(__file__).parent / "assets" / "label_studio.xml"
# The tags in that file: the name of each tag, its type, and the key of its values.
_TAGS = {"verdict": ("choices", "choices"), "stance": ("choices", "choices"), "note": ("textarea", "text")}
_TIMES = ("updated_at", "created_at")


def said(states: States) -> list[Given]:
    """List all judgements and notes. Unfinished judgements are included, undone ones are not."""
    return [
        Given(annotator, item, state)
        for annotator, of_annotator in sorted(states.items())
        for item, state in sorted(of_annotator.items())
        if state.verdict is not None or state.note
    ]


def hash_said(states: States) -> str:
    """Return a hash of the judgements. It does not depend on their times."""
    rows = [(annotator, item, state.verdict, state.stance, state.note) for annotator, item, state in said(states)]
    return sha256(json.dumps(rows).encode()).hexdigest()


def write_csv(path: Path, states: States) -> int:
    guard = tables.guard_formula
    rows = [
        (item, guard(annotator), state.verdict or "", state.stance or "", guard(state.note), state.time)
        for annotator, item, state in said(states)
    ]
    write_rows(path, COLUMNS, rows)
    return len(rows)


def read_csv(path: Path) -> list[Given]:
    """Read judgements. Messages name the line."""
    texts = ("annotator", "note")
    return [
        make_given(row | {name: tables.unguard_formula(row[name]) for name in texts}, f"{path}:{line}")
        for line, row in read_lines(path, COLUMNS)
    ]


def make_given(row: Mapping[str, str], place: str) -> Given:
    """Check a row with the columns `COLUMNS`, and return its judgement. Messages begin with `place`."""
    item, note = row["item"].strip(), clean_note(row["note"])
    try:
        if not item:
            raise ValueError("item is empty")
        verdict, stance = as_verdict(row["verdict"].strip(), row["stance"].strip())
        if verdict is None and not note:
            raise ValueError("verdict and note are both empty, so the row says nothing")
        annotator = check_annotator(row["annotator"])
        return Given(annotator, item, State(verdict, stance, note, as_time(row["time"].strip())))
    except (ValueError, OptionError) as exc:
        raise WorkbenchError(f"{place}: {str(exc).rstrip('.')}. Nothing was imported.") from exc


def take_into(judgements: Judgements, path: Path, given: Iterable[Given], known: Iterable[str]) -> Taken:
    """Add the judgements of a file. Refuse a file in which no judgement is about a `known` item."""
    given = list(given)
    there = set(known)
    n_unknown = sum(each.item not in there for each in given)
    if given and n_unknown == len(given):
        fault = f"none of its {len(given)} judgements is about an item of this review"
        raise WorkbenchError(f"{path}: {fault}. Import it into the folder it belongs to.")
    return judgements.take(given)._replace(n_unknown=n_unknown)


def write_tasks(path: Path, to_judge: Iterable[items.ReviewItem], states: States) -> int:
    """Write a task for each item, with its judgements as annotations. Return the number of annotations."""
    annotations: dict[str, list[dict[str, Any]]] = {}
    for annotator, name, state in said(states):
        annotations.setdefault(name, []).append(_annotation(name, annotator, state))
    tasks: list[dict[str, Any]] = []
    for item in to_judge:
        tasks.append({"data": {"item": item.id} | {name: getattr(item, name) for name in items.COLUMNS[1:]}})
        if item.id in annotations:
            tasks[-1]["annotations"] = annotations[item.id]
    write_text(path, json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
    return sum(len(task.get("annotations", ())) for task in tasks)


def read_tasks(path: Path, names: Mapping[str, str]) -> list[Given]:
    """Read the annotations of an export. Leave out skipped ones (`was_cancelled`). Messages count tasks from 1.

    `names` maps a user of Label Studio (the number or the e-mail address) to an annotator's name.
    """
    given = []
    for place, data, annotation in _annotations(path):
        try:
            item = data.get("item")
            if not isinstance(item, str) or not item.strip():
                raise ValueError('has no data.item, the id that "annotations export" wrote')
            row = dict.fromkeys(_TAGS, "") | _results(annotation)
            row |= {"item": item, "annotator": _annotator(annotation, names)}
            row["time"] = next((annotation[key] for key in _TIMES if isinstance(annotation.get(key), str)), "")
        except ValueError as exc:
            raise WorkbenchError(f"{path}: {place}: {exc}. Nothing was imported.") from exc
        given.append(make_given(row, f"{path}: {place}"))
    return given


def _annotation(item: str, annotator: str, state: State) -> dict[str, Any]:
    result = [
        {
            "id": sha256(f"{item}\0{annotator}\0{name}".encode()).hexdigest()[:10],
            "from_name": name,
            "to_name": "hypothesis",
            "type": kind,
            "value": {key: [str(getattr(state, name))]},
        }
        for name, (kind, key) in _TAGS.items()
        if getattr(state, name)
    ]
    return {
        "completed_by": {"email": annotator},
        "was_cancelled": False,
        "created_at": state.time,
        "updated_at": state.time,
        "result": result,
    }


def _annotations(path: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield each annotation with its place in the file and the data of its task."""
    tasks = Source(path, WorkbenchError).read_json(encoding="utf-8-sig")
    if not isinstance(tasks, list):
        raise WorkbenchError(f"{path}: is not a list of tasks. Export as JSON from Label Studio.")
    for n_task, task in enumerate(tasks, 1):
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise WorkbenchError(f"{path}: task {n_task}: is not an object with 'data'. Export as JSON (not JSON-MIN).")
        annotations = task.get("annotations", [])
        if not isinstance(annotations, list):
            raise WorkbenchError(f"{path}: task {n_task}: 'annotations' is not a list.")
        for n_annotation, annotation in enumerate(annotations, 1):
            place = f"task {n_task}, annotation {n_annotation}"
            if not isinstance(annotation, dict):
                raise WorkbenchError(f"{path}: {place}: is not an object.")
            if not annotation.get("was_cancelled"):
                yield place, task["data"], annotation


def _results(annotation: Mapping[str, Any]) -> dict[str, str]:
    results = annotation.get("result", [])
    if not isinstance(results, list):
        raise ValueError("'result' is not a list")
    found: dict[str, str] = {}
    for result in results:
        name = result.get("from_name") if isinstance(result, dict) else None
        if not isinstance(name, str) or name not in _TAGS:
            continue  # not one of our tags: the team added it
        _, key = _TAGS[name]
        value = result.get("value")
        values = value.get(key) if isinstance(value, dict) else None
        if isinstance(values, str):
            values = [values]
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise ValueError(f"the value of {name!r} has no list {key!r}")
        if name != "note" and len(values) > 1:
            raise ValueError(f"{name} has {len(values)} choices; expected one")
        found[name] = "\n".join(values)
    return found


def _annotator(annotation: Mapping[str, Any], names: Mapping[str, str]) -> str:
    user = annotation.get("completed_by")
    if isinstance(user, dict):
        user = user.get("email") or user.get("id")
    if isinstance(user, bool) or not isinstance(user, int | str) or user == "":
        raise ValueError("'completed_by' names no user")
    return names.get(str(user), user if isinstance(user, str) else f"user-{user}")
