"""Keeps what the models showed in small files of the repository, so that the page can be made again without them.

The folder of a model holds a checkpoint and whole results, which are not kept. A record holds what the page shows: of a
base as it is, or of the two models that differ only in the copies of their corpus. These two are always made on one
machine: processors round differently, and training makes much of it.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bbnli_audit import Measured
from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.results.comparison import Growth
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.occupations import Occupations
from tools.validity.mitigation.carry_out import is_finished
from tools.validity.mitigation.figures import FIGURES, Figure, Showing
from tools.validity.mitigation.plan import SIZES, Arm, Candidate, Corpus

RECORDS = Path(__file__).with_name("records")
DIGITS = 5


@dataclass(frozen=True, slots=True)
class Shown:
    """What one model showed: its figures by their titles, and what it read in how many steps."""

    candidate: Candidate
    figures: dict[str, Measured]
    read: dict[str, int]  # empty for a base as it is


@dataclass(frozen=True, slots=True)
class Record:
    """A base as it is, or the two arms of a trial: without copies, with copies, and the differences between them."""

    models: tuple[Shown, ...]
    differences: dict[str, Growth]  # by the titles of the figures; empty for a base as it is

    @property
    def of(self) -> Candidate:
        """The base, or the arm without copies."""
        return self.models[0].candidate

    def judge(self, figure: Figure) -> str:
        """Say whether the copies make a figure better, as far as the interval of the difference tells."""
        growth = self.differences[figure.title]
        values = [each.figures[figure.title].value for each in self.models]
        if growth.low is None or growth.high is None or None in values or growth.low <= 0 <= growth.high:
            return "open"
        one, other = (abs((value or 0.0) - figure.best) for value in values)
        return "better" if other < one else "worse"


def keep_records(plan: Iterable[Candidate], build: Path, folder: Path = RECORDS) -> None:
    """Write a record of all that is finished in `build`. Refuse models that were made in another way."""
    groups: dict[str, list[Candidate]] = {}
    for each in plan:
        groups.setdefault(each.record, []).append(each)
    for name, candidates in groups.items():
        if all(is_finished(build / each.name) for each in candidates):
            showings = [Showing(each, build / each.name) for each in candidates]
            for showing in showings:
                if showing.made != _made(showing.candidate):
                    raise OptionError(f"{showing.folder}: was made in another way. Remove it, and start again.")
            _write(showings, folder / f"{name}.json")


def read_records(plan: Iterable[Candidate], folder: Path = RECORDS) -> list[Record]:
    """Return the records of a plan, in its order. One that was made in another way, or of other suites, is left out."""
    names = dict.fromkeys(each.record for each in plan)
    made = {each.record: _made(each) for each in plan}
    return [found for name in names if (found := _read(folder / f"{name}.json", made[name])) is not None]


def _write(showings: Sequence[Showing], path: Path) -> None:
    """Write a record as one line of JSON."""
    models = [
        {
            "candidate": asdict(each.candidate),
            "figures": {figure.title: _plain(figure.read(each)) for figure in FIGURES},
            "read": each.read,
        }
        for each in showings
    ]
    differences = {each.title: _plain(each.compare(*showings)) for each in FIGURES} if len(showings) > 1 else {}
    data = {"made": _made(showings[0].candidate), "models": models, "differences": differences}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, ensure_ascii=False) + "\n", encoding="utf-8")


def _read(path: Path, made: dict[str, Any]) -> Record | None:
    if not path.exists():
        return None
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    titles = [figure.title for figure in FIGURES]
    if data["made"] != made or any(list(each["figures"]) != titles for each in data["models"]):
        return None
    differences = {title: Growth(*found) for title, found in data["differences"].items()}
    return Record(tuple(map(_read_model, data["models"])), differences)


def _read_model(data: dict[str, Any]) -> Shown:
    base, arm, corpus, seed = (data["candidate"][name] for name in ("base", "arm", "corpus", "seed"))
    candidate = Candidate(base, Arm(arm), None if corpus is None else Corpus(corpus), seed)
    return Shown(candidate, {title: Measured(*found) for title, found in data["figures"].items()}, data["read"])


def _made(candidate: Candidate) -> dict[str, Any]:
    """Say how a model of the plan is made. The arms of a trial agree in all of this."""
    made: dict[str, Any] = {"suites": {"gender": Bbnli().version, "occupations": Occupations().version}}
    if candidate.corpus is not None:
        made |= {"training": asdict(candidate.training), "n_rows": SIZES[candidate.base].n_rows}
    return made


def _plain(found: Measured) -> list[float | None]:
    return [None if each is None else round(each, DIGITS) for each in (found.value, found.low, found.high, found.n)]
