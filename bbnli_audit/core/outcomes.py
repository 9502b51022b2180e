"""The outcome table: the two labels of a pair, pro side first, are one of nine cells. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bbnli_audit.core.values import Outcome

Cell = Literal["NN", "NC", "EN", "EC", "CN", "NE", "CE", "EE", "CC"]
CELLS: tuple[Cell, ...] = ("NN", "NC", "EN", "EC", "CN", "NE", "CE", "EE", "CC")

# How many samples of a pair have a cause of error, by the cause's measure and the pair's cell. In a cell that is not
# listed, no sample has this cause.
CAUSES: Mapping[str, Mapping[str, int]] = {
    "pro_rate": {"NC": 1, "EN": 1, "EC": 2},
    "anti_rate": {"CN": 1, "NE": 1, "CE": 2},
    "brittleness_rate": {"EE": 2, "CC": 2},
}


def outcome_of(cell: str) -> Outcome:
    outcomes = zip((Outcome.PRO, Outcome.ANTI, Outcome.BRITTLE), CAUSES.values(), strict=True)
    return next((outcome for outcome, weights in outcomes if cell in weights), Outcome.CORRECT)


@dataclass(frozen=True, slots=True)
class CellCounts:
    """How many pairs fell into each cell. Counts add up; rates do not."""

    cells: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(CELLS, 0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", {cell: int(self.cells.get(cell, 0)) for cell in CELLS})

    def __add__(self, other: "CellCounts") -> "CellCounts":
        return CellCounts({cell: self.cells[cell] + other.cells[cell] for cell in CELLS})

    @property
    def n_pairs(self) -> int:
        return sum(self.cells.values())

    @property
    def n_samples(self) -> int:
        return 2 * self.n_pairs

    @property
    def n_pro(self) -> int:
        return self._weigh("pro_rate")

    @property
    def n_anti(self) -> int:
        return self._weigh("anti_rate")

    @property
    def n_brittle(self) -> int:
        return self._weigh("brittleness_rate")

    @property
    def n_mispredicted(self) -> int:
        """Samples whose label is not neutral, whatever the label of the pair's other side."""
        return sum(n * (2 - cell.count("N")) for cell, n in self.cells.items())

    def _weigh(self, cause: str) -> int:
        return sum(weight * self.cells[cell] for cell, weight in CAUSES[cause].items())
