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
    """List the subtopics of the package's own data, as subtopics of the suite named `suite`."""
    return [Subtopic(suite, path.parent.name, path.stem) for path in sorted(OWN_DATA.glob("*/*.json"))]


class Bbnli:
    """Subtopic files in one or more folders. The default pairing is `quads` if all files hold quads, else `both`."""

    name = "bbnli"

    def __init__(self, folder: Path | None = None, pairing: Pairing | None = None) -> None:
        self.folder = folder or OWN_DATA
        self._added: tuple[Path, ...] = ()
        self._pairing = pairing
        self._expanded: dict[Subtopic, SubtopicItems] = {}

    @cached_property
    def pairing(self) -> Pairing:
        is_own = all(isinstance(file, QuadFile) for _, file in self._files.values())
        return self._pairing or (Pairing.QUADS if is_own else Pairing.BOTH)

    def adding_data(self, folder: Path) -> "Bbnli":
        """Return the same suite with the subtopics of a further folder added."""
        suite = type(self)(self.folder, self._pairing)
        suite._added = (*self._added, folder)
        return suite

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of data. Each file `*/*.json` in them is a subtopic."""
        return (self.folder, *self._added)

    @cached_property
    def version(self) -> str:
        return " + ".join(map(read_version, self.folders))

    @cached_property
    def sha256(self) -> str:
        own, *added = (hash_files(folder, _paths_below(folder)) for folder in self.folders)
        return sha256("\n".join((own, *added)).encode()).hexdigest() if added else own

    def subtopics(self) -> Sequence[Subtopic]:
        return tuple(self._files)

    def documented(self) -> Sequence[Subtopic]:
        return documented(self.name)

    def files(self) -> Mapping[Path, SubtopicFile]:
        """Return the content of each file, before expansion."""
        return dict(self._files.values())

    def file(self, subtopic: Subtopic) -> tuple[Path, SubtopicFile]:
        """Return the file of a subtopic and its content."""
        return self._files[subtopic]

    def templates(self) -> Sequence[TemplateFile]:
        """Return the content of the files, which must be in the published format."""
        found = [file for _, file in self._files.values() if isinstance(file, TemplateFile)]
        if len(found) < len(self._files):
            advice = "Give a folder of files in the published BBNLI format (docs/suites.md)."
            raise SuiteError(f"{self.folder}: holds quads, but this command needs templates with two groups. {advice}")
        return found

    def items(self, subtopic: Subtopic) -> SubtopicItems:
        if subtopic not in self._expanded:
            (_, file), pairing = self._files[subtopic], self.pairing
            items = expand_quads(file, pairing) if isinstance(file, QuadFile) else expand_items(file, pairing)
            self._expanded[subtopic] = items
        return self._expanded[subtopic]

    @cached_property
    def _files(self) -> dict[Subtopic, tuple[Path, SubtopicFile]]:
        files: dict[Subtopic, tuple[Path, SubtopicFile]] = {}
        paths: dict[str, Path] = {}
        for path in [path for folder in self.folders for path in _paths_below(folder)]:
            file = _read(path)
            domain, name = subtopic_name(file.domain), subtopic_name(file.name)
            aliases = () if path.stem.lower() == name else (path.stem.lower(),)
            subtopic = Subtopic(self.name, domain, name, aliases, tuple(file.annotations))
            twin = paths.setdefault(subtopic.path, path)
            if twin != path:
                fault = f"is named {file.name!r} in domain {file.domain!r}, and so is {twin}"
                raise SuiteError(f"{path}: {fault}. Rename one: results and limits are kept by name.")
            files[subtopic] = (path, file)
        return dict(sorted(files.items()))


class BbnliFirst(Bbnli):
    """Benchmark 1, for baselines from benchmark 1. In results and limits, this suite is called `bbnli`, too."""

    def __init__(self, folder: Path | None = None, pairing: Pairing | None = None) -> None:
        super().__init__(folder or FIRST_DATA, pairing)


def _paths_below(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise OptionError(f"--bbnli-data={folder}: there is no such folder.")
    # Not with glob: it skips folders that it may not list, so their subtopics would be missing without an error.
    domains = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    paths = sorted(path for domain in domains for path in domain.iterdir() if path.name.endswith(".json"))
    if not paths:
        advice = "Name the folder that holds gender/, race/ and religion/."
        raise OptionError(f"--bbnli-data={folder}: the folder holds no subtopic file (*/*.json).\n{advice}")
    return paths


def _read(path: Path) -> SubtopicFile:
    data = read_object(path, "the keys of a subtopic (docs/suites.md).")
    return read_quad_file(path, data) if data.get("format") == FORMAT else read_template_file(path, data)
