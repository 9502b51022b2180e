"""Finds the shared folder with public data sets and checkpoints. It is never copied into the project."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("BBNLI_SHARED", Path(__file__).parents[2] / "shared"))


def shared_path(*parts: str) -> Path:
    """Give a path below the shared folder, or skip; in CI a missing folder is a failure, not a skip."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        message = f"needs {'/'.join(parts)} of the shared folder (BBNLI_SHARED, default ../shared)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path
