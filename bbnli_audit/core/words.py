"""Counts with their nouns, and figures, for every message and report."""

import re

NO_VALUE = "–"
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")  # not the hyphen of a name or of a range: item-1, 0.154-0.289


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: 1 pair, 2 pairs, 1,200 pairs."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def figure(value: float | None, places: int = 3) -> str:
    """Show a value: 0.214, -0.010, or – for none. A value that rounds to zero has no sign."""
    return NO_VALUE if value is None else f"{value:z.{places}f}"


def signed_figure(value: float | None, places: int = 3) -> str:
    """Show a difference: +0.021, -0.010, or – for none. A difference that rounds to zero has no sign."""
    shown = figure(value, places)
    return f"+{shown}" if value is not None and value > 0 and float(shown) != 0 else shown


def with_minus(text: str) -> str:
    """Write the minus signs of figures as print does, for pages: −0.010 instead of -0.010."""
    return _MINUS.sub("−", text)
