"""Versions of installed packages. Standard library only."""

from importlib.metadata import PackageNotFoundError, version


def installed_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
