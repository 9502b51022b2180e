"""Can the model do the task at all? If not, nothing below reads PASS."""

from bbnli_audit import ModelHandle


def test_competence(bbnli_model: ModelHandle) -> None:
    bbnli_model.require_competence()
