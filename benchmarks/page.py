"""What the pages of the benchmarks have in common: tables, figures to reach, and what machine it was."""

import argparse
import os
import platform
import warnings
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

_PACKAGES = ("torch", "transformers", "tokenizers", "sentence-transformers", "onnxruntime", "pytest", "pytest-xdist")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


class Figure(NamedTuple):
    """A figure to reach."""

    name: str
    must: float
    aim: float
    measured: float
    form: str
    is_upper: bool = False  # the measured value is to stay below

    @property
    def met(self) -> str:
        if self._reaches(self.aim):
            return "aim"
        return "must" if self._reaches(self.must) else "**no**"

    def _reaches(self, wanted: float) -> bool:
        return self.measured <= wanted if self.is_upper else self.measured >= wanted

    def row(self) -> list[str]:
        sign = "≤" if self.is_upper else "≥"
        wanted = [f"{sign} {self.form.format(value)}" for value in (self.must, self.aim)]
        return [self.name, *wanted, self.form.format(self.measured), self.met]


def figures_table(figures: Sequence[Figure]) -> str:
    return table(["figure", "must", "aim", "measured", "met"], [figure.row() for figure in figures])


def replace_section(page: Path, title: str, section: str) -> None:
    """Put a section in place of the one with the same title, or at the end. The others stay as they are."""
    head, *rest = f"\n{page.read_text(encoding='utf-8')}".split("\n## ")
    parts = {part.partition("\n")[0]: part.partition("\n")[2] for part in rest}
    parts[title] = f"\n{section.strip()}\n"
    whole = "\n## ".join([head.rstrip("\n") + "\n", *(f"{name}\n{text.rstrip()}\n" for name, text in parts.items())])
    page.write_text(whole.removeprefix("\n"), encoding="utf-8")


def put_section(page: Path | None, title: str, section: str) -> None:
    """Put a section into a page, or print it if there is no page."""
    if page is None:
        print(section)
    else:
        replace_section(page, title, section)


def write_simulations(title: str, make: Callable[[int, int], str], description: str | None) -> None:
    """Make a section of docs/simulations.md from the command line: print it, or put it into the page."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=description, formatter_class=form)
    parser.add_argument("--runs", type=int, default=300, help="simulated runs per cell")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="a page that has or gets the section; without it, print")
    arguments = parser.parse_args()
    put_section(arguments.output, title, make(arguments.runs, arguments.seed))


def describe_machine(load: float, packages: Sequence[str] = _PACKAGES) -> str:
    """Say what it was measured on, and nothing that names the machine itself."""
    versions = ", ".join(f"{name} {found}" for name in packages if (found := _version(name)))
    return (
        f"{date.today().isoformat()}. {_cpu()}, {os.cpu_count()} cores, {_instructions()}; "
        f"{platform.system()}, Python {platform.python_version()}, {versions}. "
        f"Load of the machine before the run: {load:.2f}.\n"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_info(name: str) -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "unknown")


def _cpu() -> str:
    return _cpu_info("model name")


def _instructions() -> str:
    flags = _cpu_info("flags").split()
    known = {"avx2": "AVX2", "avx512f": "AVX-512", "avx512_bf16": "AVX-512 bf16", "amx_tile": "AMX"}
    return ", ".join(told for flag, told in known.items() if flag in flags) or "no AVX2"


def silence() -> None:
    """Keep bars and advice of other packages out of the output."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # untyped there
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # untyped there
    warnings.simplefilter("ignore")
