"""How a language model is asked: with which prompt, where it is served, and how its answer is read."""

from dataclasses import dataclass
from pathlib import Path

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.models.language_model.prompts import DEFAULT_PROMPT, Prompt, find_prompt, read_prompts

SERVED = "openai:"
READINGS = ("text", "first-token")


@dataclass(frozen=True, slots=True)
class Asking:
    """What the options say of it. Without a prompt a language model is asked nothing: its likelihoods are compared."""

    prompt: Prompt | None = None
    base_url: str | None = None
    is_first_token: bool = False

    def check(self, name: str) -> None:
        """Refuse options that the model has no use for, or lacks.

        Raises:
            OptionError: naming the option.
        """
        is_served = name.startswith(SERVED)
        if self.base_url is not None and not is_served:
            raise OptionError(
                f"--bbnli-base-url={self.base_url}: is the address of a served model, and --model={name} is none. "
                f"Write --model={SERVED}NAME, or leave it out."
            )

    @property
    def of_server(self) -> Prompt:
        return self.prompt or find_prompt(DEFAULT_PROMPT)


NOT_ASKED = Asking()


def read_asking(
    *, prompt: str | None = None, prompts: Path | None = None, base_url: str | None = None, answers: str | None = None
) -> Asking:
    """Read --bbnli-prompt, --bbnli-prompts, --bbnli-base-url and --bbnli-answers.

    Raises:
        OptionError: for a value that cannot be.
    """
    own = {} if prompts is None else read_prompts(prompts)
    if prompt is None and prompts is not None:
        raise OptionError(f"--bbnli-prompts={prompts}: say which of them to use: --bbnli-prompt={next(iter(own))}")
    if answers is not None and answers not in READINGS:
        raise OptionError(f"--bbnli-answers={answers}: there is no such reading. {suggest(answers, READINGS)}")
    if answers is not None and prompt is None:
        raise OptionError(f"--bbnli-answers={answers}: is for a model that is asked. Add --bbnli-prompt=NAME.")
    found = None if prompt is None else find_prompt(prompt, own)
    return Asking(found, base_url, answers == "first-token")
