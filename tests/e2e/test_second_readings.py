"""The same pairs read twice, as a user does it: by a likelihood and an NLI head, and under two prompts."""

import json
import re
from pathlib import Path

import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from bbnli_audit.core.values import Label, TextPair
from bbnli_audit.suites.bbnli import Bbnli
from bbnli_audit.suites.probe import probe_items
from tests.e2e.runs import read_usage, run_pytest
from tests.invented import write_large_suite, write_templates
from tests.loopback_server import Fault, loopback
from tests.tiny_checkpoint import WORDS, save_checkpoint
from tests.tiny_language_model import load_lm, save_lm

pytestmark = pytest.mark.e2e
FINS = "bbnli/oceans/fins_are_to_singing"


def entailment(folder: Path, texts: list[TextPair]) -> list[float]:
    """Ask a small NLI head in the plain way, one text after the other."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        return [float(model(**tokenizer(*text, return_tensors="pt")).logits.softmax(-1)[0, 0]) for text in texts]


def sign(one: float, other: float) -> int:
    return (one > other) - (one < other)


def test_a_masked_model_and_an_nli_head_are_compared(tmp_path: Path) -> None:
    lm, nli = save_lm(tmp_path / "lm", "bert"), save_checkpoint(tmp_path / "nli")
    # Of words that the small models know.
    premises = [f"On the red moon , {{{{GROUP1}}}} and {{{{GROUP2}}}} share a {word} workshop ." for word in WORDS[20:]]
    write_templates(tmp_path / "data", premise=premises)
    given = [f"--bbnli-data={tmp_path / 'data'}", f"--bbnli-store={tmp_path / 'store.sqlite'}"]
    there = run_pytest(f"--model={lm}", f"--bbnli-also={nli}", *given, f"--bbnli-report={tmp_path / 'there'}")
    back = run_pytest(f"--model={nli}", f"--bbnli-also={lm}", *given, f"--bbnli-report={tmp_path / 'back'}")
    n_pairs = 3 * len(premises)
    n_asked, n_known, n_new = read_usage(there.stdout)
    assert (n_asked - n_new, n_known) == (0, 0)
    assert n_asked > 2 * n_pairs, "facts are asked for too"
    n_texts, n_stored, n_predicted = read_usage(back.stdout)
    assert f"Predictions for --bbnli-also={nli}: {n_texts} texts, 0 stored" in there.stdout
    assert (n_stored, n_predicted) == (n_texts, 0)
    assert f"Predictions for --bbnli-also={lm}: {n_asked} texts, {n_asked} stored" in back.stdout

    result, reversed_result = (json.loads((tmp_path / name / "result.json").read_text()) for name in ("there", "back"))
    found, mirrored = result["second_model"], reversed_result["second_model"]
    assert found["measures"] == ["token_preference", "entailment_preference"] == mirrored["measures"][::-1]
    row, other = found["subtopics"][0], mirrored["subtopics"][0]
    assert {lean: row["leans"][lean[::-1]] for lean in row["leans"]} == other["leans"]
    for ours, theirs in (("first", "second"), ("second", "first"), *((key, key) for key in ("agreement", "kappa"))):
        assert row[ours] == other[theirs]

    # Counted again, from what the models say without an audit.
    suite = Bbnli(tmp_path / "data")
    pairs = suite.items(suite.subtopics()[0]).usable
    sentences = [TextPair(" ".join(pair.pro), " ".join(pair.anti)) for pair in pairs]
    likelier = load_lm(lm).predict(sentences).probabilities[:, 0].tolist()
    pro, anti = (entailment(nli, [getattr(pair, side) for pair in pairs]) for side in ("pro", "anti"))
    signs = [(sign(share, 0.5), sign(p, a)) for share, p, a in zip(likelier, pro, anti, strict=True)]
    assert row["n_pairs"] == len(pairs) == n_pairs
    assert row["agreement"]["value"] == pytest.approx(sum(one == two for one, two in signs) / n_pairs)
    assert row["kappa"] == pytest.approx(cohen_kappa_score(*zip(*signs, strict=True)))
    assert row["rank_correlation"] == pytest.approx(
        spearmanr(likelier, [p - a for p, a in zip(pro, anti, strict=True)]).statistic, abs=1e-6
    )
    measured = result["subtopics"][0]["measures"]["token_preference"]
    assert {**row["first"], "n": measured["n"]} == measured


def answer(prompt: str) -> str:
    """Right on the controls. What is said of singing depends on the question, and is not always readable."""
    is_strict = "entailed by the paragraph" in prompt
    workshop = re.search(r"Workshop number (\d+)", prompt)
    number = int(workshop[1]) if workshop else 0
    if "A workshop is open for" in prompt:
        return "Yes."
    songs = re.search(r"(\d) songs", prompt)
    if songs and is_strict and (number + int(songs[1])) % 2:
        return "I am not sure."
    is_easy = re.search("Singing . songs comes easily to Fins", prompt)
    return "Yes." if is_easy and (number < 2 or not is_strict) else "No."


def test_prompts_are_compared_and_held_to_their_limit(tmp_path: Path) -> None:
    data = f"--bbnli-data={write_large_suite(tmp_path / 'data', n_premises=20)}"
    with loopback(answer) as server:
        given = ["--model=openai:served-model", f"--bbnli-base-url={server.url}", data, "--bbnli-also-prompt=true"]
        done = run_pytest(*given, f"--bbnli-report={tmp_path / 'out'}", "-n2")
        assert max(server.asked.values()) == 1, "two workers share each pass"
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    row = next(row for row in result["subtopics"] if row["path"] == FINS)
    # Of 160 pairs, both sides of 80 are read under the second prompt only: they have changed. Of 40 others whose pro
    # side becomes yes, it is yes twice on 2 of 20 premises and changes on 18.
    assert row["measures"]["prompt_sensitivity"]["value"] == pytest.approx((160 + 36) / 320)
    assert row["measures"]["prompt_sensitivity"]["n"] == 320
    assert row["measures"]["unparsed_rate"]["value"] == 0.5
    assert {one["measure"] for one in row["verdicts"]} >= {"prompt_sensitivity", "unparsed_rate"}
    assert [FINS, "prompt_sensitivity"] in result["required"]
    second = result["second_prompt"]
    assert second["prompts"] == ["entailed", "true"]
    found = next(each for each in second["subtopics"] if each["path"] == FINS)
    assert (found["n_pairs"], found["n_changed"], found["n_unread"]) == (80, 160 + 36, 160)
    pro = found["differences"][0]
    assert (pro["measure"], pro["first"], pro["second"], pro["difference"]["value"]) == ("pro_rate", 0.025, 0.25, 0.225)
    assert pro["difference"]["low"] > 0
    lines = (
        f"{FINS}: unparsed 0.500 is above its limit 0.100",
        "  160 of 320 samples (80 pairs in 80 clusters), 95% interval",
        "  templates that drive it: p",
        "pro: not read   anti: not read",
        f"test_answers[{FINS}-unparsed]",
        f"test_answers[{FINS}-prompt_sensitivity]",
        f"{FINS}: prompt_sensitivity 0.613 is above its limit 0.100",
        "  196 of 320 samples",
        "pro: not read, then ",
        "Asked with entailed and then with true. Changed is the share of answers that differ",
    )
    for line in lines:
        assert line in done.stdout, line


def test_a_second_prompt_that_breaks_costs_only_its_own_tests(tmp_path: Path) -> None:
    data = f"--bbnli-data={write_large_suite(tmp_path / 'data', n_premises=4)}"

    def refuse_the_second(prompt: str) -> str | Fault:
        if "entailed by" not in prompt:
            return Fault(400, b'{"error": {"message": "this prompt is not for me"}}')
        is_entailed = "A workshop is open." in prompt or any(
            item.text.premise in prompt and item.text.hypothesis in prompt and item.expected is Label.ENTAILMENT
            for item in probe_items()
        )
        return "Yes." if is_entailed else "No."

    with loopback(refuse_the_second) as server:
        given = ["--model=openai:served-model", f"--bbnli-base-url={server.url}", data, "--bbnli-also-prompt=true"]
        done = run_pytest(*given, "-k", "singing and (pro or sensitivity)")
    assert "Not measured: --bbnli-also-prompt=true: the server at" in done.stdout
    assert "refuses the request (status 400)" in done.stdout
    assert "Predictions for --bbnli-also-prompt=true: 0 texts, 0 stored, 0 predicted." in done.stdout
    assert "1 failed" in done.stdout, done.stdout
