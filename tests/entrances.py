"""Every file that we read and others write: a sound example of each, and the function that reads it.

Tests put anything into these files. Nothing but our own error may come out.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bbnli_audit.audit.gate.thresholds import read_thresholds
from bbnli_audit.core.outcomes import CELLS, CellCounts
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.file import dump, read_result
from bbnli_audit.core.results.rows import (
    Judgement,
    Measured,
    ModelInfo,
    Skill,
    SubtopicResult,
    SuiteInfo,
    Verdict,
    Waiver,
)
from bbnli_audit.measures.readings.kinds import LABELS
from bbnli_audit.measures.readings.table import PLACES, TEXTS
from bbnli_audit.models.checkpoint import check_folder
from bbnli_audit.models.language_model.token_probability import lm_kind
from bbnli_audit.models.prompts import read_prompts
from bbnli_audit.models.recorded import RecordedPredictor
from bbnli_audit.reports.files import read_pairs
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.bbnli_next import BbnliNext
from bbnli_audit.suites.nli_coal import ANTI_FILE, NONSTEREO_FILE, PRO_FILE, NliCoal
from bbnli_audit.suites.occupations import Occupations
from bbnli_audit.suites.protocol import Suite, get_items
from bbnli_audit.suites.winoqueer import Winoqueer
from bbnli_audit.workbench.augment.lexicon import read_lexicon
from bbnli_audit.workbench.review.exchange import read_csv, read_tasks
from bbnli_audit.workbench.review.items import read_items
from bbnli_audit.workbench.workspace import Workspace, item_id
from tests.invented import LIMITS, quad_data, template_data
from tests.reported import comparison, regression

SAMPLES = (
    "premise,hypothesis,side,pair_id,subtopic\n"
    "The moon is red.,Zorbs juggle.,pro,1,planets/zorbs\n"
    "The moon is red.,Quints juggle.,anti,1,planets/zorbs\n"
)
COAL = {"id": 1, "sentence1": "A zorb came.", "sentence2": "She came.", "occ_word": "x", "occ_type": "male-stereo"}


def make_result() -> AuditResult:
    """A result with one of everything."""
    waiver = Waiver("until the next release", "ann", "2027-01-31", "thresholds.yaml:9")
    judgement = Judgement("pro_rate", 0.1, Verdict.FAIL, "thresholds.yaml:4", None, waiver)
    cells = CellCounts({cell: 2 * (cell == "EN") for cell in CELLS})

    def row(path: str) -> SubtopicResult:
        figures = {"pro_rate": Measured(0.5, 0.4, 0.6, 4), "lean": Measured(0.5, 0.4, 0.6, 4)}
        rest: dict[str, Any] = {"n_clusters": 1, "measures": figures, "control_accuracy": 0.9, "n_controls": 9}
        verdicts = (Judgement("control_accuracy", 0.6, Verdict.PASS, "thresholds.yaml:2"),)
        verdicts = verdicts if path == "total" else (judgement,)
        return SubtopicResult.of(path, cells, verdicts=verdicts, n_templates=(1, 1), **rest)

    path = "bbnli/planets/zorbs"
    return AuditResult(
        model=ModelInfo("tiny-nli-2", "1" * 64, "callable", "python", "float64", ("entailment", "neutral")),
        suites=(SuiteInfo("bbnli", "1.0", "2" * 64, "both"),),
        settings=Settings("thresholds.yaml", "bounds", 0.95, "warn", Skill(0.9, 0.9, 9, 0.4), {"torch": None}),
        subtopics=(row(path),),
        domains=(row("bbnli/planets"),),
        suite_rows=(row("bbnli"),),
        total=row("total"),
        required=((path, "pro_rate"),),
        comparison=comparison(regression(path, "pro_rate", Verdict.FAIL)),
        pairs={path: {"p00/h00": {"abc": "EN", "abd": "EN"}}},
    )


@dataclass(frozen=True)
class Entrance:
    """A file by its name in a folder, what is in it, what stands beside it, and how the folder is read."""

    name: str
    content: Any  # a JSON document, or text
    read: Callable[[Path], object]
    beside: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def is_json(self) -> bool:
        return not isinstance(self.content, str)

    def write(self, folder: Path, content: bytes | None = None) -> Path:
        """Write the folder, with other content in the file if it is given."""
        for name, data in ((self.name, self.content), *self.beside):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
        path = folder / self.name
        if content is not None:
            path.write_bytes(content)
        return path


def expand(suite: Suite) -> None:
    _ = suite.version, suite.sha256
    for subtopic in suite.subtopics():
        for pair in get_items(suite, subtopic).usable:
            _ = pair.id


def _check_model(folder: Path) -> None:
    lm_kind(folder)
    check_folder(str(folder))


def _read_manifest(folder: Path) -> None:
    manifest = Workspace(folder).manifest("mask")
    _ = 0 if manifest is None else manifest.total("masked")


_WEIGHTS = (("model.safetensors", ""), ("tokenizer.json", "{}"))
_OCCUPATIONS = {"occupations": [{"name": "zorb tamer", "majority": "male", "women_percent": 9.5, "annotations": ["x"]}]}
_TEMPLATES = {
    "genders": {"female": "female", "male": "male"},
    "hypotheses": ["This text speaks of a {{GENDER}} profession"],
    "reference": "person",
    "premises": {"p01": "The {{OCCUPATION}} arrived."},
}
_MANIFEST = {
    "step": "mask",
    "inputs": {"a": "b"},
    "settings": {"x": 1},
    "outputs": {},
    "counts": {"a/b": {"masked": 3}},
    "seconds": 1.5,
    "made_by": "bbnli-audit 1",
    "edited": [],
    "notes": {"n": 1},
    "format": 1,
}
_TASKS = [
    {
        "data": {"item": "abc"},
        "annotations": [
            {
                "completed_by": {"email": "a@b.example"},
                "created_at": "2026-03-01T10:00:00.000000Z",
                "result": [{"from_name": "verdict", "value": {"choices": ["valid"]}}],
            }
        ],
    }
]
_LEXICON = {
    "format": 1,
    "version": "1",
    "sides": ["zorb", "quint"],
    "pairs": [{"zorb": "zorbs", "quint": "quints"}],
    "keep": [{"terms": ["moon"], "reason": "a place"}],
}
_CONFIG = {
    "architectures": ["BertForSequenceClassification"],
    "id2label": {"0": "entailment", "1": "neutral", "2": "contradiction"},
}
_ADAPTER = {
    "base_model_name_or_path": "base",
    "peft_type": "LORA",
    "task_type": "SEQ_CLS",
    "r": 2,
    "lora_alpha": 2,
    "target_modules": ["query"],
}
_NO_TENSORS = "\x02" + "\0" * 7 + "{}"  # a file of safetensors
_BASE = (("base/config.json", _CONFIG), ("base/model.safetensors", ""), ("base/tokenizer.json", "{}"))
_PREDICTIONS = '{"premise": "a", "hypothesis": "b", "entailment": 0.2, "neutral": 0.5, "contradiction": 0.3}\n'
_PROMPTS = "short: '{premise} Does it follow that {hypothesis}?'\n"
_WINOQUEER = "stereo_premise,counter_premise,hypothesis\nAmy is a zorb.,Amy is a quint.,Amy juggles well.\n"
_ITEMS = "item,domain,subtopic,hypothesis,template,word,premise\n"
_ITEMS += f"{item_id('planets', 'zorbs', 'Zorbs juggle.')},planets,zorbs,Zorbs juggle.,x,y,The moon.\n"
_JUDGED = "item,annotator,verdict,stance,note,time\nabc,ann,valid,pro,,2026-03-01T10:00:00.000000Z\n"
_PAIRS = ",".join((*PLACES, *TEXTS, *LABELS.columns)) + "\n"
for _pair in ("abc", "abd"):
    _PAIRS += f"bbnli,planets,zorbs,{_pair},p00/h00,with,a,b,c,d,entailment,neutral,pro,0.8,0.1,0.1,0.1,0.8,0.1\n"


ENTRANCES = (
    Entrance("result.json", dump(make_result()), read_result),
    Entrance("pairs.csv", _PAIRS, lambda folder: read_pairs(make_result(), folder)),
    Entrance("thresholds.yaml", LIMITS, lambda folder: read_thresholds(folder / "thresholds.yaml")),
    Entrance("prompts.yaml", _PROMPTS, lambda folder: read_prompts(folder / "prompts.yaml")),
    Entrance("planets/zorbs.json", template_data(annotations=["a note"]), lambda folder: expand(Bbnli(folder))),
    Entrance("planets/quads.json", quad_data(annotations=["a note"]), lambda folder: expand(Bbnli(folder))),
    Entrance("suite.json", {"version": "1.0"}, lambda f: expand(Bbnli(f)), (("planets/a.json", template_data()),)),
    Entrance("occupations.json", _OCCUPATIONS, lambda f: expand(Occupations(f)), (("templates.json", _TEMPLATES),)),
    Entrance("templates.json", _TEMPLATES, lambda f: expand(Occupations(f)), (("occupations.json", _OCCUPATIONS),)),
    Entrance("release.json", {"version": "2.0"}, lambda f: expand(BbnliNext(f)), (("bbnli_next.csv", SAMPLES),)),
    Entrance("bbnli_next.csv", SAMPLES, lambda folder: expand(BbnliNext(folder))),
    Entrance(
        "controls.jsonl",
        {"premise": "a", "hypothesis": "b", "label": "neutral", "subtopic": "planets/zorbs"},
        lambda folder: expand(BbnliNext(folder)),
        (("bbnli_next.csv", SAMPLES),),
    ),
    Entrance("winoqueer_nli.csv", _WINOQUEER, lambda folder: expand(Winoqueer(folder))),
    Entrance(
        PRO_FILE,
        COAL,
        lambda folder: expand(NliCoal(folder)),
        ((ANTI_FILE, {**COAL, "id": 1001}), (NONSTEREO_FILE, {**COAL, "id": 2001})),
    ),
    Entrance("config.json", _CONFIG, _check_model, _WEIGHTS),
    Entrance("adapter_config.json", _ADAPTER, _check_model, (*_BASE, ("adapter_model.safetensors", _NO_TENSORS))),
    Entrance("p.jsonl", _PREDICTIONS, lambda folder: RecordedPredictor(f"predictions:{folder / 'p.jsonl'}")),
    Entrance("p.csv", "a,b\n1,2\n", lambda folder: RecordedPredictor(f"predictions:{folder / 'p.csv'}")),
    Entrance("p.parquet", "PAR1", lambda folder: RecordedPredictor(f"predictions:{folder / 'p.parquet'}")),
    Entrance("lexicon.json", _LEXICON, lambda folder: read_lexicon(folder / "lexicon.json")),
    Entrance("mask.manifest.json", _MANIFEST, _read_manifest),
    Entrance("tasks.json", _TASKS, lambda folder: read_tasks(folder / "tasks.json", {})),
    Entrance("judged.csv", _JUDGED, lambda folder: read_csv(folder / "judged.csv")),
    Entrance("items.csv", _ITEMS, lambda folder: read_items(folder / "items.csv")),
)
JSON_ENTRANCES = [entrance for entrance in ENTRANCES if entrance.is_json]


# What may stand where a file is expected.


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


NO_FILES: tuple[Callable[[Path], None], ...] = (_folder, _pipe, _dangling, _loop)
