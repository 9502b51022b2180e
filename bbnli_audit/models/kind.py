"""One kind of model that --model can name. Each kind has a file of its own; `find` holds the table."""

from collections.abc import Callable
from dataclasses import dataclass

from bbnli_audit.models.options import ModelSettings
from bbnli_audit.models.protocol import ModelSource


@dataclass(frozen=True, slots=True)
class ModelKind:
    """How a kind of model is recognized, checked and found."""

    name: str  # such as "planted"
    form: str  # how --model is written for it, such as "planted:KIND", for messages
    claims: Callable[[str], bool]  # says whether a value of --model names a model of this kind
    check: Callable[[str, ModelSettings], None]  # refuses at start-up what can be seen to be wrong without the model
    find: Callable[[str, ModelSettings], ModelSource]  # without loading the model
