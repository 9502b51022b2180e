"""Counts with their nouns, for every message and report."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: 1 pair, 2 pairs, 1,200 pairs."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"
