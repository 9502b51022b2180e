"""What the page says of wording, suite by suite."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from bbnli_audit.measures.wording import Factor, Level

_WITHIN = {"subtopic": "over the suite", "word": "within the same templates"}


@dataclass(frozen=True, slots=True)
class FactorRow:
    """One factor. Words are sentences' words: they go into the JSON, only their number onto the page."""

    factor: "Factor"
    within: str
    levels: list["Mover"]
    words: list[str]


@dataclass(frozen=True, slots=True)
class Mover:
    """A template or subtopic and how far it moves the difference; `path` is its subtopic's, `template` may be empty."""

    path: str
    template: str
    difference: float
    n_pairs: int


@dataclass(frozen=True, slots=True)
class Wording:
    """How sensitive one suite is to wording, `number` being its place among the suites."""

    number: int
    suite: str
    rows: list[FactorRow]

    @property
    def words(self) -> list[str]:
        return [word for row in self.rows for word in row.words]


def wordings(pairs: "pd.DataFrame") -> dict[str, Wording]:
    """Give the wording sensitivity of each suite, by its name."""
    from bbnli_audit.measures.wording import wording_sensitivity

    suites = pairs.groupby("suite", sort=True)
    return {
        str(suite): Wording(number, str(suite), [_row(str(suite), factor) for factor in wording_sensitivity(rows)])
        for number, (suite, rows) in enumerate(suites)
    }


def _row(suite: str, factor: "Factor") -> FactorRow:
    # What chance explains as well, no template or word can be blamed for.
    levels = factor.levels if factor.information > 0 else ()
    is_word = factor.name == "word"
    return FactorRow(
        factor,
        _WITHIN.get(factor.name, "within a subtopic"),
        [] if is_word else [_mover(suite, level) for level in levels],
        [_word(level) for level in levels] if is_word else [],
    )


def _mover(suite: str, level: "Level") -> Mover:
    path, template = (level.subtopic, level.name) if level.subtopic else (level.name, "")
    return Mover(f"{suite}/{path}", template, level.difference, level.n_pairs)


def _word(level: "Level") -> str:
    difference = f"{level.difference:+.3f}".replace("-", "−")
    return f"{level.name} {difference} ({level.n_pairs:,} pairs)"
