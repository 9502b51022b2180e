"""Counts with their nouns, and figures, for every message and report."""

NO_VALUE = "–"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: 1 pair, 2 pairs, 1,200 pairs."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def figure(value: float | None, places: int = 3) -> str:
    """Show a value: 0.214, -0.010, or – for none. What rounds to zero has no sign."""
    return NO_VALUE if value is None else f"{value:z.{places}f}"


def signed_figure(value: float | None, places: int = 3) -> str:
    """Show a difference: +0.021, -0.010, or – for none. What rounds to zero has no sign."""
    shown = figure(value, places)
    return f"+{shown}" if value is not None and value > 0 and float(shown) != 0 else shown
