"""`bbnli-audit history`: from files alone, without a model. What a browser makes of the page is in tests/browser."""

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bbnli_audit.core.outcomes import outcome_of
from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.file import dump, write_result
from bbnli_audit.core.results.release import Release
from bbnli_audit.core.results.rows import Measured
from bbnli_audit.frontends.cli.main import main
from bbnli_audit.reports.history.comment import render_comment
from bbnli_audit.reports.history.files import FILES
from bbnli_audit.reports.history.flips import find_flips
from bbnli_audit.reports.history.page import render_history
from bbnli_audit.reports.history.plot import Scale, draw
from bbnli_audit.reports.history.releases import History, make_history
from bbnli_audit.reports.history.trends import Point, Trend, find_places
from tests.history_results import history, history_of_two_models, of_model, results
from tests.page_reader import Reader
from tests.reported import HOSTILE, TRACES, read, reported

pytestmark = pytest.mark.slow

ZORBS, FINS = "bbnli/planets/zorbs_are_to_juggling", "bbnli/oceans/fins_are_to_singing"
LABELS = [f"r{place}" for place in range(1, 9)]


def labels_of(made: History) -> list[list[str]]:
    return [[entry.label for entry in series.entries] for series in made.series]


def given_as(*paths: str, names: tuple[str | None, ...] = (), model: str = "m") -> list[tuple[Path, AuditResult]]:
    """The first result under other paths and names, without a date."""
    named = [*names, *[None] * (len(paths) - len(names))]
    return [
        (Path(path), of_model(results()[0], model, release=None if name is None else Release(name)))
        for path, name in zip(paths, named, strict=True)
    ]


# Names and order


def test_dates_decide_the_order_where_all_have_one() -> None:
    found = [(Path(f"{n}.json"), result) for n, result in enumerate(results())]
    assert labels_of(make_history(found[::-1])) == [LABELS]
    found[3] = (Path("3.json"), replace(results()[3], release=Release("r4")))
    made = make_history(found[::-1])
    assert labels_of(made) == [LABELS[::-1]]
    assert not made.is_dated


@pytest.mark.parametrize(
    ("paths", "labels"),
    [
        (("a/r1/result.json", "a/r2/result.json"), ["r1", "r2"]),
        (("a/r1/out/result.json", "a/r2/out/result.json"), ["r1", "r2"]),
        (("old.json", "bias-report/result.json"), ["old", "bias-report"]),
        (("/x/y/r1.json", "/x/y/r1.json"), ["r1", "r1 (2)"]),
        (("/x/y/result.json",), ["y"]),
        (("result.json",), ["result"]),
    ],
)
def test_a_result_without_a_release_is_named_by_its_path(paths: tuple[str, ...], labels: list[str]) -> None:
    assert labels_of(make_history(given_as(*paths))) == [labels]


def test_the_name_of_the_release_comes_first() -> None:
    assert labels_of(make_history(given_as("a.json", "b.json", "c.json", names=("v1", None, "v1")))) == [
        ["v1", "b", "v1 (2)"]
    ]


def test_no_two_results_have_one_name() -> None:
    found = given_as("a.json", "b.json", "c.json", names=("v1", "v1", "v1 (2)"))
    assert labels_of(make_history(found)) == [["v1", "v1 (2)", "v1 (2) (2)"]]


def test_results_of_one_name_are_releases_of_one_model() -> None:
    one, two = (
        [*given_as("a.json"), (Path("b.json"), of_model(results()[1], "m", release=None))],
        given_as("c.json", model="other"),
    )
    assert labels_of(make_history([*one, *two])) == [["a", "b"], ["c"]]
    assert labels_of(make_history([*two, *one])) == [["c"], ["a", "b"]]
    assert labels_of(make_history([one[0], *two, one[1]])) == [["c"], ["a", "b"]]  # the newest result is the last
    assert labels_of(make_history([one[0], *two])) == [["a", "c"]]
    assert labels_of(make_history([one[0], *two], is_separate=True)) == [["a"], ["c"]]


def test_the_same_model_audited_again_does_not_split_a_history() -> None:
    again = [*given_as("r1.json", model="r1"), *given_as("r2.json", "r3.json", model="r2")]
    assert labels_of(make_history(again)) == [["r1", "r2", "r3"]]
    assert labels_of(make_history(again, is_separate=True)) == [["r1"], ["r2", "r3"]]


# What is shown


def test_every_measure_of_every_place_is_drawn_with_all_its_figures() -> None:
    (series,) = history().series
    shown = {
        (trend.path, trend.measure, point.label): (point.measured, point.limit)
        for place in find_places(series)
        for trend in place.trends
        for point in trend.points
    }
    expected = {
        (row.path, name, entry.label): (measured, next((j.limit for j in row.verdicts if j.measure == name), None))
        for entry in series.entries
        for row in (*entry.result.suite_rows, *entry.result.domains, *entry.result.subtopics)
        for name, measured in row.measures.items()
    }
    assert shown == expected
    assert len(expected) == 8 * 5 * 10  # releases, places, measures


