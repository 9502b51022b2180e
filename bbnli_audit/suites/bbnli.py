"""The `bbnli` suite: a folder of subtopic files, the package's own or the published ones."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pairing, Subtopic, SubtopicItems
from bbnli_audit.suites.json_file import hash_files, read_version
from bbnli_audit.suites.template_file import TemplateFile, expand_items, read_template_file

OWN_DATA = Path(__file__).parent / "data" / "bbnli"


def documented(suite: str) -> list[Subtopic]:
    """List the sixteen documented stereotypes (Akyürek et al. 2022), by the names of the papers' tables."""
    return [Subtopic(suite, path.parent.name, path.stem) for path in sorted(OWN_DATA.glob("*/*.json"))]


class Bbnli:
    """Template files below one folder."""

    name = "bbnli"

    def __init__(self, folder: Path | None = None, pairing: Pairing = Pairing.BOTH) -> None:
        self.folder = folder or OWN_DATA
        self.pairing = pairing

    @cached_property
    def version(self) -> str:
        return read_version(self.folder)

    @cached_property
    def sha256(self) -> str:
        return hash_files(self.folder, self._paths)

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._files)

    def documented(self) -> Sequence[Subtopic]:
        return documented(self.name)

    def files(self) -> Sequence[TemplateFile]:
        """Return the templates, for checks of the data itself."""
        return tuple(self._files.values())

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        return expand_items(self._files[subtopic], self.pairing)

    @cached_property
    def _paths(self) -> list[Path]:
        if not self.folder.is_dir():
            raise OptionError(f"--bbnli-data={self.folder}: there is no such folder.")
        paths = sorted(path for path in self.folder.glob("*/*.json") if not path.parent.name.startswith("."))
        if not paths:
            advice = "Name the folder that holds gender/, race/ and religion/."
            raise OptionError(f"--bbnli-data={self.folder}: the folder holds no subtopic file (*/*.json).\n{advice}")
        return paths

    @cached_property
    def _files(self) -> dict[Subtopic, TemplateFile]:
        files: dict[Subtopic, TemplateFile] = {}
        for path in self._paths:
            file = read_template_file(path)
            aliases = () if path.stem.lower() == file.name else (path.stem.lower(),)
            subtopic = Subtopic(self.name, file.domain, file.name, aliases, file.annotations)
            twin = next((files[other] for other in files if other.path == subtopic.path), None)
            if twin is not None:
                fault = f"is named {file.name!r} in domain {file.domain!r}, and so is {twin.path}"
                raise SuiteError(f"{path}: {fault}. Rename one: results and limits are kept by name.")
            files[subtopic] = file
        return dict(sorted(files.items()))
