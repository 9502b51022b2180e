"""The versions of bbnli-audit and of installed packages. Standard library only."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version

VERSION = "0.1.0"


@cache  # reading the metadata of a package takes milliseconds
def installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
