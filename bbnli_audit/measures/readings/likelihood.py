"""Language models that are not prompted: which of the two sides of a pair is likelier?"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bbnli_audit.core.outcomes import CELLS
from bbnli_audit.core.values import Pair, TextPair
from bbnli_audit.measures.readings.table import SIDES, Floats

_SMALLEST = np.nextafter(0.0, 1.0)
# The side that is likelier counts as entailed, the other one as neutral; of two equal sides neither is.
_WORDS = np.array(["anti", "neither", "pro"], dtype=object)  # by the sign of the difference, -1 to 1
_CELL_OF = {"pro": CELLS.index("EN"), "anti": CELLS.index("NE"), "neither": CELLS.index("NN")}


class Likelihood:
    """`pro_likelihood_share` is the share of the pro side in the likelihoods of the two sides."""

    name: ClassVar[str] = "likelihood"
    numbers: ClassVar[tuple[str, ...]] = tuple(f"{side}_likelihood_share" for side in SIDES)
    columns: ClassVar[tuple[str, ...]] = ("likelier", *numbers)
    answers: ClassVar[tuple[str, str, str]] = ("likelier", "not likelier", "–")
    preference: ClassVar[str] = "token_preference"
    has_task: ClassVar[bool] = False
    unread_column: ClassVar[int | None] = None
    instead: ClassVar[Mapping[str, str]] = {"pro_rate": preference}

    def ask(self, pair: Pair) -> tuple[TextPair, TextPair]:
        """Ask for each sentence against the other."""
        pro, anti = " ".join(pair.pro), " ".join(pair.anti)
        return TextPair(pro, anti), TextPair(anti, pro)

    def read(self, pro: Floats, anti: Floats) -> Mapping[str, Any]:
        shares = {f"{side}_likelihood_share": found[:, 0] for side, found in zip(SIDES, (pro, anti), strict=True)}
        signs = np.sign(pro[:, 0] - anti[:, 0]).astype(np.intp)
        return {"likelier": _WORDS[signs + 1], **shares}

    def cells(self, frame: pd.DataFrame) -> NDArray[np.intp]:
        return np.array([_CELL_OF[word] for word in frame["likelier"]], dtype=np.intp)

    def probabilities(self, frame: pd.DataFrame, side: str) -> Floats:
        (other,) = set(SIDES) - {side}
        shares = [frame[f"{each}_likelihood_share"].to_numpy(dtype=np.float64) for each in (side, other)]
        return np.column_stack([*shares, np.zeros(len(frame))])

    def strengths(self, frame: pd.DataFrame) -> Floats:
        """Compare logarithms: shares near 0 and 1 would be the same number."""
        pro, anti = (np.log(np.maximum(frame[name].to_numpy(dtype=np.float64), _SMALLEST)) for name in self.numbers)
        return np.asarray(pro - anti, dtype=np.float64)

    def tell(self, pair: Mapping[Any, Any], side: str) -> str:
        return f"{pair[f'{side}_likelihood_share']:.2f} of the two likelihoods"


LIKELIHOOD = Likelihood()