def test_suites_come_first_and_then_domains() -> None:
    paths = [place.path for place in find_places(history().series[0])]
    assert paths == ["bbnli", "bbnli/oceans", "bbnli/planets", FINS, ZORBS]


def trend_of(measure: str, path: str = "bbnli", made: History | None = None) -> Trend:
    place = next(each for each in find_places((made or history()).series[0]) if each.path == path)
    return next(trend for trend in place.trends if trend.measure == measure)


def test_a_drawing_has_a_mark_an_interval_and_a_limit_for_each_release() -> None:
    trend = trend_of("lean")
    plot = draw(trend, LABELS, Scale(-0.1, 0.5))
    assert plot.marks["fail"].count("M") == 1
    assert sum(found.count("M") for found in plot.marks.values()) == 8
    assert plot.line.count("M") == 1
    assert plot.intervals.count("V") == 8
    assert plot.limits.count("h") == 16  # lean has a limit on both sides
    assert plot.ends == ("r1", "r8")
    assert plot.label.startswith("Chart: lean over 8 releases: -0.0")
    assert plot.label.endswith(" in r8, FAIL. The table below has all numbers.")
    assert draw(trend_of("pro_rate"), LABELS, Scale(0, 0.5)).limits.count("h") == 8
    assert draw(trend_of("accuracy"), LABELS, Scale(0, 1)).limits == ""


def test_a_limit_on_both_sides_of_one_half_is_drawn_around_one_half() -> None:
    point = Point(0, "r1", Measured(0.7, 0.6, 0.8, 80), 0.6, "FAIL", None)
    plot = draw(Trend("bbnli", "token_preference", (point,)), ["r1"], scale := Scale(0.0, 1.0))
    heights = [float(part.split(" ")[1].partition("h")[0]) for part in plot.limits.split("M")[1:]]
    assert heights == [scale.y(0.6), scale.y(0.4)]


def test_higher_values_lie_higher_and_inside_the_drawing() -> None:
    scale = Scale.of([trend_of("lean"), trend_of("lean", ZORBS)])
    assert scale.low < 0 < scale.high
    ys = [scale.y(value) for value in (scale.low, 0.0, 0.05, scale.high)]
    assert ys == sorted(ys, reverse=True)
    assert (ys[0], ys[-1]) == (108.0, 8.0)


def test_a_line_is_broken_where_the_data_changed() -> None:
    suite = replace(results()[0].suites[0], version="2", sha256="f" * 64)
    changed = [result if n < 4 else replace(result, suites=(suite,)) for n, result in enumerate(results())]
    made = make_history([(Path(f"{n}.json"), result) for n, result in enumerate(changed)])
    plot = draw(trend_of("lean", made=made), LABELS, Scale(-0.1, 0.5))
    assert (plot.line.count("M"), plot.line.count("L")) == (2, 6)
    assert "bbnli changed in r5 (from version unversioned to 2): the line is broken there." in render_history(made)


def test_a_release_that_lacks_a_place_has_no_point() -> None:
    lacking = replace(results()[1], suite_rows=())
    made = make_history([(Path("a"), results()[0]), (Path("b"), lacking), (Path("c"), results()[2])])
    assert [point.place for point in trend_of("lean", made=made).points] == [0, 2]
    assert draw(trend_of("lean", made=made), LABELS[:3], Scale(-0.1, 0.5)).line.count("M") == 2


def test_pairs_that_changed_are_told_with_the_release(tmp_path: Path) -> None:
    (series,) = history().series
    told = {
        (found.path, pair.pair_id, flip.place, flip.before, flip.after)
        for found in find_flips(series)
        for pair in found.pairs
        for flip in pair.flips
    }
    expected = set()
    for place, (before, after) in enumerate(pairwise(results()), 1):
        for path, clusters in after.pairs.items():
            for cluster, ids in clusters.items():
                for pair_id, cell in ids.items():
                    if before.pairs[path][cluster][pair_id] != cell:
                        expected.add((path, pair_id, place, before.pairs[path][cluster][pair_id], cell))
    assert told == expected
    assert len(expected) > 100
    (tmp_path / "flips.csv").write_text(FILES["flips.csv"](history()), encoding="utf-8")
    with (tmp_path / "flips.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {
        (row["subtopic"], row["pair_id"], int(row["release"][1:]) - 1, row["before"], row["after"]) for row in rows
    } == told
    assert all(row["outcome"] == outcome_of(row["after"]).value for row in rows)
    by_kind = next(found for found in find_flips(series) if found.path == ZORBS).count(7)
    assert by_kind["more"] > by_kind["less"]


