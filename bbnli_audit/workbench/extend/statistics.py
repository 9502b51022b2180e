"""What each step left of each subtopic, as the papers' tables have it: a row a subtopic, then domains and the total."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bbnli_audit.core.results.audit import Counts as Cells
from bbnli_audit.workbench.extend.transfer import Transfer, accuracy
from bbnli_audit.workbench.extend.workspace import Counts

# Step, the name of the count, and what the column is called.
COLUMNS = (
    ("mask", "hypotheses", "hypothesis templates"),
    ("mask", "masked_templates", "masked templates"),
    ("expand", "masked_samples", "masked samples"),
    ("fill", "filled_samples", "filled samples"),
    ("filter", "kept_samples", "mispredicted"),
    ("filter", "kept_hypotheses", "hypotheses judged"),
    ("agree", "valid", "valid"),
    ("counterfactual", "valid_samples", "valid samples"),
    ("counterfactual", "pairs", "pairs"),
    ("counterfactual", "samples", "samples"),
)


_WHEN = ("before", "after")
_ABOUT_MODELS = """\
# The models before and after

Accuracy is the share of samples called neutral, as every sample is. `before` is the suite that was extended, `after`
this version. A model that was held out had no part in choosing the samples: what it loses shows what transfers.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table: a subtopic, a domain or all."""

    name: str
    values: tuple[int, ...]


def make_lines(counts: Mapping[str, Counts]) -> list[Line]:
    """Make the rows: subtopics by domain, then domains, then all. Sums are sums of the subtopics' rows."""
    paths = sorted({path for found in counts.values() for path in found})
    rows = {path: tuple(counts[step].get(path, {}).get(name, 0) for step, name, _ in COLUMNS) for path in paths}
    domains = dict.fromkeys(path.partition("/")[0] for path in paths)
    sums = [
        Line(domain, _sum(values for path, values in rows.items() if path.startswith(f"{domain}/")))
        for domain in domains
    ]
    return [*(Line(path, values) for path, values in rows.items()), *sums, Line("all", _sum(rows.values()))]


def _sum(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


def as_markdown(lines: Sequence[Line], transfers: Sequence[Transfer]) -> str:
    """Write both tables."""
    header = ["", *(title for _, _, title in COLUMNS)]
    body = [[line.name, *(f"{value:,}" for value in line.values)] for line in lines]
    models = [
        [one.model, "yes" if one.is_held_out else "no", _share(one.control_accuracy), *_of(one.before), *_of(one.after)]
        for one in transfers
    ]
    header_of_models = ["model", "held out", "controls right"]
    header_of_models += [f"{when}: {what}" for when in _WHEN for what in ("accuracy", "pro", "anti", "brittle")]
    return f"# What each step left\n\n{_table(header, body)}\n{_ABOUT_MODELS}\n{_table(header_of_models, models)}"


def _of(counts: Cells) -> list[str]:
    n = counts.n_samples
    shares = [found / n if n else None for found in (counts.n_pro, counts.n_anti, counts.n_brittle)]
    return [_share(value) for value in (accuracy(counts), *shares)]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *("---:" for _ in header[1:])], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
