"""Files of a checkpoint that change after they were hashed: nothing is kept under the fingerprint of other weights."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bbnli_audit.core.errors import ModelError
from bbnli_audit.core.values import TextPair
from bbnli_audit.models.checkpoint import ContentStamps, check_folder
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


def test_a_file_that_vanishes_is_a_change_even_if_it_is_not_there_to_begin_with(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    """A link that leads nowhere is listed like a file that is removed a moment later."""
    folder = Path(shutil.copytree(two[0], tmp_path / "model"))
    (folder / "gone.json").symlink_to(tmp_path / "nowhere")
    before = ContentStamps.of("model", folder)
    put_instead(folder, two[1])
    with pytest.raises(ModelError, match=CHANGED):
        before.check()


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


def test_an_index_of_the_base_of_an_adapter_is_checked_too(two: tuple[Path, Path], tmp_path: Path) -> None:
    base = Path(shutil.copytree(two[0], tmp_path / "base"))
    (base / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": f"../b/{WEIGHTS}"}}))
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": "../base", "task_type": "SEQ_CLS"})
    )
    (adapter / "adapter_model.safetensors").touch()
    with pytest.raises(ModelError, match="names weights that are not files of the folder itself"):
        check_folder(str(adapter))


@pytest.mark.parametrize(
    ("file", "key", "value"),
    [
        ("config.json", "transformers_weights", "parts/model.safetensors"),
        ("config.json", "transformers_weights", "../b/model.safetensors"),
        ("config.json", "transformers_weights", "weights.bin"),
        ("config.json", "transformers_weights", 1),
        ("tokenizer_config.json", "fast_tokenizer_files", ["tokenizer.json", "../b/tokenizer.1.0.0.json"]),
        ("tokenizer_config.json", "fast_tokenizer_files", ["/tokenizer.1.0.0.json"]),
    ],
)
def test_settings_that_name_files_elsewhere_are_refused(
    two: tuple[Path, Path], tmp_path: Path, file: str, key: str, value: object
) -> None:
    folder = Path(shutil.copytree(two[0], tmp_path / "model"))
    path = folder / file
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**settings, key: value}))
    with pytest.raises(ModelError, match=rf"its {file}: {key} is .*, which is not a file of the folder itself"):
        find_model(str(folder))


def test_weights_of_another_name_in_the_folder_are_part_of_the_fingerprint(
    two: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(two[0], tmp_path / "model"))
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "transformers_weights": "other.safetensors"}))
    shutil.copy(two[0] / WEIGHTS, folder / "other.safetensors")
    first = find_model(str(folder)).info.fingerprint
    shutil.copy(two[1] / WEIGHTS, folder / "other.safetensors")
    assert find_model(str(folder)).info.fingerprint != first


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_link_that_led_elsewhere_for_a_moment_is_a_change(
    two: tuple[Path, Path], tmp_path: Path, is_folder: bool
) -> None:
    folder = tmp_path / "model"
    if not is_folder:
        shutil.copytree(two[0], folder)
        (folder / WEIGHTS).unlink()
    link, places = (folder, two) if is_folder else (folder / WEIGHTS, [place / WEIGHTS for place in two])
    link.symlink_to(places[0])
    predictor = StoredPredictor(find_model(str(folder)), PredictionStore(None))
    for place in (places[1], places[0]):
        link.unlink()
        link.symlink_to(place)
    with pytest.raises(ModelError, match=CHANGED):
        predictor.predict(TEXTS)
