"""The `bbnli` suite: a folder of subtopic files, the package's own or the published ones."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from bbnli_audit.core.errors import OptionError, SuiteError
from bbnli_audit.core.values import Pairing, Subtopic, SubtopicItems
from bbnli_audit.suites.json_file import hash_files, read_object, read_version
from bbnli_audit.suites.quad_file import FORMAT, QuadFile, expand_quads, read_quad_file
from bbnli_audit.suites.template_file import TemplateFile, expand_items, read_template_file, subtopic_name

OWN_DATA = Path(__file__).parent / "data" / "bbnli"
FIRST_DATA = OWN_DATA.with_name("bbnli@1")

SubtopicFile = TemplateFile | QuadFile


def documented(suite: str) -> list[Subtopic]:
    """List the package's stereotypes: the sixteen of BBNLI, named as in the papers' tables, and our own."""
    return [Subtopic(suite, path.parent.name, path.stem) for path in sorted(OWN_DATA.glob("*/*.json"))]


class Bbnli:
    """Subtopic files below one folder. The default pairing is `quads` for our format, `both` for the published one."""

    name = "bbnli"

    def __init__(self, folder: Path | None = None, pairing: Pairing | None = None) -> None:
        self.folder = folder or OWN_DATA
        self._added: tuple[Path, ...] = ()
        self._pairing = pairing
        self._expanded: dict[Subtopic, SubtopicItems] = {}

    @cached_property
    def pairing(self) -> Pairing:
        is_own = all(isinstance(file, QuadFile) for file in self._files.values())
        return self._pairing or (Pairing.QUADS if is_own else Pairing.BOTH)

    def adding_data(self, folder: Path) -> "Bbnli":
        """Return the same suite with the subtopics of another folder beside its own."""
        suite = type(self)(self.folder, self._pairing)
        suite._added = (*self._added, folder)
        return suite

    @cached_property
    def version(self) -> str:
        return " + ".join(map(read_version, (self.folder, *self._added)))

    @cached_property
    def sha256(self) -> str:
        own, *added = (hash_files(folder, _paths_below(folder)) for folder in (self.folder, *self._added))
        return sha256("\n".join((own, *added)).encode()).hexdigest() if added else own

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._files)

    def documented(self) -> Sequence[Subtopic]:
        return documented(self.name)

    def files(self) -> Mapping[Path, SubtopicFile]:
        """Return each file as it was read, for checks of the data."""
        return {self._path_of[subtopic.path]: file for subtopic, file in self._files.items()}

    def templates(self) -> Sequence[TemplateFile]:
        """Return the files. They must be in the published format, because the caller works on its templates."""
        found = [file for file in self._files.values() if isinstance(file, TemplateFile)]
        if len(found) < len(self._files):
            advice = "Give a folder of files in the published BBNLI format (docs/suites.md)."
            raise SuiteError(f"{self.folder}: holds quads, but this command needs templates with two groups. {advice}")
        return found

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        if subtopic not in self._expanded:
            file, pairing = self._files[subtopic], self.pairing
            items = expand_quads(file, pairing) if isinstance(file, QuadFile) else expand_items(file, pairing)
            self._expanded[subtopic] = items
        return self._expanded[subtopic]

    @cached_property
    def _files(self) -> dict[Subtopic, SubtopicFile]:
        files: dict[Subtopic, SubtopicFile] = {}
        self._path_of: dict[str, Path] = {}
        for path in [path for folder in (self.folder, *self._added) for path in _paths_below(folder)]:
            file = _read(path)
            domain, name = names_of(file)
            aliases = () if path.stem.lower() == name else (path.stem.lower(),)
            subtopic = Subtopic(self.name, domain, name, aliases, tuple(file.annotations))
            twin = self._path_of.setdefault(subtopic.path, path)
            if twin != path:
                fault = f"is named {file.name!r} in domain {file.domain!r}, and so is {twin}"
                raise SuiteError(f"{path}: {fault}. Rename one: results and limits are kept by name.")
            files[subtopic] = file
        return dict(sorted(files.items()))


class BbnliFirst(Bbnli):
    """Benchmark 1, for baselines that were made with it. Its results use the suite name and the limits of `bbnli`."""

    def __init__(self, folder: Path | None = None, pairing: Pairing | None = None) -> None:
        super().__init__(folder or FIRST_DATA, pairing)


def names_of(file: SubtopicFile) -> tuple[str, str]:
    """Return domain and name as results spell them."""
    return subtopic_name(file.domain), subtopic_name(file.name)


def _paths_below(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise OptionError(f"--bbnli-data={folder}: there is no such folder.")
    paths = sorted(path for path in folder.glob("*/*.json") if not path.parent.name.startswith("."))
    if not paths:
        advice = "Name the folder that holds gender/, race/ and religion/."
        raise OptionError(f"--bbnli-data={folder}: the folder holds no subtopic file (*/*.json).\n{advice}")
    return paths


def _read(path: Path) -> SubtopicFile:
    data = read_object(path, "the keys of a subtopic (docs/suites.md).")
    return read_quad_file(path, data) if data.get("format") == FORMAT else read_template_file(path, data)
