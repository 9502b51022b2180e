"""Can the model do the task at all? If not, nothing below reads PASS."""

from bbnli_audit.frontends.pytest_plugin.handles import ModelHandle


def test_competence(bbnli_model: ModelHandle) -> None:
    bbnli_model.require_competence()
