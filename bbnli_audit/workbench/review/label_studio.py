"""Judgements in Label Studio's JSON: a list of tasks, each with its data and its annotations.

The format: https://labelstud.io/guide/task_format, its choices: https://labelstud.io/tags/choices. An annotator is a
user there, written as `{"email": ...}` or as the user's number; on import Label Studio takes only e-mail addresses
of its own users.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError, WorkbenchError
from bbnli_audit.workbench.review.decide import write_text
from bbnli_audit.workbench.review.exchange import make_given
from bbnli_audit.workbench.review.items import ReviewItem
from bbnli_audit.workbench.review.judgements import Given
from bbnli_audit.workbench.review.states import State, States

# To paste under Settings, Labeling Interface, Code. The names of the tags are those that `read_tasks` looks for.
LABELLING_CONFIG = """\
<View>
  <Header value="Content warning: sentences may state stereotypes. Take breaks." />
  <Text name="hypothesis" value="$hypothesis" />
  <Collapse>
    <Panel value="Template, word and premise">
      <Text name="template" value="$template" />
      <Text name="word" value="$word" />
      <Text name="premise" value="$premise" />
    </Panel>
  </Collapse>
  <Choices name="verdict" toName="hypothesis" choice="single-radio" required="true" showInline="true">
    <Choice value="valid" hotkey="v" />
    <Choice value="invalid" hotkey="i" />
    <Choice value="incoherent" hotkey="n" />
  </Choices>
  <Choices name="stance" toName="hypothesis" choice="single-radio" required="true" showInline="true"
           visibleWhen="choice-selected" whenTagName="verdict" whenChoiceValue="valid">
    <Choice value="pro" hotkey="p" />
    <Choice value="anti" hotkey="a" />
  </Choices>
  <TextArea name="note" toName="hypothesis" rows="2" maxSubmissions="1" placeholder="Note" />
</View>
"""
_TIMES = ("updated_at", "created_at")


def write_tasks(path: Path, items: Iterable[ReviewItem], states: States) -> int:
    """Write a task for each item, with what annotators say of it; give the number of annotations."""
    tasks = [_task(item, states) for item in items]
    write_text(path, json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
    return sum(len(task.get("annotations", ())) for task in tasks)


def read_tasks(path: Path, names: Mapping[str, str]) -> list[Given]:
    """Read the annotations of an export. Skipped tasks (`was_cancelled`) say nothing and are left out.

    Args:
        path: The file.
        names: What users of Label Studio are called here, by number or e-mail address.

    Raises:
        WorkbenchError: with the file, the task and the annotation, counted from 1, and what is wrong there.
    """
    given = []
    for place, task, annotation in _annotations(path):
        try:
            item = _text(task["data"], "item", "data.item", 'the number that "annotations export" wrote')
            results = _results(annotation)
            who = _annotator(annotation, names)
            time = next((annotation[key] for key in _TIMES if isinstance(annotation.get(key), str)), "")
            verdict, stance, note = (results.get(name, "") for name in ("verdict", "stance", "note"))
            given.append(make_given(who, item, verdict, stance, note, time))
        except (ValueError, OptionError) as exc:
            raise WorkbenchError(f"{path}: {place}: {str(exc).rstrip('.')}. Nothing was imported.") from exc
    return given


def _task(item: ReviewItem, states: States) -> dict[str, Any]:
    names = ("domain", "subtopic", "hypothesis", "template", "word", "premise")
    task: dict[str, Any] = {"data": {"item": item.id} | {name: getattr(item, name) for name in names}}
    annotations = [
        _annotation(item.id, annotator, of_annotator[item.id])
        for annotator, of_annotator in sorted(states.items())
        if item.id in of_annotator and (of_annotator[item.id].verdict or of_annotator[item.id].note)
    ]
    return task | ({"annotations": annotations} if annotations else {})


def _annotation(item: str, annotator: str, state: State) -> dict[str, Any]:
    values: list[tuple[str, str, str | None]] = [
        ("verdict", "choices", state.verdict),
        ("stance", "choices", state.stance),
        ("note", "textarea", state.note),
    ]
    result = [
        {
            "id": sha256(f"{item}\0{annotator}\0{name}".encode()).hexdigest()[:10],
            "from_name": name,
            "to_name": "hypothesis",
            "type": kind,
            "value": {"text" if kind == "textarea" else "choices": [str(value)]},
        }
        for name, kind, value in values
        if value
    ]
    return {
        "completed_by": {"email": annotator},
        "was_cancelled": False,
        "created_at": state.time,
        "updated_at": state.time,
        "result": result,
    }


def _annotations(path: Path) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    tasks = _load(path)
    for n_task, task in enumerate(tasks, 1):
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise WorkbenchError(f"{path}: task {n_task}: is no object with 'data'. Export as JSON (not JSON-MIN).")
        annotations = task.get("annotations", [])
        if not isinstance(annotations, list):
            raise WorkbenchError(f"{path}: task {n_task}: 'annotations' is no list.")
        for n_annotation, annotation in enumerate(annotations, 1):
            place = f"task {n_task}, annotation {n_annotation}"
            if not isinstance(annotation, dict):
                raise WorkbenchError(f"{path}: {place}: is no object.")
            if not annotation.get("was_cancelled"):
                yield place, task, annotation


def _load(path: Path) -> list[Any]:
    try:
        tasks = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as exc:
        raise WorkbenchError(f"{path}: there is no such file.") from exc
    except json.JSONDecodeError as exc:
        raise WorkbenchError(f"{path}:{exc.lineno}: is not valid JSON: {exc.msg}.") from exc
    except (UnicodeDecodeError, RecursionError) as exc:
        raise WorkbenchError(f"{path}: is no JSON in UTF-8.") from exc
    except OSError as exc:
        raise WorkbenchError(f"{path}: cannot be read: {exc.strerror}.") from exc
    if not isinstance(tasks, list):
        raise WorkbenchError(f"{path}: is no list of tasks. Export as JSON from Label Studio.")
    return tasks


def _results(annotation: Mapping[str, Any]) -> dict[str, str]:
    results = annotation.get("result", [])
    if not isinstance(results, list):
        raise ValueError("'result' is no list")
    found: dict[str, str] = {}
    for result in results:
        name = result.get("from_name") if isinstance(result, dict) else None
        if name not in ("verdict", "stance", "note"):
            continue  # a team's own tags
        key = "text" if name == "note" else "choices"
        value = result.get("value")
        values = value.get(key) if isinstance(value, dict) else None
        if isinstance(values, str):
            values = [values]
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise ValueError(f"the value of {name!r} has no list {key!r}")
        found[name] = "\n".join(values) if name == "note" else _only(name, values)
    return found


def _only(name: str, values: Sequence[str]) -> str:
    if len(values) > 1:
        raise ValueError(f"{name} has {len(values)} choices, and there can be one")
    return values[0] if values else ""


def _annotator(annotation: Mapping[str, Any], names: Mapping[str, str]) -> str:
    user = annotation.get("completed_by")
    if isinstance(user, dict):
        user = user.get("email") or user.get("id")
    if isinstance(user, bool) or not isinstance(user, int | str) or user == "":
        raise ValueError("'completed_by' names no user")
    return names.get(str(user), user if isinstance(user, str) else f"user-{user}")


def _text(data: Mapping[str, Any], key: str, name: str, what: str) -> str:
    value = data.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"has no {name}, {what}")
    return value
