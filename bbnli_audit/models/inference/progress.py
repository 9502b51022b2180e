"""How far a pass has come: one moving line on a terminal, a plain line now and then elsewhere."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

_SECONDS_BETWEEN_LINES = 20.0
_SECONDS_BETWEEN_MOVES = 0.2
_SECONDS_WORTH_TELLING = 2.0
_BAR = 20


class Progress(Protocol):
    """Told of a pass: when it begins, and what has been done since."""

    def begin(self, n_texts: int, cost: int) -> None: ...

    def step(self, n_texts: int, cost: int) -> None: ...

    def end(self) -> None: ...


class Silent:
    def begin(self, n_texts: int, cost: int) -> None: ...

    def step(self, n_texts: int, cost: int) -> None: ...

    def end(self) -> None: ...


class Shown:
    """Writes progress. The time left is estimated from the cost (tokens): the longest texts come first."""

    def __init__(
        self,
        *,
        write_line: Callable[[str], object],
        move: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write_line = write_line  # a line that stays
        self._move = move  # over the line that it wrote before; None where the output cannot
        self._clock = clock

    def begin(self, n_texts: int, cost: int) -> None:
        self._n_texts, self._cost = n_texts, max(1, cost)
        self._n_done = self._cost_done = 0
        self._started = self._last_shown = self._clock()

    def step(self, n_texts: int, cost: int) -> None:
        self._n_done += n_texts
        self._cost_done += cost
        now = self._clock()
        if now - self._last_shown >= (_SECONDS_BETWEEN_MOVES if self._move else _SECONDS_BETWEEN_LINES):
            self._last_shown = now
            (self._move or self._write_line)(self._line(now))

    def end(self) -> None:
        seconds = max(self._clock() - self._started, 1e-9)
        line = f"bbnli: predicted {self._n_done:,} texts in {tell_time(seconds)} ({self._n_done / seconds:,.0f}/s)"
        if self._move and self._last_shown > self._started:
            self._move(line)
            self._write_line("")  # only ends the line
        elif seconds > _SECONDS_WORTH_TELLING:
            self._write_line(line)

    def _line(self, now: float) -> str:
        seconds = max(now - self._started, 1e-9)
        share = self._cost_done / self._cost
        left = f", {tell_time(seconds * (1 - share) / share)} left" if 0 < share < 1 else ""
        filled = round(share * _BAR)
        bar = f"[{'=' * filled}{' ' * (_BAR - filled)}] " if self._move else ""
        return f"bbnli: {bar}{self._n_done:,} of {self._n_texts:,} texts, {self._n_done / seconds:,.0f}/s{left}"


def tell_time(seconds: float) -> str:
    whole = max(1, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


class Written:
    """Writes progress into a file: an xdist worker has no terminal, its controller reads the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state = State()
        self._last_written = 0.0

    def begin(self, n_texts: int, cost: int) -> None:
        self._state = State(n_texts, cost)
        self._write()

    def step(self, n_texts: int, cost: int) -> None:
        self._state.n_done += n_texts
        self._state.cost_done += cost
        if time.monotonic() - self._last_written > _SECONDS_BETWEEN_MOVES:
            self._write()

    def end(self) -> None:
        self._state.is_over = True
        self._write()

    def _write(self) -> None:
        self._last_written = time.monotonic()
        with suppress(OSError):  # progress is not worth an error
            beside = self._path.with_suffix(".new")
            beside.write_text(json.dumps(asdict(self._state)))
            beside.replace(self._path)


@dataclass(slots=True)
class State:
    """How far one worker has come."""

    n_texts: int = 0
    cost: int = 0
    n_done: int = 0
    cost_done: int = 0
    is_over: bool = False


class Watcher(threading.Thread):
    """Shows what xdist workers write. They divide the work of one pass, so their parts add up."""

    def __init__(self, folder: Path, shown: Shown) -> None:
        super().__init__(name="bbnli-progress", daemon=True)
        self._folder = folder
        self._shown = shown
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        n_done = cost_done = 0
        is_begun = False
        while not self._stopped.wait(_SECONDS_BETWEEN_MOVES):
            states = list(self._read())
            if not states:
                continue
            if not is_begun:
                is_begun = True
                self._shown.begin(max(state.n_texts for state in states), max(state.cost for state in states))
            done = sum(state.n_done for state in states), sum(state.cost_done for state in states)
            self._shown.step(done[0] - n_done, done[1] - cost_done)
            n_done, cost_done = done
            if all(state.is_over for state in states):
                self._shown.end()
                return

    def _read(self) -> Iterator[State]:
        for path in self._folder.glob("progress-*.json"):
            with suppress(OSError, ValueError):
                yield State(**json.loads(path.read_text()))
