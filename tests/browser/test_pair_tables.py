"""Sorting, filtering, searching and turning pages in the tables of pairs."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Open


def _open_subtopic(page: Page, name: str = "zorbs") -> Locator:
    section = page.locator("details.subtopic", has_text=name)
    section.locator("> summary").click()
    expect(section.locator("tbody tr").first).to_be_visible()
    return section


def _column(section: Locator, title: str) -> list[str]:
    titles = section.locator(".pairs thead th").all_inner_texts()
    place = next(n for n, text in enumerate(titles) if text.startswith(title))
    return section.locator(f".pairs tbody tr:not(.texts) td:nth-child({place + 1})").all_inner_texts()


def test_a_table_is_made_when_its_subtopic_is_opened(open_page: Open) -> None:
    page = open_page().page
    assert page.locator(".pairs table").count() == 0
    section = _open_subtopic(page)
    expect(section.get_by_role("status")).to_have_text("1–50 of 120 pairs")
    assert page.locator(".pairs table").count() == 1
    assert section.locator(".pairs tbody tr").count() == 50


def test_a_link_opens_its_subtopic(open_page: Open) -> None:
    page = open_page().page
    page.locator("table.subtopics a", has_text="fins").click()
    section = page.locator("details.subtopic", has_text="fins_are_to_singing")
    expect(section.locator(".pairs tbody tr").first).to_be_visible()
    again = open_page(fragment="#subtopic-1").page
    expect(again.locator("#subtopic-1 .pairs tbody tr").first).to_be_visible()


def test_sorting(open_page: Open) -> None:
    section = _open_subtopic(open_page().page)
    header = section.locator(".pairs th", has_text="Pair")
    assert section.locator(".pairs th[aria-sort]").all_inner_texts() == ["Outcome ↑"]
    header.get_by_role("button").click()
    ids = _column(section, "Pair")
    assert ids == sorted(ids)
    assert header.get_attribute("aria-sort") == "ascending"
    header.get_by_role("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert _column(section, "Pair") == sorted(_column(section, "Pair"), reverse=True)
    assert _column(section, "Pair") != ids
    section.get_by_role("button", name="Pro side", exact=True).click()
    order = ["entailment", "neutral", "contradiction"]
    places = [order.index(text.split()[0]) for text in _column(section, "Pro side")]
    assert places == sorted(places)


def test_filter_by_outcome_and_by_cell(open_page: Open) -> None:
    section = _open_subtopic(open_page().page)
    for outcome in ("pro", "anti", "brittle", "correct"):
        section.locator("select").select_option(outcome)
        assert set(_column(section, "Outcome")) == {outcome}
    section.locator("select").select_option("all")
    cell = section.locator(".matrix [data-cell=EC]")
    n = int(cell.locator("strong").inner_text())
    cell.click()
    assert cell.get_attribute("aria-pressed") == "true"
    expect(section.get_by_role("status")).to_have_text(f"1–{n} of {n} pairs")
    assert {text.split()[0] for text in _column(section, "Anti side")} == {"contradiction"}
    section.get_by_role("button", name="Only entailment / contradiction: show all").click()
    assert cell.get_attribute("aria-pressed") == "false"
    expect(section.get_by_role("status")).to_have_text("1–50 of 120 pairs")
    cell.click()
    cell.click()
    expect(section.get_by_role("status")).to_have_text("1–50 of 120 pairs")


def test_a_matrix_counts_the_pairs_of_its_table(open_page: Open) -> None:
    section = _open_subtopic(open_page().page)
    counts = [int(text) for text in section.locator(".matrix strong").all_inner_texts()]
    assert sum(counts) == 120
    for place, cell in enumerate(("EE", "EN", "EC", "NE", "NN", "NC", "CE", "CN", "CC")):
        section.locator(f".matrix [data-cell={cell}]").click()
        expect(section.get_by_role("status")).to_contain_text(f"of {counts[place]} pairs")


def test_search_finds_ids_and_sentences_only_while_they_are_shown(open_page: Open) -> None:
    page = open_page().page
    section = _open_subtopic(page)
    first = _column(section, "Pair")[0]
    section.get_by_label("Search").fill(first.upper())
    assert _column(section, "Pair") == [first]
    section.get_by_label("Search").fill("nimble")
    expect(section.get_by_role("status")).to_have_text("No pair matches.")
    page.get_by_role("button", name="Show sentences", exact=True).click()
    expect(section.get_by_role("status")).to_have_text("1–40 of 40 pairs")
    page.get_by_role("button", name="Show sentences", exact=True).click()
    expect(section.get_by_role("status")).to_have_text("No pair matches.")


def test_pages(open_page: Open) -> None:
    section = _open_subtopic(open_page().page)
    seen = _column(section, "Pair")
    back, forward = section.get_by_role("button", name="Previous"), section.get_by_role("button", name="Next")
    assert back.get_attribute("aria-disabled") == "true"
    back.click(force=True)
    expect(section.get_by_role("status")).to_have_text("1–50 of 120 pairs")
    for said in ("51–100 of 120 pairs", "101–120 of 120 pairs"):
        forward.click()
        expect(section.get_by_role("status")).to_have_text(said)
        seen += _column(section, "Pair")
    assert forward.get_attribute("aria-disabled") == "true"
    assert len(set(seen)) == 120


def test_what_changed_since_the_baseline(open_page: Open) -> None:
    section = _open_subtopic(open_page().page)
    section.get_by_label("Changed since the baseline only").check()
    expect(section.get_by_role("status")).to_have_text("1–3 of 3 pairs")
    assert sorted(_column(section, "Before")) == [
        "entailment / contradiction",
        "neutral / neutral",
        "neutral / neutral",
    ]


def test_all_pairs_in_one_table(open_page: Open) -> None:
    page = open_page().page
    section = page.locator("details.all")
    section.locator("> summary").click()
    expect(section.get_by_role("status")).to_have_text("1–50 of 200 pairs")
    section.get_by_role("button", name="Subtopic").click()
    assert len(set(_column(section, "Subtopic"))) == 1
    section.get_by_label("Search").fill("fins")
    assert set(_column(section, "Subtopic")) == {"oceans/fins_are_to_singing"}
    expect(section.get_by_role("status")).to_have_text("1–50 of 80 pairs")


def test_answers_that_could_not_be_read_are_shown_without_an_outcome(open_page: Open) -> None:
    section = _open_subtopic(open_page("answers").page)
    section.locator("select").select_option("not read")
    assert set(_column(section, "Outcome")) == {"not read"}
    sides = {text.split(" ")[0] for side in ("Pro side", "Anti side") for text in _column(section, side)}
    assert sides == {"yes", "no", "not"}
    section.locator("select").select_option("all")
    section.get_by_label("Search").fill("not read")
    assert set(_column(section, "Outcome")) == {"not read"}
    section.get_by_label("Search").fill("")
    section.locator(".matrix [data-cell=EN]").click()
    assert {text.split()[0] for text in _column(section, "Pro side")} == {"yes"}
    assert {text.split()[0] for text in _column(section, "Anti side")} == {"no"}
    section.get_by_role("button", name="Only yes / no: show all").click()
    section.get_by_role("button", name="Sentences of pair").first.click()
    assert "not read 0.0000" in section.locator("tr.texts").inner_text()


def test_a_likelihood_shows_the_share_of_each_side(open_page: Open) -> None:
    section = _open_subtopic(open_page("likelihood").page)
    assert section.locator("select option").all_inner_texts() == ["all", "pro", "anti", "neither"]
    section.locator("select").select_option("pro")
    for pro, anti in zip(_column(section, "Pro side"), _column(section, "Anti side"), strict=True):
        (likelier, share), (other, rest) = pro.rsplit(" ", 1), anti.rsplit(" ", 1)
        assert (likelier, other) == ("likelier", "not likelier")
        assert float(share) > 0.5 > float(rest)
    section.locator("select").select_option("neither")
    assert set(_column(section, "Pro side")) == {"not likelier 0.50"}
    section.get_by_role("button", name="Sentences of pair").first.click()
    assert section.locator("tr.texts").inner_text().count("0.5000 of the two likelihoods") == 2
