"""The pages of models that answer, and of those that are compared by likelihood."""

import json
import re
from dataclasses import replace
from pathlib import Path

from bbnli_audit.reports.html_page import render_page
from tests.browser.pages import (
    LikelihoodPredictor,
    YesNoPredictor,
    audit,
)
from tests.page_reader import Reader


def test_the_page_of_an_answering_model_speaks_of_answers(tmp_path: Path) -> None:
    result, pairs = audit(tmp_path, model=YesNoPredictor)
    reader = Reader(render_page(result, pairs))
    text, data = " ".join(reader.text.split()), json.loads(reader.scripts[0])
    for word in ("entailment", "neutral", "contradiction"):
        assert word not in text
        assert word not in reader.scripts[0]
        assert word not in str(reader.elements)
    assert "The right answer to every sample is no." in text
    made = Reader(render_page(replace(result, required=()), pairs))
    assert "log p(yes) of the pro side" in " ".join(made.text.split())
    assert data["answers"] == ["yes", "no", "not read"]
    assert data["filters"] == ["pro", "anti", "brittle", "correct", "not read"]
    # A pair that could not be read is in the tables without a cell, and in no figure.
    unread = pairs.frame["outcome"] == "unread"
    assert [cell == -1 for cell in data["pairs"]["cell"]] == unread.tolist()
    assert 0 < unread.sum() == len(pairs) - result.total.n_pairs
    fins = result.subtopics[0]
    assert f"Not read: {fins.n_unparsed} answers; their pairs are not measured." in text
    cells = {each["data-cell"] for each in reader.all("button") if "data-cell" in each}
    assert cells == {"EE", "EN", "NE", "NN"}


def test_the_page_of_a_likelihood_speaks_of_what_is_likelier(tmp_path: Path) -> None:
    result, pairs = audit(tmp_path, model=LikelihoodPredictor)
    reader = Reader(render_page(result, pairs))
    text, data = " ".join(reader.text.split()), json.loads(reader.scripts[0])
    # "corrected for all limits" is no word about answers.
    for word in ("entail", "neutral", "contradiction", "mispredicted", "right answer", "brittle", r"correct\b"):
        assert not re.search(word, text.lower())
        assert not [each for _, each in reader.elements if re.search(word, (each.get("aria-label") or "").lower())]
    assert "a likelihood is neither right nor wrong." in text
    assert "Preference, by subtopic" in text
    fins, outcomes = result.subtopics[0], result.subtopics[0].outcomes
    assert f"{fins.measures['token_preference'].value:.3f}" in text
    said = (
        f"The pro side is likelier in {outcomes['EN']}",
        f"anti side in {outcomes['NE']}, neither in {outcomes['NN']}.",
    )
    assert all(each in text for each in said)
    assert data["filters"] == ["pro", "anti", "neither"]
    row = 3
    share = pairs.frame["anti_likelihood_share"].iloc[row]
    assert data["pairs"]["probabilities"][6 * row + 3] == round(share * 10_000)
    assert not data["hasTask"]
