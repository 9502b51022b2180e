"""The kinds of models: who claims a name, kinds of other projects, and what is refused before anything is loaded."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bbnli_audit.core.errors import AuditError, ModelError, OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.results.rows import ModelInfo
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.find import KINDS, add_kinds, find_kind
from bbnli_audit.models.opening import plan_model
from bbnli_audit.models.options import ModelKind, ModelSettings
from bbnli_audit.models.protocol import ModelSource, Predictions


def make_causal(folder: Path) -> str:
    """Make what can be checked of a causal language model without loading it."""
    (folder / "config.json").write_text('{"architectures": ["ZorbForCausalLM"]}')
    for name in ("model.safetensors", "tokenizer.json"):
        (folder / name).touch()
    return str(folder)


class Zorb:
    info = ModelInfo("zorb:one", "f" * 64, "zorb", "zorb", "float64", ("entailment", "neutral", "contradiction"))

    def predict(self, texts: Sequence[TextPair]) -> Predictions:
        return Predictions(np.tile([0.0, 1.0, 0.0], (len(texts), 1)), np.zeros(len(texts), dtype=np.bool_))


def check_zorb(name: str, settings: ModelSettings) -> None:
    if settings.labels is not None:
        raise OptionError(f"{name} takes no labels")


ZORB = ModelKind(
    "zorb", "zorb:NAME", lambda name: name.startswith("zorb:"), check_zorb, lambda *_: ModelSource.of(Zorb())
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai:zorb-1", "served"),
        ("planted:ideal", "planted"),
        ("predictions:a.csv", "recorded"),
        ("package.module:function", "callable"),
        ("demo", "checkpoint"),
        ("owner/name", "checkpoint"),
        ("./folder", "checkpoint"),
        ("c:/models/nli", "checkpoint"),
    ],
)
def test_one_kind_claims_a_name(name: str, kind: str) -> None:
    assert find_kind(name).name == kind


def test_a_folder_may_have_a_colon_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("nli:2-small").mkdir()
    assert find_kind("nli:2-small").name == "checkpoint"


def test_a_name_that_nobody_claims_is_told_what_there_is() -> None:
    with pytest.raises(OptionError) as caught:
        find_kind("ftp:some-thing")
    assert str(caught.value) == (
        "--model=ftp:some-thing: this version knows no models of the kind 'ftp'.\n"
        "Give openai:NAME, planted:KIND, predictions:FILE, module:callable or a checkpoint (its folder, or its name on "
        "the hub)."
    )
    with add_kinds([ZORB]), pytest.raises(OptionError, match="Give zorb:NAME, openai:NAME, planted:KIND"):
        find_kind("ftp:some-thing")
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_kinds_of_other_projects_come_first_and_only_for_a_while() -> None:
    greedy = ModelKind("greedy", "ANYTHING", lambda _: True, check_zorb, ZORB.find)
    with add_kinds([ZORB]):
        with add_kinds([greedy]):
            assert find_kind("planted:ideal").name == find_kind("zorb:one").name == "greedy"
        assert [find_kind(name).name for name in ("planted:ideal", "zorb:one")] == ["planted", "zorb"]
        planned = plan_model("zorb:one", ModelOptions())
        with pytest.raises(OptionError, match="zorb:one takes no labels"):
            plan_model("zorb:one", ModelOptions(labels="entailment,neutral,contradiction"))
    assert find_kind("zorb:one").name == "callable"
    opened = planned.open([])  # a plan keeps its kind
    assert opened.predictor.predict([TextPair("a", "b")]).probabilities.tolist() == [[0.0, 1.0, 0.0]]
    assert opened.predictor.info == Zorb.info


@pytest.mark.parametrize(
    ("name", "given", "prompt"),
    [
        ("demo", None, None),
        ("causal", None, None),
        ("causal", "true", "true"),
        ("openai:zorb-1", None, "entailed"),
        ("openai:zorb-1", "true", "true"),
    ],
)
def test_a_model_is_asked_when_it_has_a_prompt_or_is_served(
    tmp_path: Path, name: str, given: str | None, prompt: str | None
) -> None:
    if name == "causal":
        name = make_causal(tmp_path)
    if name.startswith("openai:"):
        pytest.importorskip("openai")
    planned = plan_model(name, ModelOptions(prompt=given))
    assert planned.is_asked is (prompt is not None)
    assert (planned.prompt and planned.prompt.name) == prompt


@pytest.mark.parametrize("name", ["planted:ideal", "json:dumps", "demo"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ModelOptions(base_url="http://here"), "--bbnli-base-url=http://here: is the address of a served model, and "),
        (ModelOptions(prompt="true"), "--bbnli-prompt=true: --model={} is not a language model, so it cannot be asked"),
        (
            ModelOptions(answers="text"),
            "--bbnli-answers=text: works only with a prompted model. Add --bbnli-prompt=NAME.",
        ),
        (ModelOptions(prompt="ture"), "--bbnli-prompt=ture: there is no such prompt. Did you mean 'true'?"),
        (ModelOptions(engine="rya"), "--bbnli-engine=rya: there is no such engine. Did you mean 'ray'?"),
        (ModelOptions(ray_address="here:1"), "--bbnli-ray-address=here:1: is used with --bbnli-engine=ray only."),
        (ModelOptions(max_disagreement="2"), "--bbnli-max-disagreement=2: expected a share between 0 and 1"),
        (ModelOptions(max_disagreement=0.1), "--bbnli-max-disagreement=0.1: there is nothing to check on the exact"),
    ],
)
def test_options_that_do_not_suit_a_model_are_refused(name: str, options: ModelOptions, message: str) -> None:
    with pytest.raises(AuditError) as caught:
        plan_model(name, options)
    assert str(caught.value).startswith(message.format(name))


@pytest.mark.parametrize("options", [ModelOptions(dtype="bf16"), ModelOptions(engine="ray")])
def test_ways_of_computing_are_for_classifiers(tmp_path: Path, options: ModelOptions) -> None:
    for name, what in (
        ("json:dumps", "is not a checkpoint;"),
        (make_causal(tmp_path), "is a language model;"),
    ):
        with pytest.raises(OptionError, match=f"--model={name}: {what}"):
            plan_model(name, options)


@pytest.mark.parametrize("name", ["./nowhere", "/no/where", "a/b/c"])
def test_a_path_without_a_folder_is_refused_at_start(name: str) -> None:
    with pytest.raises(ModelError, match=f"^--model={name}: there is no such folder"):
        plan_model(name, ModelOptions())
