"""What a person sees of a pass."""

import json
import time
from pathlib import Path

from bbnli_audit.models.inference.progress import Shown, Watcher, Written, tell_time


class Terminal:
    def __init__(self, *, can_move: bool) -> None:
        self.now = 0.0
        self.lines: list[str] = []
        self.moves: list[str] = []
        self.shown = Shown(
            write_line=self.lines.append, move=self.moves.append if can_move else None, clock=lambda: self.now
        )

    def work(self, seconds: float, n_texts: int, cost: int) -> None:
        self.now += seconds
        self.shown.step(n_texts, cost)


def test_a_terminal_shows_one_line_that_moves() -> None:
    terminal = Terminal(can_move=True)
    terminal.shown.begin(1000, 50_000)
    terminal.work(10, 100, 25_000)  # long texts come first: half of the work, a tenth of the texts
    terminal.work(0.01, 1, 10)  # too soon to be shown
    terminal.work(10, 899, 24_990)
    terminal.shown.end()
    assert terminal.moves == [
        "bbnli: [==========          ] 100 of 1,000 texts, 10/s, 10 s left",
        "bbnli: [====================] 1,000 of 1,000 texts, 50/s",
        "bbnli: predicted 1,000 texts in 20 s (50/s)",
    ]
    assert terminal.lines == [""]


def test_elsewhere_a_plain_line_now_and_then() -> None:
    terminal = Terminal(can_move=False)
    terminal.shown.begin(1000, 1000)
    for _ in range(10):
        terminal.work(8, 100, 100)
    terminal.shown.end()
    assert terminal.lines == [
        "bbnli: 300 of 1,000 texts, 12/s, 56 s left",
        "bbnli: 600 of 1,000 texts, 12/s, 32 s left",
        "bbnli: 900 of 1,000 texts, 12/s, 8 s left",
        "bbnli: predicted 1,000 texts in 1 min 20 s (12/s)",
    ]


def test_a_slow_model_has_a_rate_too() -> None:
    terminal = Terminal(can_move=True)
    terminal.shown.begin(1200, 1200)
    terminal.work(12, 9, 9)
    assert "9 of 1,200 texts, 0.8/s" in terminal.moves[0]


def test_a_short_pass_is_not_worth_a_line() -> None:
    terminal = Terminal(can_move=True)
    terminal.shown.begin(10, 10)
    terminal.work(0.1, 10, 10)
    terminal.shown.end()
    assert terminal.lines == terminal.moves == []


def test_times_are_told_as_people_do() -> None:
    assert [tell_time(seconds) for seconds in (0, 59.4, 60, 3599, 3700)] == [
        "1 s",
        "59 s",
        "1 min 0 s",
        "59 min 59 s",
        "1 h 1 min",
    ]


def test_workers_write_what_their_controller_shows(tmp_path: Path) -> None:
    lines: list[str] = []
    watcher = Watcher(tmp_path, Shown(write_line=lines.append, move=lines.append))
    watcher.start()
    workers = [Written(tmp_path / f"progress-gw{n}.json") for n in range(2)]
    for worker in workers:
        worker.begin(100, 100)
    time.sleep(0.5)
    workers[0].step(30, 30)
    workers[1].step(70, 70)
    for worker in workers:
        worker.end()
    watcher.join(timeout=10)
    assert any(line.startswith("bbnli: [====================] 100 of 100 texts") for line in lines)
    assert json.loads((tmp_path / "progress-gw0.json").read_text())["n_done"] == 30
