"""The workbench's folder, in which steps make a new version of a suite. Each step writes its files and a manifest."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

from bbnli_audit.core.errors import OptionError, WorkbenchError, suggest
from bbnli_audit.core.files import hash_file, replacing
from bbnli_audit.core.reading import Source
from bbnli_audit.core.results.file import load
from bbnli_audit.core.tables import open_table, write_csv
from bbnli_audit.core.versions import installed_version

# History of the format: 1 is the first version.
FORMAT = 1
STORE = "predictions.sqlite"

Counts = Mapping[str, Mapping[str, int]]  # subtopic path → name of the count → number


class Step(NamedTuple):
    """One command of the workbench: the files it reads and the files it writes."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


FIRST = "mask"
STEPS = {
    "mask": Step((), ("masked.csv",)),
    "expand": Step(("masked.csv",), ("expanded.csv",)),
    "fill": Step(("expanded.csv",), ("filled.csv",)),
    "filter": Step(("expanded.csv", "filled.csv"), ("filtered.csv", "items.csv")),
    "agree": Step(("items.csv",), ("reviewed.csv",)),
    "counterfactual": Step(("filtered.csv", "reviewed.csv"), ("pairs.csv",)),
    "release": Step(("pairs.csv",), ("release/release.json",)),
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """The record of a step. `inputs` and `outputs` map names to hashes."""

    step: str
    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    outputs: Mapping[str, str]
    counts: Counts
    seconds: float
    made_by: str
    edited: tuple[str, ...] = ()  # tables that people had edited or supplied before the step read them
    notes: Mapping[str, Any] = field(default_factory=dict)  # results that are not counts, such as accuracies
    format: int = FORMAT

    def total(self, name: str) -> int:
        return sum(found.get(name, 0) for found in self.counts.values())


class Made(NamedTuple):
    """The results of a step, for its manifest."""

    counts: Counts
    notes: Mapping[str, Any] = {}


Done = tuple[Manifest, bool]  # a completed step, and whether it was done now (True) or earlier


class Workspace:
    """The workbench's folder.

    An interrupted step counts as not done. A step that was done with the same inputs and settings is not repeated.
    """

    def __init__(self, folder: Path, is_again: bool = False) -> None:
        """With `is_again`, steps are always repeated, and overwrite tables that were edited by hand."""
        if folder.is_file():
            raise WorkbenchError(f"{folder}: is a file. Name the workbench's folder.")
        self.folder = folder
        self.is_again = is_again

    def path(self, name: str) -> Path:
        return self.folder / name

    def manifest(self, step: str) -> Manifest | None:
        """Return the manifest of a step, or None if the step has not been done."""
        path = self.path(f"{step}.manifest.json")
        try:
            if not path.exists():
                return None
            data = Source(path, WorkbenchError, advice="Remove it and repeat the step.").read_json()
            if data["format"] != FORMAT:
                fault = f"has format {data['format']!r}, not {FORMAT}"
                raise WorkbenchError(f"{path}: {fault}. Remove it and repeat the step.")
            return load(Manifest, data)
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise WorkbenchError(f"{path}: is not a manifest. Remove it and repeat the step.") from exc

    def need(self, step: str) -> Manifest:
        """Return the manifest of a step, which must have been completed."""
        found = self.manifest(step)
        if found is None or self.path(f"{step}.pending").exists():
            what = "has not been done" if found is None else "was interrupted"
            raise WorkbenchError(f"{self.folder}: the step {step!r} {what}. {self._how(step)}")
        return found

    def need_current(self, steps: Iterable[str]) -> dict[str, Manifest]:
        """Return the manifests of these steps.

        Refuse if a step is not done, or if a table has changed since a step read it.
        """
        manifests = {step: self.need(step) for step in steps}
        for step, manifest in manifests.items():
            for file in STEPS[step].reads:
                if manifest.inputs.get(file) != self._hash(file):
                    how = f"Repeat that step and those after it: bbnli-audit extend {step} {self.folder}"
                    raise WorkbenchError(f"{self.path(file)}: has changed since the step {step!r} was done. {how}")
        return manifests

    def run(
        self, name: str, settings: Mapping[str, Any], make: Callable[[], Made], inputs: Mapping[str, str] | None = None
    ) -> Done:
        """Do a step, unless it was done with the same inputs and settings.

        `settings` are all options that can change the result. `inputs` are the hashes of inputs other than the
        tables that the step reads. `make` writes each of the step's files whole or not at all. It returns the step's
        results.
        """
        step = STEPS[name]
        if name == FIRST:
            with telling(self.folder, "created"):
                self.folder.mkdir(parents=True, exist_ok=True)
        elif not self.folder.is_dir():
            raise WorkbenchError(f"{self.folder}: there is no such folder. {self._how(FIRST)}")
        hashes = {**{file: self._hash_input(file) for file in step.reads}, **(inputs or {})}
        known = json.loads(json.dumps(settings))  # the settings as the manifest would give them back
        done = self.manifest(name)
        # If the step was interrupted, it left files that fit no manifest. They are ours and may be overwritten.
        if not self.is_again and not self.path(f"{name}.pending").exists():
            now = {file: self._hash(file) for file in step.writes}
            if done is not None and done.inputs == hashes and done.settings == known and None not in now.values():
                return done, False
            ours: Mapping[str, str] = {} if done is None else done.outputs
            changed = [file for file, digest in now.items() if digest is not None and digest != ours.get(file)]
            if changed:
                since = f"was changed after the step {name!r} wrote it" if done else "is there, and no step wrote it"
                fault = f"{since}; running the step {name!r} would overwrite it"
                raise WorkbenchError(f"{self.path(changed[0])}: {fault}. Keep a copy, then use --again.")
        return self._do(name, hashes, known, make), True

    def _do(
        self, name: str, hashes: Mapping[str, str], settings: Mapping[str, Any], make: Callable[[], Made]
    ) -> Manifest:
        step, pending = STEPS[name], self.path(f"{name}.pending")
        started = time.monotonic()
        with telling(self.folder, "written"):
            pending.touch()
            counts, notes = make()
            manifest = Manifest(
                step=name,
                inputs=hashes,
                settings=settings,
                outputs={file: self._hash(file) or "" for file in step.writes},
                counts=counts,
                seconds=round(time.monotonic() - started, 1),
                made_by=f"bbnli-audit {installed_version('bbnli-audit')}",
                edited=tuple(file for file in step.reads if self._is_edited(file)),
                notes=notes,
            )
            document = json.dumps(asdict(manifest), indent=1, ensure_ascii=False)
            write_text(self.path(f"{name}.manifest.json"), f"{document}\n")
            pending.unlink()
        return manifest

    def _hash_input(self, file: str) -> str:
        digest = self._hash(file)
        if digest is None:
            raise WorkbenchError(f"{self.path(file)}: there is no such file. {self._how(_maker(file))}")
        return digest

    def _how(self, step: str) -> str:
        return f"First run: bbnli-audit extend {step} {self.folder}"

    def _hash(self, file: str) -> str | None:
        path = self.path(file)
        with telling(path, "read"):
            return hash_file(path) if path.exists() else None

    def _is_edited(self, file: str) -> bool:
        made = self.manifest(_maker(file))
        return made is None or made.outputs.get(file) != self._hash(file)


def _maker(file: str) -> str:
    return next(name for name, step in STEPS.items() if file in step.writes)


@contextmanager
def telling(path: Path, done: str) -> Iterator[None]:
    """Turn an error of the operating system into a message. `done` is what was tried: read, written or created."""
    try:
        yield
    except OSError as exc:
        advice = "" if done == "read" else " Check permissions and disk space."
        raise WorkbenchError(f"{path}: cannot be {done}: {exc.strerror}.{advice}") from exc


@contextmanager
def writing(path: Path) -> Iterator[IO[str]]:
    with telling(path, "written"), replacing(path) as file:
        yield file


def write_text(path: Path, text: str) -> None:
    with writing(path) as file:
        file.write(text)


def write_rows(path: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    with writing(path) as file:
        write_csv(file, columns, rows)


def read_lines(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row of a file with the number of its first line. The file is read as CSV, whatever its suffix."""
    with open_table(path, WorkbenchError, f"The columns are {', '.join(columns)}.", suffix=".csv") as table:
        records = table.records(columns)
        table.require(table.columns)  # no column may occur twice
        yield from ((line, values) for line, values, _ in records)


def hash_json(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def choose_paths(given: str | None, known: Iterable[str]) -> list[str]:
    """Read --subtopics: paths or patterns with commas between, such as gender/*. Without a value, return all paths."""
    paths = list(known)
    if given is None:
        return paths
    patterns = [part.strip() for part in given.split(",") if part.strip()]
    if not patterns:
        advice = "Give paths or patterns, such as gender/*, or leave the option out."
        raise OptionError(f"--subtopics={given}: names no subtopic. {advice}")
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matching = [path for path in paths if fnmatchcase(path, pattern)]
        if not matching:
            raise OptionError(f"--subtopics={pattern}: names no subtopic of the suite. {suggest(pattern, paths)}")
        chosen.update(dict.fromkeys(matching))
    return [path for path in paths if path in chosen]


def draw_by_content(ids: Iterable[str], n: int | None) -> set[str]:
    """Draw n ids by their hashes (all if n is None). Equal ids give equal draws. Larger draws contain smaller ones."""
    return set(sorted(ids, key=lambda each: sha256(each.encode()).digest())[:n])


def item_id(domain: str, subtopic: str, hypothesis: str) -> str:
    """Return the id of a hypothesis to judge. It does not depend on the template, the word or the model."""
    parts = (part.encode() for part in (domain, subtopic, hypothesis))
    return sha256(b"".join(b"%d\n%s" % (len(part), part) for part in parts)).hexdigest()[:12]


def count_by_subtopic(counted: Mapping[str, Iterable[str] | Mapping[str, int]]) -> Counts:
    """Return counts by subtopic and name.

    For each name, `counted` has either the subtopic path of every thing to count, or the number for each path.
    """
    counters = {name: Counter(found) for name, found in counted.items()}
    paths = dict.fromkeys(path for counter in counters.values() for path in counter)
    return {path: {name: counter[path] for name, counter in counters.items()} for path in paths}
