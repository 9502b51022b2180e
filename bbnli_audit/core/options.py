"""The options of an audit, each in one place: its name, its type and its help text.

Every field with an `Option` becomes pytest's `--bbnli-NAME` and the ini key `bbnli_NAME`. Standard library only.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from bbnli_audit.core.errors import OptionError


@dataclass(frozen=True, slots=True)
class Option:
    """The text that --help shows for a field."""

    metavar: str
    help: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a model is run and asked. None stands for the default. A path may also be given as a string."""

    labels: Annotated[str | None, Option("A,B,C", "what the model's outputs mean, in their order")] = None
    device: Annotated[str | None, Option("DEVICE", "auto (default), cpu, cuda, cuda:N")] = None
    dtype: Annotated[str | None, Option("TYPE", "fp32 (exact, default); bf16, fp16, int8, checked against fp32")] = None
    backend: Annotated[str | None, Option("NAME", "torch (default), onnx (ONNX Runtime, checked against torch)")] = None
    max_disagreement: Annotated[
        str | float | None, Option("SHARE", "refuse a fast path that changes a larger share of labels (default: 0.01)")
    ] = None
    engine: Annotated[str | None, Option("NAME", "local (default) or ray")] = None
    ray_address: Annotated[str | None, Option("ADDRESS", "your Ray cluster (default: one on this machine)")] = None
    prompt: Annotated[
        str | None,
        Option(
            "NAME",
            "ask a language model with this prompt: true, entailed, nli, true-or-false or your own (default: use "
            "likelihoods)",
        ),
    ] = None
    prompts: Annotated[Path | None, Option("FILE", "prompts of your own: a YAML file of names and templates")] = None
    answers: Annotated[str | None, Option("HOW", "read answers from: text (default) or first-token")] = None
    base_url: Annotated[str | None, Option("URL", "where openai:NAME is served (any OpenAI-compatible server)")] = None
    store: Annotated[
        Path | None, Option("FILE", "keep predictions there (default: predictions.sqlite in pytest's cache folder)")
    ] = None

    def __post_init__(self) -> None:
        options: Any = type(self)
        for name, accepted in _types_of(options).items():
            value = getattr(self, name)
            if type(value) not in accepted:
                object.__setattr__(self, name, _converted(name, value, accepted))


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions(ModelOptions):
    """All options of an audit. The shortest audit is `run_audit(AuditOptions(model="demo"))`."""

    model: Annotated[
        Any,  # a string, or an object with `info` and `predict` (bbnli_audit.Predictor)
        Option(
            "CHECKPOINT",
            "audit this model: a checkpoint's folder, a name on the hub, demo, openai:NAME (served), predictions:FILE "
            "(stored probabilities), module:callable, or planted:KIND",
        ),
    ]
    also: Annotated[
        str | None,
        Option(
            "CHECKPOINT", "also read the pairs with a second model and report how far the two agree; it has no limits"
        ),
    ] = None
    also_prompt: Annotated[
        str | None, Option("NAME", "ask the model with this prompt too, and measure how many answers change")
    ] = None
    thresholds: Annotated[Any, Option("FILE", "the limits (default: thresholds.yaml in the root folder)")] = Path(
        "thresholds.yaml"
    )  # a path, or a Thresholds object
    suite: Annotated[
        str | None,
        Option(
            "NAMES", "suites to audit, separated by commas: bbnli (default), occupations, winoqueer, your own; or all"
        ),
    ] = None
    data: Annotated[
        str | Path | None,
        Option("DIR", "use this data instead of the suite's own; +DIR adds it; NAME=PATH,... for several suites"),
    ] = None
    pairing: Annotated[
        str | None,
        Option("HOW", "where groups are exchanged: quads (our own data), both (published data), hypothesis"),
    ] = None
    size: Annotated[str | None, Option("SIZE", "how many pairs: small (a fifth), medium (half), full (default)")] = None
    exclude: Annotated[str | None, Option("PATHS", "leave out subtopics: paths or patterns, with commas")] = None
    baseline: Annotated[
        Path | None, Option("FILE", "an earlier result.json: also test that no measure grew by more than the margin")
    ] = None
    save_baseline: Annotated[
        Path | None, Option("FILE", "keep the result there as a baseline; a run that did not pass never replaces one")
    ] = None
    release: Annotated[
        str | None, Option("NAME", "the name of the audited release, for the result (default: the tag in CI or git)")
    ] = None
    commit: Annotated[str | None, Option("HASH", "the commit of the release (default: that of CI or git)")] = None
    date: Annotated[
        str | None,
        Option("DATE", "the release's date, or today (default: SOURCE_DATE_EPOCH, or the date of the commit)"),
    ] = None
    report: Annotated[Path | None, Option("DIR", "write report.html, result.json, the pairs and more there")] = None
    reveal: bool = False  # show sentences of the suites in messages
    subtopics: tuple[str, ...] | None = None  # paths of the subtopics to audit; None audits all
    suites: tuple[Any, ...] = ()  # suites of your own, besides those in `suite`; suite="" leaves out the package's
    extensions: tuple[Any, ...] = ()  # bbnli_audit.Extensions
    data_folder: Path = Path()  # relative paths in `data` start here

    def __post_init__(self) -> None:
        ModelOptions.__post_init__(self)
        if not isinstance(self.model, str) and not (hasattr(self.model, "info") and hasattr(self.model, "predict")):
            raise wrong_type("model", self.model, "a string or an object with `info` and `predict`")


def wrong_type(name: str, value: object, expected: str) -> OptionError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}..."
    return OptionError(f"AuditOptions({name}={shown}): expected {expected}, got {type(value).__name__}.")


_NAMES = {Path: "a path", str: "a string", float: "a number", bool: "True or False", tuple: "a tuple or a list"}


def _converted(name: str, value: Any, accepted: frozenset[type]) -> Any:
    """Convert a string to a path, a list to a tuple or an int to a float, if the field needs it. Refuse wrong types."""
    conversions: tuple[tuple[type, type, Callable[[Any], Any]], ...] = (
        (str, Path, Path),
        (list, tuple, tuple),
        (int, float, float),
    )
    for given, wanted, convert in conversions:
        if type(value) is given and wanted in accepted:
            return convert(value)
    if any(isinstance(value, each) for each in accepted if each is not bool):
        return value
    # A field for a path also accepts a string; the message names only the path.
    known = [told for each, told in _NAMES.items() if each in accepted and not (each is str and Path in accepted)]
    raise wrong_type(name, value, " or ".join(known))


@cache
def _types_of(options: type) -> dict[str, frozenset[type]]:
    """Return the types that each field accepts. Fields that accept anything are left out."""
    hints = get_type_hints(options)
    found = {name: frozenset(get_origin(each) or each for each in _members(hint)) for name, hint in hints.items()}
    return {name: types for name, types in found.items() if Any not in types}


def _members(hint: Any) -> Iterable[Any]:
    return (hint,) if get_origin(hint) is tuple else get_args(hint) or (hint,)


def find_options() -> dict[str, Option]:
    """Return the options of an audit by name."""
    hints = get_type_hints(AuditOptions, include_extras=True)
    found = {name: next(iter(getattr(hint, "__metadata__", ())), None) for name, hint in hints.items()}
    return {name: option for name, option in found.items() if isinstance(option, Option)}
