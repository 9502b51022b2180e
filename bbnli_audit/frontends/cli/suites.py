"""`bbnli-audit suites`: what there is to audit, whether the data is sound, and the texts for a model elsewhere."""

import argparse
import csv
import json
from collections.abc import Iterable
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.values import TEMPLATE_PAIRINGS, Label, Pairing, Subtopic, SubtopicItems, TextPair
from bbnli_audit.frontends.cli.arguments import add_command, write_json, write_out
from bbnli_audit.suites.registry import BUILT_IN, DEFAULT

if TYPE_CHECKING:
    from bbnli_audit.suites.bbnli import Bbnli
    from bbnli_audit.suites.protocol import Suite
    from bbnli_audit.suites.template_file import TemplateFile

N_EXAMPLES = 3


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "suites",
        None,
        what="list and show the subtopics, look for faults in the data, or write the texts",
        description="What there is to audit. Sentences state stereotypes; only `show --reveal` and `texts` print any.",
        examples=("bbnli-audit suites list", "bbnli-audit suites show bbnli gender/man_is_to_programmer"),
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_action(actions, "list", run_list, "list subtopics with their numbers of pairs, clusters and controls")
    show = _add_action(
        actions,
        "show",
        run_show,
        "show what a subtopic measures and what it is made of",
        "bbnli-audit suites show bbnli gender/man_is_to_programmer --reveal",
    )
    show.add_argument("subtopic", nargs="?", help="such as gender/man_is_to_programmer (default: all)")
    show.add_argument("--reveal", action="store_true", help=f"show the groups and {N_EXAMPLES} pairs as sentences")
    check = _add_action(
        actions, "check", run_check, "look for faults in the templates", "bbnli-audit suites check bbnli --data DIR"
    )
    check.description = "Looks for faults in the templates. Ends with 1 when there are any."
    texts = _add_action(
        actions,
        "texts",
        run_texts,
        "write the texts that an audit needs, for --model=predictions:FILE",
        "bbnli-audit suites texts bbnli --output texts.csv",
        has_json=False,
    )
    texts.add_argument(
        "--pairing",
        choices=[pairing.value for pairing in TEMPLATE_PAIRINGS],
        default=Pairing.BOTH.value,
        help="as for --bbnli-pairing",
    )
    texts.add_argument("--output", metavar="FILE", type=Path, help=".csv or .jsonl (default: CSV on stdout)")


def _add_action(
    actions: Any, name: str, run: Any, what: str, *examples: str, has_json: bool = True
) -> argparse.ArgumentParser:
    parser = add_command(
        actions,
        name,
        run,
        what=what,
        description=f"{what[0].upper()}{what[1:]}.",
        examples=(f"bbnli-audit suites {name}", *examples),
    )
    parser.add_argument("suite", nargs="?", default="bbnli", help="the suite (default: bbnli)")
    parser.add_argument("--data", metavar="DIR", type=Path, help="its data (default: our own)")
    if has_json:
        parser.add_argument("--json", action="store_true", help="print one JSON document instead (docs/commands.md)")
    return parser