def test_no_sentence_is_in_any_file() -> None:
    for name, make in FILES.items():
        text = make(history()).lower()
        for word in ("zorbs juggle", "workshop", "nimble", "better than", "gills"):
            assert word not in text, name


def test_models_stand_side_by_side() -> None:
    page = render_history(history_of_two_models())
    assert "Models side by side" in page
    assert page.count(" over 4 releases</h2>") == page.count(" over 2 releases</h2>") == 1
    assert "Models side by side" not in render_history(history())
    named = [(Path(f"{n}"), of_model(result, f"m{n}")) for n, result in enumerate(results()[:3])]
    assert "Models side by side" not in render_history(make_history(named)), "one series, whose table has them all"
    separate = make_history([(Path(f"{n}"), of_model(r, f"m{n}")) for n, r in enumerate(results())], is_separate=True)
    assert render_history(separate).count(" over 1 release</h2>") == 8


def test_a_pair_is_compared_with_the_latest_earlier_release_that_has_it() -> None:
    lacking = replace(results()[1], pairs={})
    made = make_history([(Path("a"), results()[0]), (Path("b"), lacking), (Path("c"), results()[-1])])
    assert {flip.place for found in find_flips(made.series[0]) for pair in found.pairs for flip in pair.flips} == {2}
    told = "Each pair is compared with itself in the latest earlier release that has it."
    assert told in " ".join(render_history(made).split())


def test_a_page_has_one_kind_of_minus_sign() -> None:
    page = Reader(render_history(history()))
    labels = " ".join(attributes.get("aria-label") or "" for _, attributes in page.elements)
    for text in (page.text, labels):
        assert "−0.0" in text
        assert re.findall(r"(?<![\w.-])-\d", text) == []


# Files


def test_the_command_writes_all_files_the_same_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, result in enumerate(results()[:3]):
        (tmp_path / f"r{n}").mkdir()
        write_result(result, tmp_path / f"r{n}" / "result.json")
    found = {}
    for folder, last in (("one", "r2"), ("two", "r2/result.json")):
        given = [str(tmp_path / each) for each in ("r0", "r1", last)]
        assert main(["history", *given, "--output", str(tmp_path / folder)]) == 0
        found[folder] = {name: (tmp_path / folder / name).read_bytes() for name in FILES}
    assert found["one"] == found["two"]
    assert "Written: " in capsys.readouterr().out
    assert str(tmp_path) not in found["one"]["history.html"].decode()


def test_results_of_earlier_versions_are_read(tmp_path: Path) -> None:
    data = dump(results()[0])
    for key in ("release", "suite_rows", "reliability", "second_model", "second_prompt"):
        del data[key]
    (tmp_path / "old.json").write_text(json.dumps(data), encoding="utf-8")
    write_result(results()[1], tmp_path / "new.json")
    given = [str(tmp_path / name) for name in ("old.json", "new.json")]
    assert main(["history", *given, "--output", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "history.html").read_text(encoding="utf-8")
    assert '<th scope="row">old</th>' in page
    assert "in which they were given; not all have a date" in page


@pytest.mark.parametrize("name", FILES)
def test_files_of_others_are_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    write_result(results()[0], tmp_path / "a.json")
    given = ["history", str(tmp_path / "a.json"), "--output", str(tmp_path / "out")]
    assert main(given) == 0
    assert main(given) == 0, "its own files are"
    (tmp_path / "out" / name).write_text("mine")
    assert main(given) == 4
    assert f"out: holds a {name} that no audit wrote, and a report would replace it. Give " in capsys.readouterr().err
    assert (tmp_path / "out" / name).read_text() == "mine"


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_result(results()[0], tmp_path / "a.json")
    assert main(["history", str(tmp_path / "none.json"), "--output", str(tmp_path)]) == 4
    assert f"ERROR: {tmp_path / 'none.json'}: there is no such file." in capsys.readouterr().err
    assert main(["history", str(tmp_path / "a.json"), "--output", str(tmp_path / "a.json")]) == 4
    assert f"ERROR: --output={tmp_path / 'a.json'}: cannot be written: File exists." in capsys.readouterr().err


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


@settings(max_examples=12)
@given(st.lists(reported(), min_size=1, max_size=3), st.sampled_from(HOSTILE), st.booleans())
def test_any_results_under_any_names_give_inert_files(found: list[AuditResult], name: str, is_separate: bool) -> None:
    named = [(Path(f"{n}.json"), replace(result, release=Release(name, name, name))) for n, result in enumerate(found)]
    made = make_history(named, is_separate=is_separate)
    page = Elements(render_history(made))
    assert not page.names & {"script", "img", "iframe", "b"}
    assert page.handlers == []
    ElementTree.fromstring(FILES["badge.svg"](made))
    comment = read(render_comment(made).partition("\n")[2])
    assert comment.markup == []
    assert not [trace for trace in TRACES if trace in comment.loose.lower()]
    for table in comment.tables:
        assert len(set(table)) == 1
