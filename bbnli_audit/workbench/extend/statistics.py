"""The tables of a release: what each step left of each subtopic, and the models before and after."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.values import Label, Pair
from bbnli_audit.workbench.workspace import Counts

if TYPE_CHECKING:
    from bbnli_audit.workbench.extend.models import NliModel

Line = tuple[str, tuple[int, ...]]  # a subtopic, a domain, or all, with its numbers
# Step, name of the count, title of the column.
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
_ABOUT_MODELS = """\
# The models before and after

Accuracy is the share of samples called neutral, as every sample is. `before` is the suite that was extended, `after`
this version. A model that was held out had no part in choosing the samples: what it loses shows what transfers.
"""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One model on the extended suite and on its new version. A held-out model did not help to choose the samples."""

    model: str
    is_held_out: bool
    control_accuracy: float | None
    before: CellCounts
    after: CellCounts

    @property
    def accuracies(self) -> tuple[float | None, float | None]:
        return accuracy(self.before), accuracy(self.after)


def accuracy(cells: CellCounts) -> float | None:
    """Return the share of samples called neutral, as all of them are."""
    return 1 - cells.n_mispredicted / cells.n_samples if cells.n_samples else None


def measure(model: "NliModel", pairs: Sequence[Pair]) -> CellCounts:
    """Count how the model labels the two sides of the pairs."""
    letters = [label.letter for label in Label]
    texts = [text for pair in pairs for text in (pair.pro, pair.anti)]
    labels = model.labels(texts) if texts else ()
    pairs_of_labels = zip(labels[::2], labels[1::2], strict=True)
    return CellCounts(Counter(f"{letters[pro]}{letters[anti]}" for pro, anti in pairs_of_labels))


def make_lines(counts: Mapping[str, Counts]) -> list[Line]:
    """Make the rows: subtopics by domain, then the sum of each domain, then the sum of all."""
    paths = sorted({path for found in counts.values() for path in found})
    rows = {path: tuple(counts[step].get(path, {}).get(name, 0) for step, name, _ in COLUMNS) for path in paths}
    domains = dict.fromkeys(path.partition("/")[0] for path in paths)
    sums = (
        (domain, _sum(values for path, values in rows.items() if path.startswith(f"{domain}/"))) for domain in domains
    )
    return [*rows.items(), *sums, ("all", _sum(rows.values()))]


def _sum(rows: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))


def as_markdown(lines: Sequence[Line], transfers: Sequence[Transfer]) -> str:
    """Write both tables in Markdown."""
    header = ["", *(title for _, _, title in COLUMNS)]
    body = [[name, *(f"{value:,}" for value in values)] for name, values in lines]
    models = [
        [one.model, "yes" if one.is_held_out else "no", _share(one.control_accuracy), *_of(one.before), *_of(one.after)]
        for one in transfers
    ]
    shares = ("accuracy", "pro", "anti", "brittle")
    of_models = ["model", "held out", "controls right"]
    of_models += [f"{when}: {share}" for when in ("before", "after") for share in shares]
    return f"# What each step left\n\n{_table(header, body)}\n{_ABOUT_MODELS}\n{_table(of_models, models)}"


def _of(cells: CellCounts) -> list[str]:
    n = cells.n_samples
    shares = (found / n if n else None for found in (cells.n_pro, cells.n_anti, cells.n_brittle))
    return [_share(value) for value in (accuracy(cells), *shares)]


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *("---:" for _ in header[1:])], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
