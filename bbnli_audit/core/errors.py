"""All errors for users. Standard library only, so that an error can be raised when all else is missing.

A message says what happened, with the value; why it matters if that is not obvious; and what to do.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class AuditError(Exception):
    """The audit cannot go on as asked. The text is for the user and is complete by itself."""


class OptionError(AuditError):
    """An option or an ini value is wrong."""


class ThresholdsError(AuditError):
    """thresholds.yaml cannot be read or says something impossible."""


class SuiteError(AuditError):
    """A suite's data is missing or malformed."""


class ResultError(AuditError):
    """An earlier result cannot be read, or cannot be compared with this one."""


class WorkbenchError(AuditError):
    """A file of the workbench cannot be read or written, or does not fit the others."""


class AugmentError(AuditError):
    """Training data, a lexicon or a list of occupations cannot be used as it is."""


class ModelError(AuditError):
    """A model cannot be found, loaded, trusted or run."""


class LabelOrderError(ModelError):
    """The model's outputs fit the items far better in another order than the one it declares."""


class LimitExceeded(AssertionError):
    """A test of the audit does not pass: a limit is crossed, or a verdict that was required could not be reached."""


def suggest(wrong: str, known: Iterable[str]) -> str:
    """Say which known name is nearest, or list the known names when none is near."""
    names = sorted(known)
    near = get_close_matches(wrong, names, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {str(near[0])!r}?"
    return f"Known: {', '.join(names)}." if names else "None is known."


def list_some(names: Sequence[str], most: int = 3) -> str:
    """List the first names, and say how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
