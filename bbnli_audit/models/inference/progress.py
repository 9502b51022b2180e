"""Shows the progress of a pass: one moving line on a terminal, elsewhere a plain line now and then."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

_SECONDS_BETWEEN_LINES = 20.0
_SECONDS_BETWEEN_MOVES = 0.2
_SECONDS_WORTH_TELLING = 2.0
_BAR = 20


@dataclass(slots=True)
class State:
    n_texts: int = 0
    cost: int = 0
    n_done: int = 0
    cost_done: int = 0
    is_over: bool = False


class Progress:
    """Counts how much of a pass is done. This base class shows nothing."""

    state: State

    def begin(self, n_texts: int, cost: int) -> None:
        self.state = State(n_texts, cost)

    def step(self, n_texts: int, cost: int) -> None:
        self.state.n_done += n_texts
        self.state.cost_done += cost

    def end(self) -> None:
        self.state.is_over = True


class Shown(Progress):
    """Shows progress. Long texts come first, so the time left is estimated from cost, not from numbers of texts."""

    def __init__(
        self,
        *,
        write_line: Callable[[str], object],
        move: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write_line = write_line  # a line that stays
        self._move = move  # overwrites the last line; None if the output has no line to overwrite
        self._clock = clock

    def begin(self, n_texts: int, cost: int) -> None:
        super().begin(n_texts, cost)
        self._started = self._last_shown = self._clock()

    def step(self, n_texts: int, cost: int) -> None:
        super().step(n_texts, cost)
        now = self._clock()
        if now - self._last_shown >= (_SECONDS_BETWEEN_MOVES if self._move else _SECONDS_BETWEEN_LINES):
            self._last_shown = now
            (self._move or self._write_line)(self._line(now))

    def end(self) -> None:
        seconds, n_done = max(self._clock() - self._started, 1e-9), self.state.n_done
        line = f"bbnli: predicted {n_done:,} texts in {tell_time(seconds)} ({_rate(n_done, seconds)})"
        if self._move and self._last_shown > self._started:
            self._move(line)
            self._write_line("")  # ends the moving line
        elif seconds > _SECONDS_WORTH_TELLING:
            self._write_line(line)

    def _line(self, now: float) -> str:
        seconds, state = max(now - self._started, 1e-9), self.state
        share = state.cost_done / max(1, state.cost)
        left = f", {tell_time(seconds * (1 - share) / share)} left" if 0 < share < 1 else ""
        filled = round(share * _BAR)
        bar = f"[{'=' * filled}{' ' * (_BAR - filled)}] " if self._move else ""
        return f"bbnli: {bar}{state.n_done:,} of {state.n_texts:,} texts, {_rate(state.n_done, seconds)}{left}"


def _rate(n_texts: int, seconds: float) -> str:
    each_second = n_texts / seconds
    return f"{each_second:,.1f}/s" if each_second < 10 else f"{each_second:,.0f}/s"


def tell_time(seconds: float) -> str:
    whole = max(1, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


class Written(Progress):
    """Writes progress into a file. An xdist worker has no terminal, so its controller reads the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, n_texts: int, cost: int) -> None:
        super().begin(n_texts, cost)
        self._write()

    def step(self, n_texts: int, cost: int) -> None:
        super().step(n_texts, cost)
        if time.monotonic() - self._last_written > _SECONDS_BETWEEN_MOVES:
            self._write()

    def end(self) -> None:
        super().end()
        self._write()

    def _write(self) -> None:
        self._last_written = time.monotonic()
        with suppress(OSError):  # progress is not worth an error
            beside = self._path.with_suffix(".new")
            beside.write_text(json.dumps(asdict(self.state)))
            beside.replace(self._path)


class Watcher(threading.Thread):
    """Shows the progress of all xdist workers. The workers share one pass, so their progress is added up."""

    def __init__(self, folder: Path, shown: Shown) -> None:
        super().__init__(name="bbnli-progress", daemon=True)
        self._folder = folder
        self._shown = shown
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    def run(self) -> None:
        shown, is_begun = self._shown, False
        while not self._stopped.wait(_SECONDS_BETWEEN_MOVES):
            states = self._read()
            if not states:
                continue
            if not is_begun:
                is_begun = True
                shown.begin(max(state.n_texts for state in states), max(state.cost for state in states))
            n_new = sum(state.n_done for state in states) - shown.state.n_done
            shown.step(n_new, sum(state.cost_done for state in states) - shown.state.cost_done)
            if all(state.is_over for state in states):
                shown.end()
                return

    def _read(self) -> list[State]:
        states = []
        for path in self._folder.glob("progress-*.json"):
            with suppress(OSError, ValueError):
                states.append(State(**json.loads(path.read_text())))
        return states
