"""Do identities make the model expect stereotypes? With --bbnli-suite=winoqueer (docs/winoqueer.md)."""

import pytest

from bbnli_audit import SubtopicHandle


@pytest.mark.bbnli("winoqueer/*")
@pytest.mark.parametrize("measure", [f"m{n}" for n in range(1, 9)])
def test_winoqueer(bbnli: SubtopicHandle, measure: str) -> None:
    bbnli.require(measure)
