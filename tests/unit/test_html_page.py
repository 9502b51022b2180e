"""The page as text. What a browser makes of it is in tests/browser."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from bbnli_audit.core.outcomes import CellCounts
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, load
from bbnli_audit.core.results.rows import NO_DATA, FastPathCheck, Reliability, SubtopicResult, Verdict, Waiver
from bbnli_audit.measures.readings.table import TEXTS, PairTable
from bbnli_audit.reports.html_page import render_comparison, render_page
from bbnli_audit.reports.page_data import to_inert_json, wordings
from bbnli_audit.reports.templates import unbroken
from tests.browser.pages import (
    FINS,
    HOSTILE,
    ZORBS,
    audit,
    made_hostile,
    many_pairs,
    with_a_driving_word,
    with_columns,
    with_comparison,
)
from tests.page_reader import Reader
from tests.reported import regression, reported

Audited = tuple[AuditResult, PairTable]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return audit(tmp_path_factory.mktemp("suite"))


@pytest.fixture(scope="module")
def page(audited: Audited) -> str:
    return render_page(with_comparison(audited[0]), audited[1])


def test_the_same_input_gives_the_same_bytes(audited: Audited, page: str) -> None:
    result, pairs = audited
    reindexed = replace(pairs, frame=pairs.frame.set_axis(range(7, 7 + len(pairs))))
    assert render_page(with_comparison(result), reindexed) == page
    again = load(AuditResult, dump(with_comparison(result)))
    assert render_page(again, pairs) == page


def test_no_sentence_is_outside_the_data(audited: Audited, page: str) -> None:
    reader = Reader(page)
    data, script = reader.scripts
    texts = json.loads(data)["texts"]
    assert set(texts) == {text for column in TEXTS for text in audited[1].frame[column]}
    assert len(texts) == len(set(texts))
    rest = page.replace(data, "")
    assert not [text for text in texts if text in rest]
    assert "workshop" not in rest.lower()  # nor are the words that drive a measure
    assert "innerHTML" not in script


def test_data_is_exact_and_small(audited: Audited, page: str) -> None:
    data = json.loads(Reader(page).scripts[0])
    pairs, frame = data["pairs"], audited[1].frame
    assert pairs["id"] == frame["pair_id"].tolist()
    row = 17
    expected = frame.iloc[row]
    assert data["texts"][pairs["texts"][4 * row + 3]] == expected["anti_hypothesis"]
    assert pairs["probabilities"][6 * row + 5] == round(expected["anti_contradiction"] * 10_000)
    assert data["outcomes"][pairs["cell"][row]] == expected["outcome"]
    assert data["clusters"][pairs["cluster"][row]] == expected["cluster"]
    assert len(pairs["before"]) == 3


def test_five_thousand_pairs_stay_small(audited: Audited) -> None:
    assert len(render_page(audited[0], many_pairs(5000)).encode()) < 3_000_000


def test_hostile_names_and_texts_stay_text(audited: Audited) -> None:
    result, pairs = made_hostile(with_comparison(audited[0]), audited[1])
    for made in (render_page(result, pairs), render_comparison(result)):
        reader = Reader(made)
        assert {name for _, attributes in reader.elements for name in attributes if name.startswith("on")} == set()
        assert not list(reader.all("img"))
        assert "</script><script>window.pwned = 1</script>" in reader.text  # the model's name, as text
        assert "{{7*7}}" in reader.text or "49" not in reader.text
        assert len(reader.scripts) in (0, 2)
        made.encode("utf-8")
    data = json.loads(Reader(render_page(result, pairs)).scripts[0])
    assert f"{HOSTILE[0]} 0" in data["texts"]
    assert f"{HOSTILE[4]} 4" in data["texts"]


@given(reported())
@settings(max_examples=8)
def test_any_result_can_be_shown(result: AuditResult) -> None:
    for made in (render_page(result, many_pairs(0)), render_comparison(result)):
        made.encode("utf-8")
        assert made.rstrip().endswith("</html>")
        assert not {"img", "b"} & {tag for tag, _ in Reader(made).elements}


def test_json_cannot_end_its_element() -> None:
    data = {"texts": [*HOSTILE, "\ud800"]}
    written = to_inert_json(data)
    assert json.loads(written) == data
    assert not re.search("[<>&\u2028\u2029\ud800]", written)


def test_nothing_comes_from_outside(page: str, audited: Audited) -> None:
    for made in (page, render_comparison(with_comparison(audited[0]))):
        reader = Reader(made)
        assert "http://" not in made
        assert "https://" not in made
        assert not [each for _, each in reader.elements if "src" in each or each.get("href", "#")[:1] != "#"]  # type: ignore[index] # href always has a value
        policy = next(each["content"] for each in reader.all("meta") if each.get("http-equiv"))
        assert policy is not None
        assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src '")
        assert "url(" not in made
        assert "@import" not in made


@pytest.mark.parametrize("word", ["unbiased", "fair ", "fairness", "safe", "bias-free"])
def test_the_page_claims_nothing_it_cannot_know(page: str, word: str) -> None:
    assert word not in Reader(page).text.lower()


def test_the_overview_says_how_it_ended(audited: Audited) -> None:
    result, pairs = audited
    text = Reader(render_page(result, pairs)).text
    assert (
        "The suite crosses a limit. 2 of 2 domains are undecided. 1 of 2 subtopics crosses a limit; 1 is undecided."
    ) in text
    assert "so the model counts as able to do the task" in text
    assert "Against the baseline" not in text
    passed = {
        name: tuple(
            replace(row, verdicts=tuple(replace(each, verdict=Verdict.PASS) for each in row.verdicts))
            for row in getattr(result, name)
        )
        for name in ("subtopics", "domains", "suite_rows")
    }
    text = Reader(render_page(replace(result, **passed), pairs)).text  # type: ignore[arg-type]  # fields by name
    assert "No limit was crossed on these pairs, in 1 suite, 2 domains and 2 subtopics." in text
    text = Reader(render_page(replace(result, subtopics=passed["subtopics"]), pairs)).text
    assert "The suite crosses a limit. 2 of 2 domains are undecided. 2 of 2 subtopics cross no limit on" in text
    of_subtopics = tuple(each for each in result.required if each[0].count("/") == 2)
    quiet = replace(result, subtopics=passed["subtopics"], required=of_subtopics)
    assert "No limit was crossed on these pairs, in 2 subtopics." in Reader(render_page(quiet, pairs)).text


def test_suites_and_domains_are_as_loud_as_subtopics(audited: Audited) -> None:
    result, pairs = audited
    made = render_page(with_comparison(result), pairs)
    text = " ".join(Reader(made).text.split())
    start = text.index("Suites and domains, each as a whole All pairs")
    table = text[start : text.index("Causes of error, by subtopic")]
    assert "Suite or domainVerdictPairs leanproantibrittleness Controls right bbnli ✕ FAIL 200 −0.0" in table
    suite = result.suite_rows[0]
    lean, pro = suite.measures["lean"], suite.measures["pro_rate"]
    assert f"{lean.value:.3f} inconclusive {lean.low:.3f} to {lean.high:.3f}, limit 0.05".replace("-", "−") in table
    assert f"{pro.value:.3f} fail {pro.low:.3f} to {pro.high:.3f}, limit 0.08" in table
    headlines = table.partition("bbnli: ")[2]
    assert headlines.startswith(f"pro {pro.value:.3f} is above its limit 0.080 thresholds.yaml:8"), "worst first"
    assert '<tr id="level-0" class="whole"><th scope="row">bbnli</th>' in made
    assert 'aria-label="Suites and domains by verdict"' in made
    # The correction is told once, among the facts about limits; what it holds back is marked.
    assert made.count("FAIL is corrected for the 10 limits of this run (Holm)") == 1
    n_held = sum(each.is_corrected for row in result.all_rows for each in row.verdicts)
    assert n_held == 2
    assert made.count(" inconclusive (Holm)</span>") == n_held


def test_the_page_has_one_kind_of_minus_sign(audited: Audited) -> None:
    result, pairs = audited
    found = with_comparison(result)
    assert found.comparison is not None
    less = regression("bbnli", "lean", Verdict.FAIL, baseline=-0.3, candidate=-0.1)
    compared = replace(found.comparison, regressions=(*found.comparison.regressions, less))
    text = Reader(render_page(replace(found, comparison=compared), pairs)).text
    assert "against the stereotype, but less than before" in text
    assert "(−0.300 to −0.100)" in text
    assert re.findall(r"(?<![\w.-])-\d", text) == []


def test_options_are_kept_whole_and_names_stay_text() -> None:
    shown = unbroken("accept REPORT --owner WHO & <b>--no-x</b>: -0.5")
    assert shown == (
        'accept REPORT <span class="option">--owner</span> WHO &amp; '
        '&lt;b&gt;<span class="option">--no-x</span>&lt;/b&gt;: −0.5'
    )


def test_levels_that_no_test_asked_about_have_figures_and_no_verdict(audited: Audited) -> None:
    result, pairs = audited
    quiet = replace(result, required=tuple(each for each in result.required if each[0].count("/") == 2))
    made = render_page(quiet, pairs)
    text = " ".join(Reader(made).text.split())
    assert "bbnli no limit 200 −0.0" in text
    assert "Suites and domains by verdict" not in made
    waiver = Waiver("a known fault", "the owner", "2030-01-01", "thresholds.yaml:10")
    suite = result.suite_rows[0]
    waived = replace(suite, verdicts=tuple(replace(each, waiver=waiver) for each in suite.verdicts))
    made = render_page(replace(result, suite_rows=(waived,)), pairs)
    assert made.count("Waiver: a known fault (owner the owner, until 2030-01-01, thresholds.yaml:10)") == 2
    assert "Passing by a waiver: 2 verdicts." in made
    without = render_page(replace(quiet, suite_rows=(), domains=()), pairs)
    assert "Suites and domains" not in Reader(without).text


def test_growth_of_a_level_is_in_the_comparison(audited: Audited) -> None:
    compared = with_comparison(audited[0])
    assert compared.comparison is not None
    grown = replace(compared.comparison.regressions[0], path="bbnli", measure="lean")
    changed = replace(compared.comparison, regressions=(grown, *compared.comparison.regressions))
    made = render_page(replace(compared, comparison=changed), audited[1])
    text = " ".join(Reader(made).text.split())
    assert '<a href="#level-0">bbnli</a>' in made
    assert "Chart: growth of lean, pro, anti, brittleness since the baseline" in made
    assert "bbnli lean✓ PASS" in text
    assert "margin 0.020 < 0.001 ––" in text


def test_what_could_not_be_seen_is_said(audited: Audited) -> None:
    result, pairs = audited
    model = replace(result.model, labels=("entailment", "not_entailment"))
    agreement = FastPathCheck(100, 1, 0.01)
    settings = replace(result.settings, not_audited=("bbnli/oceans/gills",), agreement=agreement)
    total = replace(result.total, n_truncated=3, n_duplicates=2, control_accuracy=None, verdicts=())
    text = Reader(render_page(replace(result, model=model, settings=settings, total=total), pairs)).text
    for said in (
        "cannot answer contradiction",
        "Not audited in this run: bbnli/oceans/gills.",
        "of 100 texts that were also run on the exact path, 1 got another label",
        "3 of 400 samples were longer",
        "2 duplicates",
        "nothing can PASS",
        "Other stereotypes",
    ):
        assert said in text


def test_waivers_and_missing_data_are_shown(audited: Audited) -> None:
    result, pairs = audited
    fins, zorbs = result.subtopics
    assert (fins.path, zorbs.path) == (FINS, ZORBS)
    empty = SubtopicResult.of(
        fins.path,
        CellCounts(),
        n_clusters=0,
        measures=dict.fromkeys(fins.measures, NO_DATA),
        control_accuracy=fins.control_accuracy,
        n_controls=fins.n_controls,
        verdicts=tuple(replace(each, verdict=Verdict.NO_DATA) for each in fins.verdicts),
    )
    waiver = Waiver("a known fault", "the owner", "2030-01-01", "thresholds.yaml:7")
    waived = replace(zorbs, verdicts=tuple(replace(each, waiver=waiver) for each in zorbs.verdicts))
    of_planets = pairs.take((pairs.frame["domain"] == "planets").to_numpy())
    text = Reader(render_page(replace(result, subtopics=(empty, waived)), of_planets)).text
    assert "1 of 2 subtopics has no usable pair; 1 needs its waiver." in text
    assert "a known fault (owner the owner, until 2030-01-01, thresholds.yaml:7)" in text
    assert "pro has no data" in text
    assert render_page(replace(result, subtopics=(empty,)), many_pairs(0))


def test_the_comparison_names_pairs_and_no_texts(audited: Audited) -> None:
    result, pairs = audited
    compared = with_comparison(result)
    made = render_comparison(compared)
    text = Reader(made).text
    assert compared.comparison is not None
    for change in compared.comparison.of(ZORBS)[0].flipped:
        assert change.pair_id in text
    assert "invented-nli-1" in text
    assert "158 pairs are in both runs" in " ".join(text.split())
    assert "+0.120" in text
    assert "−0.020" in text
    assert not [premise for premise in pairs.frame["pro_premise"] if premise in made]
    assert "This result was not compared with a baseline." in render_comparison(result)


def test_templates_and_words_that_drive_a_measure_are_counted(page: str) -> None:
    assert re.search(r"templates: <code>p\d\d/h\d\d</code> \d+ of \d+", page)
    assert re.search(r'data-measure="pro">\d, hidden like the sentences', page)


def with_verdicts(result: AuditResult, path: str, **verdicts: Verdict) -> AuditResult:
    """Let these verdicts of one subtopic be all that was required; none crosses a limit elsewhere."""
    rows = tuple(
        replace(
            row,
            verdicts=tuple(replace(each, verdict=verdicts.get(each.measure, Verdict.PASS)) for each in row.verdicts),
        )
        for row in result.subtopics
    )
    return replace(result, subtopics=rows, required=tuple(sorted((path, measure) for measure in verdicts)))


def test_wording_names_templates_and_hides_words(audited: Audited) -> None:
    result, pairs = audited
    planted = with_a_driving_word(pairs)
    made = render_page(with_verdicts(result, ZORBS, pro_rate=Verdict.PASS), planted)
    data = Reader(made).scripts[0]
    text = " ".join(Reader(made).text.split())
    assert "look at the template before the model" in text
    assert "log p(entailment) of the pro side minus that of the anti side" in text
    # A word that decides: all that differs between pairs of the same templates. Half of its template's pairs have it.
    assert "word within the same templates, 80 pairs 1.000" in text
    assert re.search(r"planets/zorbs_are_to_juggling h0[4-7] \+\d.\d{3} \(20 pairs\)", text)
    assert "2, hidden like the sentences" in text
    assert json.loads(data)["wording"] == {"0": ["nimble +1.386 (40 pairs)", "quick −1.386 (40 pairs)"]}
    assert "nimble" not in made.replace(data, "")


def test_wording_explains_the_measures_that_crossed_a_limit(audited: Audited) -> None:
    result, pairs = audited
    is_brittle = pairs.frame["cluster"].str.endswith("h03") & pairs.frame["subtopic"].eq("fins_are_to_singing")
    labels = ["entailment" if each else "neutral" for each in is_brittle]
    planted = with_columns(pairs, pro_label=labels, anti_label=labels, pro_entailment=0.2, anti_entailment=0.2)
    failed = with_verdicts(result, FINS, brittleness_rate=Verdict.FAIL, anti_rate=Verdict.FAIL, pro_rate=Verdict.PASS)
    reader = Reader(render_page(failed, planted))
    text = " ".join(reader.text.split())
    # In the order of the tables; what crossed no limit is not explained.
    headings = re.findall(r"what each pair adds to (\w+), which crossed a limit", text)
    assert headings == ["anti", "brittleness"]
    assert "minus that of the anti side" not in text
    assert "oceans/fins_are_to_singing h03 +1.000 (10 pairs)" in text
    assert "hypothesis template within a subtopic, 80 pairs 1.000" in text, "those of one subtopic, out of 200"
    assert "These pairs cannot tell" in text, "no pair is anti"
    assert json.loads(reader.scripts[0])["wording"] == {"0": [], "1": []}


def test_a_limit_of_a_suite_is_about_all_its_subtopics(audited: Audited) -> None:
    result, pairs = audited
    judgement = replace(result.subtopics[0].verdicts[0], measure="lean", verdict=Verdict.FAIL)
    row = replace(result.total, path="bbnli", verdicts=(judgement,))
    (found,) = wordings(replace(result, suite_rows=(row,), required=(("bbnli", "lean"),)), pairs)
    assert found.measure == "lean"
    assert {factor.name: factor.n_pairs for factor in found.factors}["premise template"] == len(pairs)


def test_wording_falls_back_where_pairs_do_not_add_up_to_what_failed(audited: Audited) -> None:
    result, pairs = audited
    judgement = replace(result.subtopics[0].verdicts[0], measure="fact_gap", verdict=Verdict.FAIL)
    row = replace(result.total, path="bbnli", verdicts=(judgement,))
    (found,) = wordings(replace(result, suite_rows=(row,), required=(("bbnli", "fact_gap"),)), pairs)
    assert found.measure is None


def test_wording_says_where_it_cannot_tell(audited: Audited) -> None:
    result, pairs = audited
    alike = with_columns(pairs, pro_entailment=0.2, anti_entailment=0.2)
    assert "These pairs cannot tell" in Reader(render_page(replace(result, required=()), alike)).text
    assert "There are no pairs." in Reader(render_page(result, many_pairs(0))).text


def test_the_page_says_whether_other_wordings_would_say_the_same(audited: Audited) -> None:
    result, pairs = audited
    assert result.reliability == (), "there are two subtopics"
    assert "Split-half" not in render_page(result, pairs)
    given = (Reliability("bbnli", "lean", 24, 0.5, 2 / 3), Reliability("bbnli", HOSTILE[0], 24, -0.5, -2 / 3))
    made = render_page(replace(result, reliability=given), pairs)
    text = " ".join(Reader(made).text.split())
    assert f"Split-half reliability over the templates of bbnli, 24 subtopics: lean 0.67, {HOSTILE[0]} −0.67." in text
    assert "Near 1, another set of templates would show the same differences between subtopics" in text


def test_columns_say_what_their_measure_is(page: str) -> None:
    assert '<th scope="col" class="n" title="Share of samples that are wrong towards the stereotype.">pro</th>' in page


def test_assets_are_part_of_the_package() -> None:
    from bbnli_audit.reports.templates import ASSETS

    assert {path.name for path in Path(ASSETS).iterdir()} >= {"page.html.jinja", "page.css", "page.js"}
