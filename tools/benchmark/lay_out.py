"""Turns a writer's draft of a subtopic into a suite file: ids, and which hypothesis meets which premises.

    python -m tools.benchmark.lay_out DRAFT... --output FOLDER

A hypothesis of a setting meets one disparity premise and one scene of its setting. A general hypothesis meets one of
each, from different settings, by turns in an order made from the texts: so all premises meet about as many hypotheses,
and nobody chose which.
"""

import argparse
import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

Entry = dict[str, Any]


def by_content(entries: Sequence[Entry], salt: str) -> list[Entry]:
    return sorted(entries, key=lambda entry: sha256(f"{salt}\t{entry['text']}".encode()).hexdigest())


def lay_out(draft: Entry) -> Entry:
    settings = draft["settings"]
    premises = [premise for setting in settings for premise in setting["premises"]]
    kinds = {kind: [each for each in premises if each["kind"] == kind] for kind in ("disparity", "scene")}
    used = dict.fromkeys((premise["id"] for premise in premises), 0)
    own: list[Entry] = []
    for setting in settings:
        for turn, hypothesis in enumerate(by_content(setting["hypotheses"], "setting")):
            met = [
                [premise for premise in setting["premises"] if premise["kind"] == kind][turn % 2]["id"]
                for kind in ("disparity", "scene")
            ]
            own.append({**hypothesis, "premises": met})
            for each in met:
                used[each] += 1
    general: list[Entry] = []
    for hypothesis in by_content(draft["general"], "general"):
        met = []
        for kind, ranked in kinds.items():
            setting_of = {premise["id"]: premise["id"][0] for premise in ranked}
            order = [premise["id"] for premise in by_content(ranked, f"{kind}\t{hypothesis['text']}")]
            free = [each for each in order if not met or setting_of[each] != met[0][0]]
            met.append(min(free, key=lambda each: (used[each], order.index(each))))
        general.append({**hypothesis, "premises": met})
        for each in met:
            used[each] += 1
    hypotheses = [*own, *general]
    return {
        "format": 2,
        **{key: draft[key] for key in ("name", "domain", "stereotype", "groups", "sources")},
        "annotations": draft.get("annotations", []),
        "premises": [
            {"id": each["id"], "kind": each["kind"], **_direction(each), "text": each["text"]} for each in premises
        ],
        "hypotheses": [
            {
                "id": f"h{number:03d}",
                "form": each["form"],
                "about": each["about"],
                "text": each["text"],
                "premises": each["premises"],
                **({"tags": each["tags"]} if each.get("tags") else {}),
            }
            for number, each in enumerate(hypotheses, 1)
        ],
        "controls": [
            {"id": f"c{number:02d}", "text": premise["fact"], "follows_from": premise["id"], "open_beside": other["id"]}
            for number, (premise, other) in enumerate(_facts(settings), 1)
        ],
    }


def _direction(premise: Entry) -> dict[str, str]:
    return {"direction": "with"} if premise["kind"] == "disparity" else {}


def _facts(settings: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    found = []
    for setting in settings:
        first, second = (each for each in setting["premises"] if each["kind"] == "disparity")
        found += [(first, second), (second, first)]
    return found


def write(subtopic: Entry, path: Path) -> None:
    """Write one entry a line, so that a change of one sentence is a change of one line."""
    lines = []
    for key, value in subtopic.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            entries = ",\n".join("    " + json.dumps(each, ensure_ascii=False) for each in value)
            lines.append(f'  "{key}": [\n{entries}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value, ensure_ascii=False)}')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drafts", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    for path in options.drafts:
        subtopic = lay_out(json.loads(path.read_text(encoding="utf-8")))
        write(subtopic, options.output / subtopic["domain"] / f"{subtopic['name']}.json")


if __name__ == "__main__":
    main()
