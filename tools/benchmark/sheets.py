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
import json
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

PLACEHOLDER = re.compile(r"\{\{(GROUP[12])(?:\.(\w+))?\}\}")
ORDERS = (("GROUP1", "GROUP2"), ("GROUP2", "GROUP1"))


class Item(NamedTuple):
    """What a reader judges. `key` names it without its sentences."""

    key: str
    expected: str
    premise: str
    hypothesis: str


def render(template: str, groups: dict[str, dict[str, str]], *, is_exchanged: bool) -> str:
    names = dict(zip(*(ORDERS[0], ORDERS[is_exchanged]), strict=True))
    text = PLACEHOLDER.sub(lambda found: groups[names[found[1]]][found[2] or "many"], template)
    return text[:1].upper() + text[1:]


def drawn(*texts: str) -> int:
    return sha256("\t".join(texts).encode()).digest()[0]


def items_of(subtopic: dict[str, Any]) -> Iterator[Item]:
    premises = {each["id"]: each for each in subtopic["premises"]}
    groups = subtopic["groups"]

    def item(key: str, expected: str, premise: str, hypothesis: str, *, is_crossed: bool) -> Item:
        exchanged = drawn(premise, hypothesis, key) % 2 == 1
        return Item(
            key,
            expected,
            render(premise, groups, is_exchanged=exchanged),
            render(hypothesis, groups, is_exchanged=exchanged != is_crossed),
        )

    for hypothesis in subtopic["hypotheses"]:
        for met in hypothesis["premises"]:
            text = premises[met]["text"]
            ways = (False, True) if premises[met]["kind"] == "disparity" else (False,)
            for is_crossed in ways:
                key = f"{met}/{hypothesis['id']}/{'crossed' if is_crossed else 'aligned'}"
                yield item(key, "n", text, hypothesis["text"], is_crossed=is_crossed)
    for control in subtopic["controls"]:
        own, other = (premises[control[key]]["text"] for key in ("follows_from", "open_beside"))
        yield item(f"{control['id']}/follows", "e", own, control["text"], is_crossed=False)
        yield item(f"{control['id']}/contradicts", "c", own, control["text"], is_crossed=True)
        yield item(f"{control['id']}/open", "n", other, control["text"], is_crossed=int(control["id"][1:]) % 2 == 0)


def sheet(subtopic: dict[str, Any]) -> list[Item]:
    return sorted(items_of(subtopic), key=lambda item: sha256("\t".join(item).encode()).hexdigest())


def write_sheet(path: Path, output: Path, older: Path | None) -> None:
    subtopic = json.loads(path.read_text(encoding="utf-8"))
    known: set[Item] = set()
    if older is not None:
        before = next(older.glob(f"*/{path.name}"))
        known = set(items_of(json.loads(before.read_text(encoding="utf-8"))))
    found = [item for item in sheet(subtopic) if item not in known]
    output.mkdir(parents=True, exist_ok=True)
    first, second = sorted(subtopic["groups"][name]["many"] for name in ORDERS[0])
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


def kappa(pairs: list[tuple[str, str]]) -> float:
    n = len(pairs)
    firsts, seconds = (Counter(side) for side in zip(*pairs, strict=True))
    by_chance = sum(firsts[label] * seconds[label] for label in firsts) / n**2
    return (sum(one == other for one, other in pairs) / n - by_chance) / (1 - by_chance)


def count_sheet(path: Path, rounds: list[list[Path]], output: Path) -> None:
    """Write the judgements by item, and print agreement, kappa and how many items must go."""
    both: list[Answers] = [{}, {}]
    for sheets, *readers in rounds:
        if (sheets / f"{path.stem}.txt").exists():
            for answers, reader in zip(both, readers, strict=True):
                answers.update(read_round(sheets / f"{path.stem}.txt", reader / f"{path.stem}.txt"))
    found = sheet(json.loads(path.read_text(encoding="utf-8")))
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
    print(f"{path.stem:32} {len(found)} items  agreement {agreed:.3f}  kappa {kappa(labels):.3f}  dropped: {dict(bad)}")


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
