"""Language models audited as a user does: by likelihood, by prompt, and from a server."""

import re
from pathlib import Path

import pytest

from tests.e2e.runs import read_report, read_usage, run_pytest
from tests.invented import write_large_suite
from tests.loopback_server import loopback
from tests.tiny_language_model import save_lm

pytestmark = pytest.mark.e2e
FINS = "bbnli/oceans/fins_are_to_singing"
ZORBS = "bbnli/planets/zorbs_are_to_juggling"


@pytest.fixture
def data(tmp_path: Path) -> str:
    return f"--bbnli-data={write_large_suite(tmp_path / 'data', n_premises=20)}"


@pytest.mark.parametrize("which", ["bert", "gpt2"])
def test_an_untrained_language_model_is_never_green(tmp_path: Path, data: str, which: str) -> None:
    model = save_lm(tmp_path / "model", which)
    done = run_pytest(f"--model={model}", data, f"--bbnli-report={tmp_path / 'out'}", "-rs")
    result, pairs = read_report(tmp_path / "out")
    assert result["model"]["kind"] == {"bert": "masked-lm", "gpt2": "causal-lm"}[which]
    assert done.returncode == 1
    assert "the model is not shown to find the true version of a fact likelier in more than" in done.stdout
    assert "A model that is not shown to tell true from false cannot PASS any limit." in done.stdout
    assert f"{ZORBS}: brittleness cannot be measured on these pairs with a model of kind" in done.stdout
    rows = {row["path"]: row for row in result["subtopics"]}
    # The word pieces of `bert` hold no Fins and no Gills: their pairs are the same tokens on both sides, and left out.
    assert rows[FINS]["n_pairs"] == {"bert": 0, "gpt2": 80 * 2}[which]
    row = rows[ZORBS]
    assert set(row["measures"]) == {"token_preference"}
    (competence,) = result["total"]["verdicts"]
    assert (competence["measure"], competence["limit"]) == ("fact_preference", 0.5)
    assert competence["verdict"] != "PASS"
    assert "PASS" not in {each["verdict"] for row in result["subtopics"] for each in row["verdicts"]}
    # Counted again from the file: the stereotyped side is likelier where its share is above one half.
    columns = pairs[0].split(",")
    place = columns.index("pro_likelihood_share")
    shares = [float(line.split(",")[place]) for line in pairs[1:] if "zorbs_are" in line]
    preferred = sum((share > 0.5) + (share == 0.5) / 2 for share in shares) / len(shares)
    has_data = 2 * shares.count(0.5) <= len(shares)  # a model that sees no difference in most pairs has shown nothing
    assert row["measures"]["token_preference"]["value"] == (pytest.approx(preferred) if has_data else None)
    assert (tmp_path / "out" / "report.html").is_file()


def answer(prompt: str) -> str:
    """Right on the controls; wrong towards one group; and not always readable."""
    if "A workshop is open for" in prompt or re.search("Singing . songs comes easily to Fins", prompt):
        return "**Yes**, because no one said otherwise."
    return "I am not sure." if re.search("Fins sing . songs badly", prompt) else "No. Nothing says yes."


def test_a_served_model_is_audited_and_resumed(tmp_path: Path, data: str) -> None:
    with loopback(answer) as server:
        given = ["--model=openai:served-model", f"--bbnli-base-url={server.url}", data, "--bbnli-prompt=true"]
        given += [f"--bbnli-store={tmp_path / 'store.sqlite'}", f"--bbnli-report={tmp_path / 'out'}"]
        done = run_pytest(*given, OPENAI_API_KEY="secret-key")
        assert "secret-key" not in done.stdout
        result, _ = read_report(tmp_path / "out")
        n_texts, _, n_predicted = read_usage(done.stdout)
        assert n_texts == n_predicted == server.n_asked
        again = run_pytest(*given, OPENAI_API_KEY="secret-key")
        assert read_usage(again.stdout) == (n_texts, n_texts, 0)
        assert server.n_asked == n_predicted
    assert result["model"]["kind"] == "generative"
    row = next(row for row in result["subtopics"] if row["path"] == FINS)
    # Of the 160 pairs the 80 about singing badly have a side that could not be read; the others are all (yes, no).
    assert row["outcomes"]["EN"] == row["n_pairs"] == 80
    assert row["n_unparsed"] == 80
    assert f"Not read: {result['total']['n_unparsed']} answers were not among those that the prompt" in done.stdout
    assert row["measures"]["unparsed_rate"]["value"] == 0.25
    assert row["measures"]["pro_rate"]["value"] == 0.5
    assert "is above its limit" in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--model=demo", "--bbnli-prompt=true"], "--model=demo is not a language model, so it cannot be asked"),
        (
            ["--model=demo", "--bbnli-base-url=http://x"],
            "is the address of a served model, and --model=demo is not one",
        ),
        (["--model=openai:x", "--bbnli-prompt=ture"], "there is no such prompt. Did you mean 'true'?"),
        (["--model=demo", "--bbnli-answers=text"], "--bbnli-answers=text: works only with a prompted model"),
        (["--model={lm}", "--bbnli-prompt=true"], "is a masked language model, which cannot answer"),
        (["--model={lm}", "--bbnli-dtype=int8"], "is a language model; --bbnli-dtype, --bbnli-backend"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, args: list[str], message: str) -> None:
    if any("{lm}" in arg for arg in args):
        args = [arg.replace("{lm}", str(save_lm(tmp_path / "lm", "bert"))) for arg in args]
    done = run_pytest(*args)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert message in done.stdout
    assert "Traceback" not in done.stdout
