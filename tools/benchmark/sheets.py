"""Writes the items of suite files as sheets for blind readers, and counts what two readers say of them.

    python -m tools.benchmark.sheets write FILES... --output FOLDER [--since OLDER]
    python -m tools.benchmark.sheets count FILES... --round SHEETS FIRST SECOND [--round ...] --output FOLDER

A sheet holds nothing but numbers and two sentences each, bias items and controls mixed, in an order made from the
texts. Each cell of a disparity premise is shown twice: with premise and hypothesis pointing the same way, and crossed.
Which of the two groups stands where is drawn. A reader answers a line per item: its number, the label (e, n, c), `ok`
or `bad` for the wording, and the group that the hypothesis speaks well or ill of (1, 2 or -, as the head says).
With --since, only items that differ from an older folder of suite files are written. A round is a folder of sheets and
the answers of its two readers; an item has the answers of the round that showed it last.
"""

import argparse
import csv
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from bbnli_audit.core.values import Side
from bbnli_audit.measures.statistics.kappa import cohens_kappa
from bbnli_audit.suites.quad_file import QuadFile, read_quad_file


class Item(NamedTuple):
    """What a reader judges. `key` names it without its sentences."""

    key: str
    expected: str
    premise: str
    hypothesis: str


def drawn(*texts: str) -> int:
    return sha256("\t".join(texts).encode()).digest()[0]


def items_of(file: QuadFile) -> Iterator[Item]:
    premises = {premise.id: premise for premise in file.premises}

    def item(key: str, expected: str, premise: str, hypothesis: str, *, is_crossed: bool) -> Item:
        sides = list(Side)
        first = drawn(premise, hypothesis, key) % 2
        return Item(
            key, expected, file.render(premise, sides[first]), file.render(hypothesis, sides[first ^ is_crossed])
        )

    for hypothesis in file.hypotheses:
        for met in hypothesis.premises:
            for is_crossed in (False, True) if premises[met].kind == "disparity" else (False,):
                key = f"{met}/{hypothesis.id}/{'crossed' if is_crossed else 'aligned'}"
                yield item(key, "n", premises[met].text, hypothesis.text, is_crossed=is_crossed)
    for fact in file.controls:
        own, other = premises[fact.follows_from].text, premises[fact.open_beside].text
        yield item(f"{fact.id}/follows", "e", own, fact.text, is_crossed=False)
        yield item(f"{fact.id}/contradicts", "c", own, fact.text, is_crossed=True)
        yield item(f"{fact.id}/open", "n", other, fact.text, is_crossed=fact.is_crossed)


def sheet(file: QuadFile) -> list[Item]:
    return sorted(items_of(file), key=lambda item: sha256("\t".join(item).encode()).hexdigest())


def write_sheet(path: Path, output: Path, older: Path | None) -> None:
    file = read_quad_file(path)
    known: set[Item] = set()
    if older is not None:
        before = next(older.glob(f"*/{path.name}"))
        known = set(items_of(read_quad_file(before)))
    found = [item for item in sheet(file) if item not in known]
    output.mkdir(parents=True, exist_ok=True)
    first, second = sorted(forms.many for forms in file.groups.values())
    lines = [f"Groups: 1 = {first}, 2 = {second}. {len(found)} items.", ""]
    for number, item in enumerate(found, 1):
        lines += [f"{number:03d}  P: {item.premise}", f"     H: {item.hypothesis}"]
    (output / f"{path.stem}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


Answers = dict[tuple[str, str], tuple[str, str, str]]


def read_round(sheet_path: Path, answers: Path) -> Answers:
    """Return what a reader said, by the two sentences."""
    shown = re.findall(r"^(\d+)  P: (.*)\n     H: (.*)$", sheet_path.read_text(encoding="utf-8"), re.MULTILINE)
    given = {}
    for line in answers.read_text(encoding="utf-8").splitlines():
        found = re.match(r"\s*(\d+)[\s.:]+([encENC])\w*\s+(ok|bad)\s+([12-])", line)
        if found:
            given[int(found[1])] = (found[2].lower(), found[3], found[4])
    missing = [number for number, _, _ in shown if int(number) not in given]
    if missing or len(given) != len(shown):
        raise SystemExit(f"{answers}: {len(missing)} of {len(shown)} items are not judged, the first is {missing[:1]}")
    return {(premise, hypothesis): given[int(number)] for number, premise, hypothesis in shown}


def count_sheet(path: Path, rounds: list[list[Path]], output: Path) -> None:
    """Write the judgements by item, and print agreement, kappa and how many items must go."""
    both: list[Answers] = [{}, {}]
    for sheets, *readers in rounds:
        if (sheets / f"{path.stem}.txt").exists():
            for answers, reader in zip(both, readers, strict=True):
                answers.update(read_round(sheets / f"{path.stem}.txt", reader / f"{path.stem}.txt"))
    found = sheet(read_quad_file(path))
    rows, labels = [], []
    bad: Counter[str] = Counter()
    for item in found:
        said = [each[item.premise, item.hypothesis] for each in both]
        labels.append((said[0][0], said[1][0]))
        is_kept = all(label == item.expected and wording == "ok" for label, wording, _ in said)
        bad["controls" if item.key.count("/") == 1 else "bias items"] += not is_kept
        rows.append([item.key, item.expected, *said[0], *said[1], "kept" if is_kept else "dropped"])
    output.mkdir(parents=True, exist_ok=True)
    with (output / f"{path.stem}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        readers_said = [f"{what}_{reader}" for reader in (1, 2) for what in ("label", "wording", "group")]
        writer.writerow(["item", "expected", *readers_said, "decision"])
        writer.writerows(sorted(rows))
    agreed = sum(one == other for one, other in labels) / len(labels)
    _, kappa = cohens_kappa(Counter(labels))
    print(f"{path.stem:32} {len(found)} items  agreement {agreed:.3f}  kappa {kappa:.3f}  dropped: {dict(bad)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "count"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--since", type=Path)
    parser.add_argument("--round", nargs=3, action="append", type=Path, default=[])
    options = parser.parse_args()
    for path in options.files:
        if options.action == "write":
            write_sheet(path, options.output, options.since)
        else:
            count_sheet(path, options.round, options.output)


if __name__ == "__main__":
    main()
