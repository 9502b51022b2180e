"""Step 3 of the workbench: whole words for masks, from a real (tiny, random) masked language model."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.workbench.extend.fill import (
    Filler,
    Journal,
    count,
    fill,
    find_fault,
    find_masked_model,
    is_group,
    whole_words,
)
from bbnli_audit.workbench.extend.table import Sample, Word
from tests.tiny_checkpoint import save_checkpoint
from tests.tiny_language_model import save_lm

pytestmark = pytest.mark.slow

GROUPS = {"planets/zorbs": ("Zorbs", "Quints")}
TEXTS = ["Most Zorbs [MASK] better than Quints.", "It is usual for Quints to be [MASK] jugglers.", "[MASK] moon."]


def sample(masked: str, premise: str = "A workshop is busy.") -> Sample:
    return Sample("planets", "zorbs", "s", "p00/h00", "verb", "pro", premise, masked, masked)


@pytest.fixture(scope="module", params=["bert", "roberta"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_lm(tmp_path_factory.mktemp("lm"), request.param)


def filler(folder: Path, tmp_path: Path) -> Filler:
    return Filler(find_masked_model(str(folder)), Journal(tmp_path / "journal.jsonl", {}), device="cpu")


def test_words_are_those_of_the_model_itself(folder: Path, tmp_path: Path) -> None:
    """Against transformers, one text at a time."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model, tokenizer = AutoModelForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    found = dict(filler(folder, tmp_path).propose(TEXTS, 5))
    words = whole_words(tokenizer.get_vocab(), tokenizer.all_special_ids)
    names = {number: word for word, number in words.items()}
    for text in TEXTS:
        encoded = tokenizer(text.replace("[MASK]", tokenizer.mask_token), return_tensors="pt")
        place = encoded["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.inference_mode():
            probabilities = model(**encoded).logits[0, place].softmax(-1)
        best = [int(number) for number in probabilities.argsort(descending=True) if int(number) in names][:5]
        assert [word for word, _ in found[text]] == [names[number] for number in best]
        assert [p for _, p in found[text]] == pytest.approx([float(probabilities[number]) for number in best], rel=1e-4)


def test_what_is_in_the_journal_is_not_computed_again(folder: Path, tmp_path: Path) -> None:
    whole = dict(filler(folder, tmp_path).propose(TEXTS, 5))
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert len(lines) == 1 + len(TEXTS)
    # A killed run: two texts are finished, the third line is cut off; one word is changed to see where it comes from.
    kept = json.loads(lines[1])
    kept[1][0][0] = "kept"
    (tmp_path / "journal.jsonl").write_text(f"{lines[0]}\n{json.dumps(kept)}\n{lines[2]}\n{lines[3][:20]}")
    again = dict(filler(folder, tmp_path).propose(TEXTS, 5))
    assert again.pop(kept[0])[0][0] == "kept"
    del whole[kept[0]]
    assert again == whole


def test_a_line_of_another_shape_is_computed_again(folder: Path, tmp_path: Path) -> None:
    whole = dict(filler(folder, tmp_path).propose(TEXTS, 5))
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('5\n["text", [1]]\n')
    assert dict(filler(folder, tmp_path).propose(TEXTS, 5)) == whole


def test_damaged_weights_propose_nothing(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    damaged = save_lm(tmp_path / "lm", "bert")
    weights = load_file(damaged / "model.safetensors")
    name = next(name for name in weights if name.endswith("word_embeddings.weight"))
    weights[name] = weights[name] * float("nan")
    save_file(weights, damaged / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="probabilities that are not finite"):
        list(filler(damaged, tmp_path).propose(TEXTS, 5))


def test_a_journal_of_other_work_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = Journal(path, {"top": 1})
    assert list(first.read()) == []
    first.add(["text", []])
    assert list(Journal(path, {"top": 1}).read()) == [["text", []]]
    assert list(Journal(path, {"top": 2}).read()) == []


def test_whole_words_are_no_pieces_punctuation_or_special_tokens() -> None:
    pieces = {"[MASK]": 0, "juggle": 1, "##ling": 2, ".": 3, "7": 4, "b": 5, "a": 6, "don't": 7, "Moon": 8}
    assert whole_words(pieces, {0}) == {"juggle": 1, "a": 6, "Moon": 8}
    bytes_ = {"<mask>": 0, "Ġjuggle": 1, "ling": 2, "Ġ.": 3, "Ġ": 4, "Ġmoon": 5}
    assert whole_words(bytes_, {0}) == {"juggle": 1, "moon": 5}
    assert whole_words({"▁moon": 1, "ling": 2}, ()) == {"moon": 1}


def test_a_letter_that_others_use_as_a_mark_is_only_a_letter() -> None:
    pieces = {"Ġ": 0, **{f"moon{'n' * n}": n for n in range(1, 30)}}
    assert len(whole_words(pieces, ())) == 29


def test_a_token_is_read_as_its_text() -> None:
    assert whole_words({"ĠpÃªche": 1}, (), {"ĠpÃªche": " pêche"}.__getitem__) == {"pêche": 1}


@pytest.mark.parametrize("word", ["zorbs", "Zorb", "quints", "quint"])
def test_a_groups_own_name_in_any_form(word: str) -> None:
    assert is_group(word, ("Zorbs", "blue-eyed Quints"))


@pytest.mark.parametrize("word", ["zorbing", "moons", "glass"])
def test_other_words_are_no_group(word: str) -> None:
    assert not is_group(word, ("Zorbs", "glas", "Quints"))


def test_the_groups_own_names_fill_no_mask_and_ranks_close_up() -> None:
    def propose(texts: Sequence[str], _: int) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        for text in texts:
            yield text, [("zorbs", 0.5), ("juggle", 0.2), ("quint", 0.1), ("walk", 0.05), ("sing", 0.01)]

    samples = [sample(TEXTS[0]), sample(TEXTS[0], "Another premise."), sample(TEXTS[1])]
    words = fill(samples, GROUPS, 2, propose)
    assert words == [
        Word("planets", "zorbs", text, rank, word, p)
        for text in TEXTS[:2]
        for rank, word, p in ((1, "juggle", 0.2), (2, "walk", 0.05))
    ]
    assert count(samples, words) == {"planets/zorbs": {"filled_hypotheses": 4, "filled_samples": 6}}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (sample("Zorbs juggle."), "must each have one [MASK]"),
        (sample("Zorbs [MASK] [MASK]."), "must each have one [MASK]"),
        (sample("Zorbs [MASK].")._replace(subtopic="fins"), "the suite has no subtopic planets/fins"),
    ],
)
def test_rows_that_were_changed_so_that_nothing_can_be_filled(row: Sample, message: str) -> None:
    assert message in (find_fault(row, GROUPS) or "")
    assert find_fault(sample("Zorbs [MASK]."), GROUPS) is None


def test_other_models_are_refused(tmp_path: Path) -> None:
    classifier = save_checkpoint(tmp_path / "nli")
    with pytest.raises(ModelError, match=r"is not a masked language model\. Its config\.json must say"):
        find_masked_model(str(classifier))
    with pytest.raises(ModelError, match="there is no such folder"):
        find_masked_model(str(tmp_path / "nowhere"))
