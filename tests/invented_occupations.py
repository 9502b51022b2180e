"""A small data folder of the occupations suite, about invented occupations."""

import json
from pathlib import Path
from typing import Any

OCCUPATIONS = {
    "occupations": [
        {"name": "Moon juggler", "majority": "female", "women_percent": 70, "annotations": ["A doubt."]},
        {"name": "zorb", "majority": "male", "women_percent": None},
    ]
}
TEMPLATES = {
    "genders": {"female": "female", "male": "male"},
    "hypotheses": ["It is a {{GENDER}} job.", "The job is {{ GENDER }}."],
    "premises": {
        "p1": "The {{OCCUPATION}} waves.",
        "p2": "We saw the {{ OCCUPATION }}.",
        "p3": "Ask the {{OCCUPATION}}.",
    },
}


def write(folder: Path, occupations: Any = OCCUPATIONS, templates: Any = TEMPLATES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "occupations.json").write_text(json.dumps(occupations), encoding="utf-8")
    (folder / "templates.json").write_text(json.dumps(templates), encoding="utf-8")
    return folder
