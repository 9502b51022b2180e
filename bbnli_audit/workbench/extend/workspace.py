"""The folder in which a next version grows: a table for each step, and a manifest that says what it was made from."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import WorkbenchError
from bbnli_audit.core.files import hash_file, replacing
from bbnli_audit.core.versions import installed_version

# History of the format: 1 first version.
FORMAT = 1
STORE = "predictions.sqlite"

# What a step found in each subtopic (by path), by name.
Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Step:
    """One command of the workbench: the files it reads and the files it writes."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]


FIRST = "mask"
STEPS = {
    step.name: step
    for step in (
        Step("mask", (), ("masked.csv",)),
        Step("expand", ("masked.csv",), ("expanded.csv",)),
        Step("fill", ("expanded.csv",), ("filled.csv",)),
        Step("filter", ("expanded.csv", "filled.csv"), ("filtered.csv", "items.csv")),
        Step("agree", ("items.csv",), ("reviewed.csv",)),
        Step("counterfactual", ("filtered.csv", "reviewed.csv"), ("pairs.csv",)),
        Step("release", ("pairs.csv",), ("release/release.json",)),
    )
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a step was made from, and what it found."""

    step: str
    inputs: Mapping[str, str]
    settings: Mapping[str, Any]
    outputs: Mapping[str, str]
    counts: Counts
    seconds: float
    made_by: str
    edited: tuple[str, ...] = ()  # inputs that are not as their own step wrote them
    notes: Mapping[str, Any] = field(default_factory=dict)  # what was seen on the way, such as accuracies
    format: int = FORMAT

    def total(self, name: str) -> int:
        return sum(found.get(name, 0) for found in self.counts.values())


@dataclass(frozen=True, slots=True)
class Made:
    """What a step gives back."""

    counts: Counts
    notes: Mapping[str, Any] = field(default_factory=dict)


class Workspace:
    """The folder. Every step is done whole or not at all, and is not done again for the same inputs and settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        return self.folder / name

    @property
    def store(self) -> Path:
        return self.folder / STORE

    def manifest(self, step: str) -> Manifest | None:
        """Read what is written of a step; None when it has not been done.

        Raises:
            WorkbenchError: for a file that is no manifest of this format.
        """
        path = self._manifest_path(step)
        if self.folder.is_file():
            raise WorkbenchError(f"{self.folder}: is a file. Give the folder of the workbench.")
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != FORMAT:
                raise WorkbenchError(
                    f"{path}: has format {data['format']!r}; this version reads {FORMAT}. Remove it; do the step again."
                )
            return Manifest(**{**data, "edited": tuple(data["edited"])})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise WorkbenchError(f"{path}: is no manifest of the workbench. Remove it and do the step again.") from exc

    def need(self, step: str) -> Manifest:
        """Give the manifest of a step that must have been done.

        Raises:
            WorkbenchError: when it has not been done, or not to its end.
        """
        found = self.manifest(step)
        if found is None or self._pending_path(step).exists():
            what = "has not been done" if found is None else "was broken off"
            raise WorkbenchError(f"{self.folder}: the step {step!r} {what}. {self._how(step)}")
        return found

    def need_current(self, steps: Iterable[str]) -> dict[str, Manifest]:
        """Give the manifests of steps that must have been done, each with the tables that are there now.

        Raises:
            WorkbenchError: naming the step that is to be done again.
        """
        manifests = {step: self.need(step) for step in steps}
        for step, manifest in manifests.items():
            for file in STEPS[step].reads:
                if manifest.inputs.get(file) != self._hash(file):
                    raise WorkbenchError(
                        f"{self.path(file)}: has changed since the step {step!r} was done. Do that again, and what "
                        f"follows it: bbnli-audit extend {step} {self.folder}"
                    )
        return manifests

    def run(
        self,
        name: str,
        settings: Mapping[str, Any],
        make: Callable[[], Made],
        *,
        inputs: Mapping[str, str] | None = None,
        is_again: bool = False,
    ) -> tuple[Manifest, bool]:
        """Do a step unless it has been done with the same inputs and settings; say whether it was done now.

        Args:
            name: The step.
            settings: All else that decides what it writes.
            make: Writes the step's files, each whole, and counts.
            inputs: Hashes of inputs that are no file of this folder.
            is_again: Do it anyhow.

        Raises:
            WorkbenchError: when an input is missing, or a table was changed by hand that would be written over.
        """
        step = STEPS[name]
        self._check_folder(name)
        hashes = {**self._hash_inputs(step), **(inputs or {})}
        known = json.loads(json.dumps(settings))  # as it comes back from the manifest
        done = self.manifest(name)
        # What a broken-off step has written is ours, whatever the manifest of an earlier time says.
        if done is not None and not is_again and not self._pending_path(name).exists():
            now = {file: self._hash(file) for file in step.writes}
            is_same = done.inputs == hashes and done.settings == known
            if is_same and None not in now.values():
                return done, False
            changed = [file for file, digest in now.items() if digest is not None and digest != done.outputs.get(file)]
            if changed:
                raise WorkbenchError(
                    f"{self.path(changed[0])}: was changed after the step {name!r} wrote it, and the step would write "
                    "it anew, so the change would be lost. Keep a copy; then give --again."
                )
        return self._do(step, hashes, known, make), True

    def _do(
        self, step: Step, hashes: Mapping[str, str], settings: Mapping[str, Any], make: Callable[[], Made]
    ) -> Manifest:
        pending = self._pending_path(step.name)
        started = time.monotonic()
        try:
            pending.touch()
            made = make()
            manifest = Manifest(
                step=step.name,
                inputs=hashes,
                settings=settings,
                outputs={file: self._hash(file) or "" for file in step.writes},
                counts=made.counts,
                seconds=round(time.monotonic() - started, 1),
                made_by=f"bbnli-audit {installed_version('bbnli-audit')}",
                edited=tuple(file for file in step.reads if self._is_edited(file)),
                notes=made.notes,
            )
            with replacing(self._manifest_path(step.name)) as file:
                json.dump(asdict(manifest), file, indent=1, ensure_ascii=False)
                file.write("\n")
            pending.unlink()
        except OSError as exc:
            raise WorkbenchError(
                f"{exc.filename or self.folder}: cannot be written: {exc.strerror}. See to rights and space."
            ) from exc
        return manifest

    def _hash_inputs(self, step: Step) -> dict[str, str]:
        found = {}
        for file in step.reads:
            digest = self._hash(file)
            if digest is None:
                raise WorkbenchError(f"{self.path(file)}: there is no such file. {self._how(_maker(file))}")
            found[file] = digest
        return found

    def _how(self, step: str) -> str:
        return f"First: bbnli-audit extend {step} {self.folder}"

    def _hash(self, file: str) -> str | None:
        try:
            return hash_file(self.path(file))
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise WorkbenchError(f"{self.path(file)}: cannot be read: {exc.strerror}. See to it.") from exc

    def _is_edited(self, file: str) -> bool:
        made = self.manifest(_maker(file))
        return made is None or made.outputs.get(file) != self._hash(file)

    def _manifest_path(self, step: str) -> Path:
        return self.folder / f"{step}.manifest.json"

    def _pending_path(self, step: str) -> Path:
        return self.folder / f"{step}.pending"

    def _check_folder(self, step: str) -> None:
        """Make the folder for the first step; for any other it must be there."""
        if self.folder.exists() and not self.folder.is_dir():
            raise WorkbenchError(f"{self.folder}: is a file. Give the folder of the workbench.")
        if step != FIRST and not self.folder.is_dir():
            raise WorkbenchError(f"{self.folder}: there is no such folder. {self._how(FIRST)}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise WorkbenchError(f"{self.folder}: cannot be made a folder: {exc.strerror}. Give another name.") from exc


def hash_json(value: object) -> str:
    """Give a hash of plain values."""
    return sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _maker(file: str) -> str:
    return next(step.name for step in STEPS.values() if file in step.writes)
