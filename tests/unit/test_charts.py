"""The charts of the page: names of others, and no network."""

import socket
from typing import NoReturn

import pytest

from bbnli_audit.reports.charts import NARROW, WIDE, Interval, Row, draw_causes, draw_increases
from tests.browser.pages import (
    HOSTILE,
)
from tests.page_reader import Reader


def test_names_in_charts_are_escaped() -> None:
    measures = {"pro": Interval(0.1, 0.0, 0.2, 0.1)}
    rows = [Row(name, "FAIL", {"pro": 0.1}, measures) for name in (*HOSTILE, "\x00\x1a\ud800\ufffe")]
    for drawn in (draw_causes(rows, WIDE), draw_causes(rows, NARROW), draw_increases(rows, ["pro"], WIDE)):
        names = {tag for tag, _ in Reader(drawn).elements}
        assert names <= {"svg", "g", "path", "line", "text", "tspan"}
        assert "http" not in drawn


def test_every_name_stands_once_whichever_measures_a_subtopic_has() -> None:
    grown = Interval(0.1, -0.1, 0.2, 0.02)
    rows = [Row("zorbs", "FAIL", measures={"brittleness": grown}), Row("fins", "PASS", measures={"pro": grown})]
    for layout in (WIDE, NARROW):
        drawn = draw_increases(rows, ["pro", "brittleness"], layout)
        assert [drawn.count(name) for name in (">zorbs<", ">fins<", ">pro<", ">brittleness<")] == [1, 1, 1, 1]


def test_charts_are_drawn_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert draw_causes([Row("zorbs", "PASS")], WIDE).startswith("<svg")
