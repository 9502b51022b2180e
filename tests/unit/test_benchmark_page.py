"""A benchmark that has one section of a page leaves the others alone."""

from pathlib import Path

from benchmarks.page import replace_section

PAGE = "# Title\n\nIntroduction.\n\n## First\n\nOne.\n\n### Part\n\nTwo.\n\n## Second\n\nThree.\n"


def test_a_section_is_replaced_where_it_stands(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    replace_section(page, "First", "New.\n")
    assert page.read_text() == "# Title\n\nIntroduction.\n\n## First\n\nNew.\n\n## Second\n\nThree.\n"


def test_a_new_section_comes_last_and_the_same_one_twice_changes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    replace_section(page, "Third", "Four.")
    assert page.read_text() == f"{PAGE}\n## Third\n\nFour.\n"
    replace_section(page, "Third", "Four.")
    assert page.read_text() == f"{PAGE}\n## Third\n\nFour.\n"
