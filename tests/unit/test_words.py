"""What counts and figures look like in every message and report."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bbnli_audit
from bbnli_audit.core.results.rows import Measured
from bbnli_audit.core.words import figure, signed_figure
from bbnli_audit.reports.markdown import figures, signed
from bbnli_audit.reports.shown import interval


@pytest.mark.parametrize("value", [0.0, -0.0, 0.0004, -0.0004, -1e-12])
def test_what_rounds_to_zero_has_no_sign(value: float) -> None:
    measured = Measured(value, value, 0.0123, 80)
    assert (figure(value), signed_figure(value), signed(value)) == ("0.000",) * 3
    assert figure(value, 2) == "0.00"
    assert figures(measured) == f"0.000 ({interval(measured)})"
    assert interval(measured) == "0.000-0.012"


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [(0.2136, "0.214", "+0.214"), (-0.0101, "-0.010", "-0.010"), (0.0006, "0.001", "+0.001")],
)
def test_other_figures_have_three_decimals(value: float, plain: str, with_sign: str) -> None:
    assert (figure(value), signed_figure(value)) == (plain, with_sign)
    assert figure(value, 1) == f"{value:.1f}".replace("-0.0", "0.0")


def test_no_value_is_a_dash() -> None:
    assert (figure(None), signed_figure(None), signed(None)) == ("–",) * 3


@given(st.floats(-2, 2), st.integers(1, 4))
def test_a_figure_is_within_half_of_its_last_decimal(value: float, places: int) -> None:
    for shown in (figure(value, places), signed_figure(value, places)):
        assert abs(float(shown) - value) <= 0.5 * 10**-places + 1e-9
        assert not (float(shown) == 0 and shown[0] in "+-")


def test_reports_show_measures_through_these() -> None:
    """A measure may be negative, so nothing else may round to three decimals."""
    folder = Path(bbnli_audit.__file__).parent
    sources = [path for kind in ("*.py", "*.jinja") for path in folder.rglob(kind)]
    assert [path.name for path in sources if ".3f" in path.read_text(encoding="utf-8")] == []
