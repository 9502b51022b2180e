"""Files of a checkpoint that change after they were hashed: nothing is kept under the fingerprint of other weights."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.find import find_model
from bbnli_audit.models.inference.store import PredictionStore
from bbnli_audit.models.inference.stored import StoredPredictor
from tests.tiny_checkpoint import save_checkpoint

WEIGHTS = "model.safetensors"
TEXTS = [TextPair("many zorbs walk past a workshop .", f"the {word} is busy .") for word in ("moon", "workshop")]
CHANGED = "files of the checkpoint changed while it was in use.*\nNothing .* was kept"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("two")
    return save_checkpoint(folder / "a"), save_checkpoint(folder / "b", seed=1)


def put_instead(folder: Path, other: Path) -> None:
    """Replace the file, as a training job does."""
    shutil.copy2(other / WEIGHTS, folder / "new")
    (folder / "new").replace(folder / WEIGHTS)


def write_over(folder: Path, other: Path) -> None:
    """Write into the file. Weights in float32 are not copied when they are loaded, so this reaches a loaded model."""
    with (folder / WEIGHTS).open("r+b") as file:
        file.write((other / WEIGHTS).read_bytes())


@pytest.mark.parametrize("change", [put_instead, write_over])
@pytest.mark.parametrize("is_loaded", [False, True], ids=["before loading", "after loading"])
def test_what_other_weights_answer_is_not_kept(
    two: tuple[Path, Path], tmp_path: Path, change: Callable[[Path, Path], None], is_loaded: bool
) -> None:
    folder = Path(shutil.copytree(two[0], tmp_path / "model"))
    source = find_model(str(folder))
    right = StoredPredictor(source, PredictionStore(None)).predict(TEXTS).probabilities.tolist()
    predictor = StoredPredictor(source := find_model(str(folder)), PredictionStore(tmp_path / "store.sqlite"))
    if is_loaded:
        predictor.predict(TEXTS[:1])
    change(folder, two[1])
    with pytest.raises(ModelError, match=CHANGED):
        predictor.predict(TEXTS)
    shutil.copytree(two[0], folder, dirs_exist_ok=True)
    again = StoredPredictor(find_model(str(folder)), PredictionStore(tmp_path / "store.sqlite"))
    assert again.info == source.info
    assert again.predict(TEXTS).probabilities.tolist() == right
    assert again.tally.n_predicted == (1 if is_loaded else 2)


def test_a_new_file_is_a_change_too(two: tuple[Path, Path], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(two[0], tmp_path / "model"))
    predictor = StoredPredictor(find_model(str(folder)), PredictionStore(None))
    (folder / "added_tokens.json").write_text('{"zorbling": 60}')
    with pytest.raises(ModelError, match=CHANGED):
        predictor.predict(TEXTS)


@pytest.mark.parametrize("place", ["../b/", "parts/", "/", "./"])
def test_weights_that_are_not_in_the_folder_itself_are_refused(
    two: tuple[Path, Path], tmp_path: Path, place: str
) -> None:
    folder = Path(shutil.copytree(two[0], tmp_path / "model"))
    name = "model.safetensors.index.json"
    (folder / name).write_text(json.dumps({"weight_map": {"x": WEIGHTS, "y": f"{place}{WEIGHTS}"}}))
    with pytest.raises(ModelError, match=f"its {name} names weights that are not files of the folder itself"):
        find_model(str(folder))


@pytest.mark.parametrize("content", ["[]", '{"weight_map": [1]}', '{"weight_map": {"x": 1}}', "{", "[" * 100_000])
def test_an_index_that_makes_no_sense_is_refused(two: tuple[Path, Path], tmp_path: Path, content: str) -> None:
    folder = Path(shutil.copytree(two[0], tmp_path / "model"))
    (folder / "model.safetensors.index.json").write_text(content)
    with pytest.raises(
        ModelError, match=r"its model.safetensors.index.json(:1: is not valid|: is nested too| names weights that are)"
    ):
        find_model(str(folder))
