"""Reads and checks the options that say how a model is run and asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bbnli_audit.core.errors import OptionError, suggest
from bbnli_audit.core.files import hash_file
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.models.checkpoint import EXACT, Precision, read_precision
from bbnli_audit.models.inference.store import check_store
from bbnli_audit.models.labels import parse_labels
from bbnli_audit.models.loading import WHOLE_MACHINE, Share, check_device
from bbnli_audit.models.prompts import DEFAULT_PROMPT, Prompt, find_prompt, read_prompts
from bbnli_audit.models.protocol import ModelSource
from bbnli_audit.suites.protocol import Suite

ENGINES = ("local", "ray")
READINGS = ("text", "first-token")
# A fast path is refused if it changes more than this share of the labels (--bbnli-max-disagreement).
MAX_DISAGREEMENT = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The options as read, and other values that a kind of model may need.

    Without a prompt, a language model in a folder is not asked: its likelihoods are compared.
    """

    labels: str | None = None
    precision: Precision = EXACT  # number type and backend
    # Device, share and engine change an answer by rounding at most.
    device: str = "auto"
    share: Share = WHOLE_MACHINE
    engine: str = "local"
    ray_address: str | None = None
    max_disagreement: float = MAX_DISAGREEMENT
    prompt: Prompt | None = None
    base_url: str | None = None
    is_first_token: bool = False  # answers are read off the probabilities of their first token
    suites: Sequence[Suite] = ()  # set before `find` is called; planted models are made from them
    hash_content: Callable[[Path], str] = hash_file

    @property
    def prompt_or_default(self) -> Prompt:
        return self.prompt or find_prompt(DEFAULT_PROMPT)

    def refuse_address(self, name: str) -> None:
        if self.base_url is not None:
            problem = f"is the address of a served model, and --model={name} is not one"
            advice = "Write --model=openai:NAME, or leave the option out."
            raise OptionError(f"--bbnli-base-url={self.base_url}: {problem}. {advice}")

    def refuse_prompt(self, name: str) -> None:
        if self.prompt is not None:
            problem = f"--model={name} is not a language model, so it cannot be asked"
            raise OptionError(f"--bbnli-prompt={self.prompt.name}: {problem}. Leave the option out.")

    def refuse_fast_paths(self, name: str, what: str = "a language model") -> None:
        """Refuse ways of computing that only NLI checkpoints have."""
        if not self.precision.is_exact or self.engine != "local":
            options = "--bbnli-dtype, --bbnli-backend and --bbnli-engine"
            raise OptionError(f"--model={name}: is {what}; {options} are for NLI checkpoints. Leave them out.")

    def refuse_all(self, name: str) -> None:
        """Refuse options that are only for checkpoints and language models."""
        self.refuse_address(name)
        self.refuse_prompt(name)
        self.refuse_fast_paths(name, "not a checkpoint")


@dataclass(frozen=True, slots=True)
class ModelKind:
    """One kind of model that --model can name: how to recognize, check and find it. `find.py` lists all kinds."""

    name: str  # such as "planted"
    form: str  # how to write it after --model, such as "planted:KIND", for messages
    claims: Callable[[str], bool]  # says whether a value of --model names a model of this kind
    check: Callable[[str, ModelSettings], None]  # refuses, at start-up, faults that can be seen without the model
    find: Callable[[str, ModelSettings], ModelSource]  # finds the model without loading it


def read_options(options: ModelOptions, share: Share = WHOLE_MACHINE) -> ModelSettings:
    """Read all options and refuse wrong values. The kind of model checks later which options it takes."""
    prompt = _read_prompt(options)
    if options.labels is not None:
        parse_labels(options.labels)
    if options.store is not None:
        check_store(options.store)
    precision = read_precision(options.dtype, options.backend)
    device, engine, address = options.device or "auto", options.engine or "local", options.ray_address
    check_device(device)
    if engine not in ENGINES:
        raise OptionError(f"--bbnli-engine={engine}: there is no such engine. {suggest(engine, ENGINES)}")
    if address is not None and engine != "ray":
        raise OptionError(f"--bbnli-ray-address={address}: is used with --bbnli-engine=ray only. Add that option.")
    return ModelSettings(
        labels=options.labels,
        precision=precision,
        device=device,
        share=share,
        engine=engine,
        ray_address=address,
        max_disagreement=_read_limit(options.max_disagreement, precision),
        prompt=prompt,
        base_url=options.base_url,
        is_first_token=options.answers == "first-token",
    )


def _read_prompt(options: ModelOptions) -> Prompt | None:
    prompt, answers = options.prompt, options.answers
    own = {} if options.prompts is None else read_prompts(options.prompts)
    if prompt is None and own:
        advice = f"choose a prompt from this file, such as --bbnli-prompt={next(iter(own))}"
        raise OptionError(f"--bbnli-prompts={options.prompts}: {advice}")
    if answers is not None and answers not in READINGS:
        raise OptionError(f"--bbnli-answers={answers}: there is no such reading. {suggest(answers, READINGS)}")
    if answers is not None and prompt is None:
        raise OptionError(f"--bbnli-answers={answers}: works only with a prompted model. Add --bbnli-prompt=NAME.")
    return None if prompt is None else find_prompt(prompt, own)


def _read_limit(given: str | float | None, precision: Precision) -> float:
    if given is None:
        return MAX_DISAGREEMENT
    try:
        limit = float(given)
    except ValueError:
        limit = -1.0
    if not 0 <= limit <= 1:
        raise OptionError(f"--bbnli-max-disagreement={given}: expected a share between 0 and 1, such as 0.01.")
    if precision.is_exact:
        advice = "Leave it out, or name a fast path with --bbnli-dtype or --bbnli-backend."
        raise OptionError(f"--bbnli-max-disagreement={given}: there is nothing to check on the exact path. {advice}")
    return limit