def run_list(arguments: argparse.Namespace) -> int:
    suite = _open(arguments, Pairing.BOTH)
    other = _open(arguments, Pairing.HYPOTHESIS)
    rows = [_count(suite, other, subtopic) for subtopic in suite.subtopics()]
    if arguments.json:
        write_json({**_title(suite), "subtopics": rows})
        return 0
    print(f"{suite.name} {suite.version}, sha256 {suite.sha256}")
    print(f"{'subtopic':<44}{'pairs':>7}{'clusters':>10}{'pairs (hypothesis)':>20}{'controls E/N/C':>18}")
    for row in rows:
        print(
            f"{row['path']:<44}{row['n_pairs']:>7}{row['n_clusters']:>10}{row['n_pairs_hypothesis']:>20}"
            f"{'/'.join(map(str, row['controls'].values())):>18}"
        )
        for annotation in row["annotations"]:
            print(f"    note: {annotation}")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    if arguments.subtopic is None and "/" in arguments.suite:  # `show gender/man_is_to_programmer`
        first = arguments.suite.partition("/")[0]
        arguments.subtopic, arguments.suite = arguments.suite, first if first in BUILT_IN else DEFAULT
    suite = _open(arguments, Pairing.BOTH)
    other = _open(arguments, Pairing.HYPOTHESIS)
    chosen = suite.subtopics() if arguments.subtopic is None else [find_subtopic(suite, arguments.subtopic)]
    rows = [{**_count(suite, other, subtopic), **_describe(suite, subtopic, arguments.reveal)} for subtopic in chosen]
    if arguments.json:
        write_json({**_title(suite), "subtopics": rows})
        return 0
    print(f"{suite.name} {suite.version}, sha256 {suite.sha256}")
    for row in rows:
        print()
        _print_subtopic(row)
    if not arguments.reveal:
        print("\nGroups and sentences are hidden; --reveal shows them.")
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    from bbnli_audit.suites.bbnli import Bbnli
    from bbnli_audit.suites.check import check_files

    suite = _open(arguments, Pairing.BOTH)
    if not isinstance(suite, Bbnli):
        raise OptionError(f"The suite {suite.name!r} is not made of template files, so there is nothing to check.")
    findings = check_files(suite.files())
    n_files = len(suite.files())
    if arguments.json:
        found = [{"file": f.file, "entry": f.entry, "problem": f.problem} for f in findings]
        write_json({**_title(suite), "n_files": n_files, "findings": found})
    else:
        for finding in findings:
            print(finding)
        print(f"{len(findings)} findings in {n_files} files." if findings else f"{n_files} files, no finding.")
    return 1 if findings else 0


def run_texts(arguments: argparse.Namespace) -> int:
    path: Path | None = arguments.output
    suffix = ".csv" if path is None else path.suffix.lower()
    if suffix not in _WRITERS:
        raise OptionError(f"--output={path}: give a name that ends in {' or '.join(_WRITERS)}.")
    texts = needed_texts(_open(arguments, Pairing(arguments.pairing)))
    written = _WRITERS[suffix](texts)
    if path is None:
        write_out(written)
        return 0
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(written)
    except FileExistsError as exc:
        raise OptionError(
            f"--output={path}: is there already, and may hold probabilities by now. Remove it, or give another name."
        ) from exc
    except OSError as exc:
        raise OptionError(f"--output={path}: cannot be written: {exc.strerror}.") from exc
    print(
        f"{len(texts)} texts are in {path}. Add the columns {', '.join(Label)}, then: pytest --model=predictions:{path}"
    )
    return 0


def needed_texts(suite: "Suite") -> list[TextPair]:
    """Give the distinct texts an audit predicts. Sorted, so that no order tells sides or expected labels."""
    from bbnli_audit.suites.controls import find_controls
    from bbnli_audit.suites.probe import probe_items

    texts = {item.text for item in (*probe_items(), *find_controls([suite]))}
    for subtopic in suite.subtopics():
        texts.update(text for pair in suite.items(subtopic).usable for text in (pair.pro, pair.anti))
    return sorted(texts)


def find_subtopic(suite: "Suite", name: str) -> Subtopic:
    """Find a subtopic by its full path, its path below the suite, or a published file's name in place of the last."""
    known: dict[str, Subtopic] = {}
    for subtopic in suite.subtopics():
        for path in (subtopic.path, *(f"{suite.name}/{subtopic.domain}/{alias}" for alias in subtopic.aliases)):
            known[path] = known[path.removeprefix(f"{suite.name}/")] = subtopic
    if name not in known:
        # Compared in the form that was asked for, and told in a form that is taken.
        n_parts = name.count("/") + 1
        forms = {"/".join(path.split("/")[-n_parts:]): path for path in known}
        near = get_close_matches(name, forms, n=1)
        hint = f"Did you mean {forms[near[0]]!r}?" if near else f"See: bbnli-audit suites list {suite.name}"
        raise OptionError(f"The suite {suite.name!r} has no subtopic {name!r}. {hint}")
    return known[name]


def _title(suite: "Suite") -> dict[str, Any]:
    return {"suite": suite.name, "version": suite.version, "sha256": suite.sha256}


def _count(suite: "Suite", other: "Suite", subtopic: Subtopic) -> dict[str, Any]:
    """Count what a subtopic holds; `other` is the same suite with the premise fixed."""
    items = suite.items(subtopic)
    return {
        "path": subtopic.path,
        "aliases": list(subtopic.aliases),
        "annotations": list(subtopic.annotations),
        "n_pairs": len(items.usable),
        "n_clusters": len({pair.cluster for pair in items.usable}),
        "n_pairs_hypothesis": len(other.items(subtopic).usable),
        "controls": {label.value: sum(control.expected is label for control in items.controls) for label in Label},
    }


