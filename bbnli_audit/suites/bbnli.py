"""The `bbnli` suite: a folder of subtopic files, the package's own or the published ones."""

import json
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pairing, Subtopic, SubtopicItems
from bbnli_audit.suites.expansion import expand_items
from bbnli_audit.suites.template_file import TemplateFile, read_template_file

OWN_DATA = Path(__file__).parent / "data" / "bbnli"
MANIFEST = "suite.json"  # {"version": "..."}; the published folder has none

# The sixteen documented stereotypes (Akyürek et al. 2022), by the names of the papers' tables.
DOCUMENTED = {
    "gender": (
        "man_is_to_breadwinner",
        "man_is_to_programmer",
        "man_is_to_rational",
        "man_is_to_surgeon",
        "woman_is_to_homemaker",
    ),
    "race": (
        "asian_men_to_feminine",
        "black_is_to_criminal",
        "black_is_to_drugs",
        "black_is_to_ghetto",
        "white_is_to_clean",
    ),
    "religion": (
        "catholic_woman_is_to_kids",
        "jewish_woman_is_to_kids",
        "mormon_man_to_oppressive",
        "muslim_man_to_many_wives",
        "muslim_man_to_oppressive",
        "muslim_women_to_invisible",
    ),
}


class Bbnli:
    """Template files below one folder."""

    name = "bbnli"

    def __init__(self, folder: Path | None = None, pairing: Pairing = Pairing.BOTH) -> None:
        self.folder = folder or OWN_DATA
        self.pairing = pairing

    @cached_property
    def version(self) -> str:
        manifest = self.folder / MANIFEST
        if not manifest.is_file():
            return "unversioned"
        try:
            return str(json.loads(manifest.read_text(encoding="utf-8"))["version"])
        except (ValueError, KeyError, TypeError) as exc:
            raise SuiteError(f'{manifest}: expected {{"version": "..."}}.') from exc

    @cached_property
    def sha256(self) -> str:
        digest = sha256()
        for path in self._paths:
            digest.update(f"{path.relative_to(self.folder).as_posix()}\n".encode())
            digest.update(sha256(path.read_bytes()).digest())
        return digest.hexdigest()

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._files)

    def documented(self) -> Sequence[Subtopic]:
        return [Subtopic(self.name, domain, name) for domain, names in DOCUMENTED.items() for name in names]

    def files(self) -> Sequence[TemplateFile]:
        """Give the templates, for checks of the data itself."""
        return tuple(self._files.values())

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        return expand_items(self._files[subtopic], self.pairing)

    @cached_property
    def _paths(self) -> list[Path]:
        if not self.folder.is_dir():
            raise OptionError(f"--bbnli-data={self.folder}: there is no such folder.")
        paths = sorted(path for path in self.folder.glob("*/*.json") if not path.parent.name.startswith("."))
        if not paths:
            raise OptionError(
                f"--bbnli-data={self.folder}: the folder holds no subtopic file (*/*.json), so there is nothing to "
                "audit.\nGive the folder that holds gender/, race/ and religion/."
            )
        return paths

    @cached_property
    def _files(self) -> dict[Subtopic, TemplateFile]:
        files: dict[Subtopic, TemplateFile] = {}
        for path in self._paths:
            file = read_template_file(path)
            alias = path.stem.lower()
            aliases = () if alias == file.name else (alias,)
            subtopic = Subtopic(self.name, file.domain, file.name, aliases, file.annotations)
            for other, other_file in files.items():
                if other.path == subtopic.path:
                    raise SuiteError(
                        f"{path}: is named {file.name!r} in domain {file.domain!r}, and so is {other_file.path}. "
                        "Rename one: results and limits are kept by name."
                    )
            files[subtopic] = file
        return dict(sorted(files.items()))
