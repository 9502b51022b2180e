"""All errors for users. Standard library only, so that an error can be raised even if every package is missing.

A message says what happened, shows the value at fault, and says what to do. It also says why the fault matters, unless
that is obvious.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

from bbnli_audit.core.printable import printable_lines

# Limits for `suggest`, since a user's file may hold any number of names, of any length: how many names a message lists,
# how many are compared with the wrong name, and how many characters of the wrong name are compared.
_MOST_NAMES, _MOST_COMPARED, _LONGEST_NAME = 100, 2000, 200


class _Told(Exception):
    """An error whose text is made safe to print, because it may contain names from outside."""

    def __str__(self) -> str:
        return printable_lines(super().__str__())


class AuditError(_Told):
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
    """A file of the workbench cannot be read or written, or does not fit its other files."""


class AugmentError(AuditError):
    """Training data, a lexicon or a list of occupations cannot be used as it is."""


class ModelError(AuditError):
    """A model cannot be found, loaded, trusted or run."""


class ServerAwayError(ModelError):
    """A server gave no usable answer, however often it was asked. It is not asked again in this run."""


class LabelOrderError(ModelError):
    """On the probe, the model is right far more often in another label order than in the order that it declares."""


class LimitExceeded(_Told, AssertionError):
    """A test of the audit fails: a limit is crossed, a measure grew too much, or a required verdict is not reached."""


@contextmanager
def telling_system_errors() -> Iterator[None]:
    """Turn an operating-system error about a file into our own error, if no code inside the block has done so."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as exc:
        place = f"{exc.filename}: " if exc.filename else ""
        raise AuditError(f"{place}cannot be used: {exc.strerror or exc}.") from exc
    except RuntimeError as exc:  # pathlib raises this for a link that leads to itself
        if not str(exc).startswith("Symlink loop"):
            raise
        raise AuditError(f"{exc}. Remove the link.") from exc
    except ValueError as exc:
        if "null byte" not in str(exc) and "null character" not in str(exc):
            raise
        raise AuditError("The name of a file has a null byte in it, which no name can have. Correct it.") from exc


@contextmanager
def hiding_frames(*, is_revealed: bool = False) -> Iterator[None]:
    """Hide where Ctrl-C struck: a full traceback could show sentences in its local variables."""
    try:
        yield
    except KeyboardInterrupt:
        if is_revealed:
            raise
        raise KeyboardInterrupt from None


def suggest(wrong: str, known: Iterable[str]) -> str:
    """Say which known name is nearest, or list the known names when none is near."""
    names = sorted(known)
    near = get_close_matches(wrong[:_LONGEST_NAME], names[:_MOST_COMPARED], n=1, cutoff=0.6)
    if near:
        return f"Did you mean {str(near[0])!r}?"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"Known: {', '.join(names[:_MOST_NAMES])}{more}." if names else "None is known."


def list_some(names: Sequence[str], most: int = 3) -> str:
    """List the first names, and say how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