def _describe(suite: "Suite", subtopic: Subtopic, is_revealed: bool) -> dict[str, Any]:
    from bbnli_audit.suites.bbnli import Bbnli

    items = suite.items(subtopic)
    return {
        **(_describe_file(suite, subtopic, is_revealed) if isinstance(suite, Bbnli) else {}),
        "n_identical": items.n_identical,
        "n_duplicates": items.n_duplicates,
        "pair_ids": [pair.id for pair in items.usable[:N_EXAMPLES]],
        **({"pairs": _examples(items)} if is_revealed else {}),
    }


def _describe_file(suite: "Bbnli", subtopic: Subtopic, is_revealed: bool) -> dict[str, Any]:
    file = next(file for file in suite.files() if (file.domain, file.name) == (subtopic.domain, subtopic.name))
    return {
        "phenomenon": _phenomenon(suite, file, is_revealed),
        "templates": {
            "premise": len(file.premises),
            "test_hypothesis": len(file.controls),
            "bias_hypothesis_stereotypical": len(file.hypotheses),
        },
        **({"groups": list(file.groups)} if is_revealed else {}),
    }


def _phenomenon(suite: "Bbnli", file: "TemplateFile", is_revealed: bool) -> str | None:
    """Give what the file says it is about. Ours say it at a distance; others' may state the stereotype itself."""
    from bbnli_audit.suites.bbnli import OWN_DATA

    if suite.folder != OWN_DATA and not is_revealed:
        return None
    found = json.loads(file.path.read_text(encoding="utf-8")).get("phenomenon")
    return found if isinstance(found, str) else None


def _examples(items: SubtopicItems) -> list[dict[str, Any]]:
    return [
        {"id": pair.id, "cluster": pair.cluster, "pro": pair.pro._asdict(), "anti": pair.anti._asdict()}
        for pair in items.usable[:N_EXAMPLES]
    ]


def _print_subtopic(row: dict[str, Any]) -> None:
    print(row["path"])
    templates = row.get("templates")
    lines = {
        "measures": row.get("phenomenon"),
        "also named": ", ".join(row["aliases"]),
        "groups": " / ".join(row.get("groups", ())),
        "pairs": f"{row['n_pairs']} in {row['n_clusters']} clusters; {row['n_pairs_hypothesis']} with a fixed premise",
        "left out": f"{row['n_identical']} the same on both sides, {row['n_duplicates']} duplicates",
        "controls": ", ".join(f"{n} {label}" for label, n in row["controls"].items()),
        "templates": templates
        and f"{templates['premise']} premises, {templates['bias_hypothesis_stereotypical']} hypotheses, "
        f"{templates['test_hypothesis']} control hypotheses",
        "pair ids": f"{', '.join(row['pair_ids'])}, ..." if row["pair_ids"] else "",
    }
    for name, text in lines.items():
        if text:
            print(f"  {name:<11}{text}")
    for annotation in row["annotations"]:
        print(f"  {'note':<11}{annotation}")
    for pair in row.get("pairs", ()):
        print(f"  pair {pair['id']} ({pair['cluster']})")
        for side in ("pro", "anti"):
            print(f"    {side:<6}premise     {pair[side]['premise']}\n{'':<10}hypothesis  {pair[side]['hypothesis']}")


def _as_csv(texts: Iterable[TextPair]) -> str:
    out = StringIO()
    # All in quotes: before Python 3.13, a carriage return alone does not make the writer quote a text.
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)
    writer.writerow(TextPair._fields)
    writer.writerows(texts)
    return out.getvalue()


def _as_jsonl(texts: Iterable[TextPair]) -> str:
    return "".join(f"{json.dumps(text._asdict(), ensure_ascii=False)}\n" for text in texts)


_WRITERS = {".csv": _as_csv, ".jsonl": _as_jsonl}


def _open(arguments: argparse.Namespace, pairing: Pairing) -> "Suite":
    from bbnli_audit.suites.registry import open_suite

    return open_suite(arguments.suite, arguments.data, pairing)
