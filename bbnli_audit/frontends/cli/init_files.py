"""The files that `bbnli-audit init` writes: templates, filled in for the chosen suites."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.versions import VERSION
from bbnli_audit.suites.protocol import Suite, audits_of
from bbnli_audit.suites.registry import BUILT_IN, DEFAULT, NEEDS_DATA, open_suite, read_names

TEMPLATES = Path(__file__).parent / "templates"
THRESHOLDS, AUDITS = "thresholds.yaml", "audits/test_bias.py"
GITHUB, GITLAB = ".github/workflows/bias-audit.yml", ".gitlab-ci.bias-audit.yml"
TEMPLATE_OF = {THRESHOLDS: "thresholds.yaml", AUDITS: "test_bias.py.txt", GITHUB: "github.yml", GITLAB: "gitlab.yml"}
CI_FILES = {"github": [GITHUB], "gitlab": [GITLAB], "none": []}

_OF_SUITES = "# What the suites bring of their own, such as the measures of their papers.\nsuites:\n"


class Chosen:
    """The suites that --suite names, and what they add to the files."""

    def __init__(self, given: str | None, others: Iterable[Suite] = ()) -> None:
        found = {suite.name: suite for suite in others}
        try:
            self.names = read_names(given or DEFAULT, found)
        except OptionError as exc:
            raise OptionError(str(exc).replace("--bbnli-suite=", "--suite=")) from exc
        self._suites = [open_suite(name, others=found) for name in self.names]

    @property
    def options(self) -> list[str]:
        """The options that choose these suites, quoted for a shell."""
        named = [] if self.names == [DEFAULT] else [f"--bbnli-suite={','.join(self.names)}"]
        return [*named, '--bbnli-data="$DATA"'] if self.needs_data else named

    @property
    def needs_data(self) -> bool:
        return bool(set(self.names) & set(NEEDS_DATA))

    def fill(self, name: str) -> str:
        """Return the content of one file."""
        text = (TEMPLATES / TEMPLATE_OF[name]).read_text(encoding="utf-8")
        options = "".join(f" {each}" for each in self.options)
        text = text.replace("@VERSION@", VERSION).replace(" @OPTIONS@", options)
        text = text.replace(" @VERIFIED@", options.replace("--bbnli-", "--"))
        marked = [line for line in text.splitlines(keepends=True) if line.strip() == "# @DATA@"]
        for line in marked:
            told = "# What --bbnli-data takes: the data of a suite that has none of its own.\n"
            indent = line[: line.index("#")]
            text = text.replace(line, f"{indent}{told}{indent}DATA: path/to/data\n" if self.needs_data else "")
        return _place_limits(text, {suite.name: audits_of(suite) for suite in self._suites})


def _place_limits(text: str, audits: Mapping[str, Mapping[str, float]]) -> str:
    """Put the suites' own limits under the key `suites:`. The commented examples that follow belong to the same key."""
    lines = [line for name, limits in audits.items() if limits for line in _limit_lines(name, limits)]
    if not lines:
        return text.replace("# @SUITES@\n", "# suites:\n")
    before, mark, after = text.partition("# Other limits for a domain")
    return f"{before}{_OF_SUITES}{''.join(lines)}\n{mark}{after.replace(f'# @SUITES@{chr(10)}', '')}" if mark else text


def _limit_lines(name: str, limits: Mapping[str, float]) -> Sequence[str]:
    from bbnli_audit.measures.registry import check_audits, find_limited  # commands must start fast

    check_audits(name, limits)
    rows = [(find_limited(measure), value) for measure, value in limits.items()]
    told = [(f"{row.limit}: {value:.2f}", row.sentence.removeprefix(f"{name}: ").rstrip(".")) for row, value in rows]
    width = max(len(limit) for limit, _ in told)
    return [f"  {name}:\n    defaults:\n", *(f"      {limit:<{width}}  # {what}\n" for limit, what in told)]


def is_ours(names: str | None) -> bool:
    """Whether all names are suites of the package. If so, the project's conftest need not be loaded."""
    return all(name.strip() in (*BUILT_IN, "all", "coal") for name in (names or DEFAULT).split(","))
