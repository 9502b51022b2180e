"""The folder of a new version of a suite: for each step a table, and a manifest of what the table was made from."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from bbnli_audit.core.versions import installed_version

# History of the format: 1 first version.
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
    """The inputs and settings of a step, and what it found."""

    step: str
    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    outputs: Mapping[str, str]
    counts: Counts
    seconds: float
    made_by: str
    edited: tuple[str, ...] = ()  # inputs that differ from what their own step wrote
    notes: Mapping[str, Any] = field(default_factory=dict)  # other observations, such as accuracies
    format: int = FORMAT

    def total(self, name: str) -> int:
        return sum(found.get(name, 0) for found in self.counts.values())


class Made(NamedTuple):
    """The return value of a step's work."""

    counts: Counts
    notes: Mapping[str, Any] = {}


class Workspace:
    """The folder. Each step is done completely or not at all, and not repeated for the same inputs and settings."""

    def __init__(self, folder: Path, is_again: bool = False) -> None:
        """With `is_again`, steps are always repeated, and overwrite tables that were edited by hand."""
        self.folder = folder
        self.is_again = is_again

    def path(self, name: str) -> Path:
        return self.folder / name

    def manifest(self, step: str) -> Manifest | None:
        """Read the manifest of a step; None if the step has not been done."""
        self._refuse_file()
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
        """Return the manifests of these steps. Refuse if one is not done, or a table has changed since."""
        manifests = {step: self.need(step) for step in steps}
        for step, manifest in manifests.items():
            for file in STEPS[step].reads:
                if manifest.inputs.get(file) != self._hash(file):
                    how = f"Repeat that step and those after it: bbnli-audit extend {step} {self.folder}"
                    raise WorkbenchError(f"{self.path(file)}: has changed since the step {step!r} was done. {how}")
        return manifests

    def run(
        self, name: str, settings: Mapping[str, Any], make: Callable[[], Made], inputs: Mapping[str, str] | None = None
    ) -> tuple[Manifest, bool]:
        """Do a step, unless it was done with the same inputs and settings. The flag says whether it was done now.

        `settings` has all that decides the result besides the inputs; `inputs` has hashes of inputs that are not files
        of this folder. `make` writes the step's files, each one completely, and counts.
        """
        step = STEPS[name]
        self._check_folder(name)
        hashes = {**{file: self._hash_input(file) for file in step.reads}, **(inputs or {})}
        known = json.loads(json.dumps(settings))  # as it comes back from the manifest
        done = self.manifest(name)
        # Files of an interrupted run are ours, even if they do not fit an older manifest.
        if done is not None and not self.is_again and not self.path(f"{name}.pending").exists():
            now = {file: self._hash(file) for file in step.writes}
            if done.inputs == hashes and done.settings == known and None not in now.values():
                return done, False
            changed = [file for file, digest in now.items() if digest is not None and digest != done.outputs.get(file)]
            if changed:
                fault = f"was changed after the step {name!r} wrote it, and running the step would overwrite that"
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

    def _check_folder(self, step: str) -> None:
        """Create the folder for the first step; any other step needs it to exist."""
        self._refuse_file()
        if step != FIRST and not self.folder.is_dir():
            raise WorkbenchError(f"{self.folder}: there is no such folder. {self._how(FIRST)}")
        with telling(self.folder, "created"):
            self.folder.mkdir(parents=True, exist_ok=True)

    def _refuse_file(self) -> None:
        if self.folder.is_file():
            raise WorkbenchError(f"{self.folder}: is a file. Name the workbench's folder.")


def _maker(file: str) -> str:
    return next(name for name, step in STEPS.items() if file in step.writes)


@contextmanager
def telling(path: Path, done: str) -> Iterator[None]:
    """Turn errors of the system into messages: the path cannot be read, written or created."""
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


def hash_json(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def choose_paths(given: str | None, known: Iterable[str]) -> list[str]:
    """Read --subtopics: paths such as gender/man_is_to_surgeon, or patterns, with commas between; all without it."""
    paths = list(known)
    chosen: dict[str, None] = {}
    for pattern in [part.strip() for part in (given or "*").split(",") if part.strip()]:
        matching = [path for path in paths if fnmatchcase(path, pattern)]
        if not matching:
            raise OptionError(f"--subtopics={pattern}: names no subtopic of the suite. {suggest(pattern, paths)}")
        chosen.update(dict.fromkeys(matching))
    return [path for path in paths if path in chosen]


def draw_by_content(ids: Iterable[str], n: int | None) -> set[str]:
    """Draw n ids by their hashes (None: all). Equal ids give equal samples, and a larger sample contains a smaller."""
    return set(sorted(ids, key=lambda each: sha256(each.encode()).digest())[:n])


def item_id(domain: str, subtopic: str, hypothesis: str) -> str:
    """Return the id of a hypothesis to judge. Template, word and model do not change it."""
    parts = (part.encode() for part in (domain, subtopic, hypothesis))
    return sha256(b"".join(b"%d\n%s" % (len(part), part) for part in parts)).hexdigest()[:12]


def count_by_subtopic(counted: Mapping[str, Mapping[str, int]]) -> Counts:
    """Turn counts by name and subtopic into counts by subtopic and name. Each subtopic gets all names, even with 0."""
    paths = dict.fromkeys(path for found in counted.values() for path in found)
    return {path: {name: found.get(path, 0) for name, found in counted.items()} for path in paths}
