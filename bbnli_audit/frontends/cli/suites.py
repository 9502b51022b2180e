"""`bbnli-audit suites`: lists subtopics, checks data, and writes the texts for a model that runs elsewhere."""

import argparse
import json
from contextlib import suppress
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.printable import printable
from bbnli_audit.core.tables import write_csv
from bbnli_audit.core.values import Label, Pairing, Subtopic, TextPair
from bbnli_audit.core.words import counted
from bbnli_audit.frontends.cli.arguments import add_command, add_pairing, read_pairing, write_json, write_out
from bbnli_audit.frontends.cli.projects import find_extensions, find_suite
from bbnli_audit.suites.bbnli import FIRST_DATA, OWN_DATA, Bbnli
from bbnli_audit.suites.check import Finding, check_files, check_items
from bbnli_audit.suites.json_file import read_object
from bbnli_audit.suites.probe import find_controls, probe_items
from bbnli_audit.suites.protocol import Suite
from bbnli_audit.suites.quad_file import QuadFile
from bbnli_audit.suites.registry import BUILT_IN, DEFAULT, DIVISIONS
from bbnli_audit.suites.template_file import BIAS, CONTROL

N_EXAMPLES = 3


def add_parser(commands: Any) -> None:
    parser = add_command(
        commands,
        "suites",
        None,
        what="list and show the subtopics, look for faults in the data, or write the texts",
        description="Shows what can be audited. Only `show --reveal` and `texts` print its sentences (stereotypes).",
        examples=("bbnli-audit suites list", "bbnli-audit suites show bbnli gender/man_is_to_programmer"),
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = _add_action(
        actions, "list", run_list, "list subtopics with their numbers of pairs, clusters and controls"
    )
    listing.set_defaults(suite=None)  # None: no suite was given, so run_list also names the other suites
    what = "show what a subtopic measures and what it is made of"
    show = _add_action(actions, "show", run_show, what, "bbnli gender/man_is_to_programmer --reveal")
    show.add_argument("subtopic", nargs="?", help="such as gender/man_is_to_programmer (default: all)")
    show.add_argument("--reveal", action="store_true", help=f"show the groups and {N_EXAMPLES} pairs as sentences")
    check = _add_action(actions, "check", run_check, "look for faults in the templates", "bbnli --data DIR")
    check.description = "Looks for faults in the templates. Ends with 1 when there are any."
    told = "published BBNLI files, none of whose templates may recur (docs/suites.md)"
    check.add_argument("--published", metavar="DIR", type=Path, help=told)
    what = "write the texts that an audit needs, for --model=predictions:FILE"
    texts = _add_action(actions, "texts", run_texts, what, "bbnli --output texts.csv", has_json=False)
    add_pairing(texts.add_argument)
    texts.add_argument("--output", metavar="FILE", type=Path, help=".csv or .jsonl (default: CSV on stdout)")


def _add_action(
    actions: Any, name: str, run: Any, what: str, example: str = "", *, has_json: bool = True
) -> argparse.ArgumentParser:
    command = f"bbnli-audit suites {name}"
    examples = (command, f"{command} {example}") if example else (command,)
    description = f"{what[0].upper()}{what[1:]}."
    parser = add_command(actions, name, run, what=what, description=description, examples=examples)
    parser.add_argument("suite", nargs="?", default=DEFAULT, help=f"the suite (default: {DEFAULT})")
    parser.add_argument("--data", metavar="DIR", type=Path, help="its data (default: our own)")
    if has_json:
        parser.add_argument("--json", action="store_true", help="print one JSON document instead (docs/commands.md)")
    return parser


def run_list(arguments: argparse.Namespace) -> int:
    is_default = arguments.suite is None
    arguments.suite = arguments.suite or DEFAULT
    suite, other = _open_both(arguments)
    rows = [_count(suite, other, subtopic) for subtopic in suite.subtopics()]
    if _is_written_as_json(arguments, suite, subtopics=rows):
        return 0
    print(printable(f"{suite.name} {suite.version}, sha256 {suite.sha256}"))
    print(f"{'subtopic':<44}{'pairs':>7}{'clusters':>10}{'pairs (hypothesis)':>20}{'controls E/N/C':>18}")
    for row in rows:
        print(
            f"{row['path']:<44}{row['n_pairs']:>7}{row['n_clusters']:>10}{row['n_pairs_hypothesis']:>20}"
            f"{'/'.join(map(str, row['controls'].values())):>18}"
        )
        for annotation in row["annotations"]:
            print(printable(f"    note: {annotation}"))
    if is_default:
        others = [name for name in (*BUILT_IN, *DIVISIONS) if name != DEFAULT]
        with suppress(OptionError):  # ignore a project that pytest cannot load
            others += [each.name for each in find_extensions().suites]
        print(f"Other suites: {', '.join(others)}. To list one: bbnli-audit suites list NAME")
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    if arguments.subtopic is None and "/" in arguments.suite:  # `show gender/man_is_to_programmer`
        first = arguments.suite.partition("/")[0]
        arguments.subtopic, arguments.suite = arguments.suite, first if first in BUILT_IN else DEFAULT
    suite, other = _open_both(arguments)
    chosen = suite.subtopics() if arguments.subtopic is None else [find_subtopic(suite, arguments.subtopic)]
    rows = [{**_count(suite, other, subtopic), **_describe(suite, subtopic, arguments.reveal)} for subtopic in chosen]
    if _is_written_as_json(arguments, suite, subtopics=rows):
        return 0
    print(printable(f"{suite.name} {suite.version}, sha256 {suite.sha256}"))
    for row in rows:
        _print_subtopic(row)
    if not arguments.reveal:
        print("\nGroups and sentences are hidden; --reveal shows them.")
    return 0


def run_check(arguments: argparse.Namespace) -> int:
    suite = _open(arguments)
    if isinstance(suite, Bbnli):
        findings, n, what = _check(suite, arguments.published), len(suite.files()), "file"
    else:
        findings, n, what = check_items(suite), len(suite.subtopics()), "subtopic"
    if not _is_written_as_json(arguments, suite, **{f"n_{what}s": n}, findings=[each._asdict() for each in findings]):
        for finding in findings:
            print(printable(str(finding)))
        found = f"{counted(len(findings), 'finding')} in " if findings else ""
        print(f"{found}{counted(n, what)}{'' if findings else ', no finding'}.")
    return 1 if findings else 0


def _check(suite: Bbnli, published: Path | None) -> list[Finding]:
    from bbnli_audit.suites.check_quads import check_quads

    files = suite.files()
    quads = {path: file for path, file in files.items() if isinstance(file, QuadFile)}
    others = [file for file in files.values() if not isinstance(file, QuadFile)]
    theirs = Bbnli(published).templates() if published is not None else ()
    texts = [template for file in theirs for _, template in file.entries()]
    return [*(check_quads(quads, texts) if quads else ()), *(check_files(others) if others else ())]


def run_texts(arguments: argparse.Namespace) -> int:
    path: Path | None = arguments.output
    suffix = ".csv" if path is None else path.suffix.lower()
    if suffix not in (".csv", ".jsonl"):
        raise OptionError(f"--output={path}: the name must end in .csv or .jsonl.")
    texts = needed_texts(_open(arguments, read_pairing(arguments)))
    if suffix == ".csv":
        out = StringIO()
        write_csv(out, TextPair._fields, texts)
        written = out.getvalue()
    else:
        written = "".join(f"{json.dumps(text._asdict(), ensure_ascii=False)}\n" for text in texts)
    if path is None:
        write_out(written)
        return 0
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(written)
    except FileExistsError as exc:
        fault = "is there already and may hold probabilities by now"
        raise OptionError(f"--output={path}: {fault}. Remove it, or choose another name.") from exc
    except OSError as exc:
        raise OptionError(f"--output={path}: cannot be written: {exc.strerror}.") from exc
    next_step = f"Add the columns {', '.join(Label)}, then: pytest --model=predictions:{path}"
    print(f"Written to {path}: {counted(len(texts), 'text')}. {next_step}")
    return 0


def needed_texts(suite: Suite) -> list[TextPair]:
    """Return the distinct texts that an audit predicts. They are sorted, so their order reveals no side or label."""
    items = {subtopic: suite.items(subtopic) for subtopic in suite.subtopics()}
    controls = find_controls([suite], lambda _, subtopic: items[subtopic])
    texts = {item.text for item in (*probe_items(), *controls)}
    pairs = [pair for each in items.values() for pair in each.usable]
    pairs += [pair.reference for pair in pairs if pair.reference is not None]
    texts.update(text for pair in pairs for text in (pair.pro, pair.anti))
    texts.update(text for each in items.values() for text in each.open_texts)
    return sorted(texts)


def find_subtopic(suite: Suite, name: str) -> Subtopic:
    """Find a subtopic by its path, with or without the suite. An alias may stand for the subtopic's name."""
    known: dict[str, Subtopic] = {}
    for subtopic in suite.subtopics():
        for path in (subtopic.path, *(f"{suite.name}/{subtopic.domain}/{alias}" for alias in subtopic.aliases)):
            known[path] = known[path.removeprefix(f"{suite.name}/")] = subtopic
    if name not in known:
        # Compare with the last parts of each known path: as many parts as `name` has.
        n_parts = name.count("/") + 1
        forms = {"/".join(path.split("/")[-n_parts:]): path for path in known}
        near = get_close_matches(name, forms, n=1)
        hint = f"Did you mean {forms[near[0]]!r}?" if near else f"See: bbnli-audit suites list {suite.name}"
        raise OptionError(f"The suite {suite.name!r} has no subtopic {name!r}. {hint}")
    return known[name]


def _open(arguments: argparse.Namespace, pairing: Pairing | None = None) -> Suite:
    return find_suite(arguments.suite, arguments.data, pairing)


def _open_both(arguments: argparse.Namespace) -> tuple[Suite, Suite]:
    """Open `bbnli` or `bbnli@1` twice: as usual, and with the premise fixed. Return any other suite twice as it is."""
    suite = _open(arguments)
    return suite, _open(arguments, Pairing.HYPOTHESIS) if isinstance(suite, Bbnli) else suite


def _is_written_as_json(arguments: argparse.Namespace, suite: Suite, **content: object) -> bool:
    if arguments.json:
        write_json({"suite": suite.name, "version": suite.version, "sha256": suite.sha256, **content})
    return bool(arguments.json)


def _count(suite: Suite, other: Suite, subtopic: Subtopic) -> dict[str, Any]:
    """Count the items of a subtopic. `other` is `suite` with the premise fixed."""
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


def _describe(suite: Suite, subtopic: Subtopic, is_revealed: bool) -> dict[str, Any]:
    items = suite.items(subtopic)
    examples = items.usable[:N_EXAMPLES]
    pairs = [
        {"id": pair.id, "cluster": pair.cluster, "pro": pair.pro._asdict(), "anti": pair.anti._asdict()}
        for pair in examples
    ]
    return {
        **(_describe_file(suite, subtopic, is_revealed) if isinstance(suite, Bbnli) else {}),
        "n_identical": items.n_identical,
        "n_duplicates": items.n_duplicates,
        "pair_ids": [pair.id for pair in examples],
        **({"pairs": pairs} if is_revealed else {}),
    }


def _describe_file(suite: Bbnli, subtopic: Subtopic, is_revealed: bool) -> dict[str, Any]:
    path, file = suite.file(subtopic)
    # Our own files describe the stereotype without stating it. A user's file may state it.
    may_show = is_revealed or suite.folder in (OWN_DATA, FIRST_DATA)
    about = read_object(path, "the keys of a subtopic.") if may_show else {}
    phenomenon = about.get("stereotype", about.get("phenomenon"))
    return {
        "phenomenon": phenomenon if isinstance(phenomenon, str) else None,
        "templates": {"premise": len(file.premises), BIAS: len(file.hypotheses), CONTROL: len(file.controls)},
        "sources": [f"{each.who} ({each.year}), {each.title}" for each in getattr(file, "sources", ())],
        **({"groups": list(file.group_names)} if is_revealed else {}),
    }


def _print_subtopic(row: dict[str, Any]) -> None:
    print(f"\n{row['path']}")
    counts, clusters = row.get("templates"), counted(row["n_clusters"], "cluster")
    lines = {
        "measures": row.get("phenomenon"),
        "also named": ", ".join(row["aliases"]),
        "groups": " / ".join(row.get("groups", ())),
        "pairs": f"{row['n_pairs']} in {clusters}; {row['n_pairs_hypothesis']} with a fixed premise",
        "left out": f"{row['n_identical']} the same on both sides, {counted(row['n_duplicates'], 'duplicate')}",
        "controls": ", ".join(f"{n} {label}" for label, n in row["controls"].items()),
        "templates": counts
        and f"{counts['premise']} premises, {counts[BIAS]} hypotheses, {counts[CONTROL]} control hypotheses",
        "pair ids": f"{', '.join(row['pair_ids'])}, ..." if row["pair_ids"] else "",
    }
    told = [("source", source) for source in row.get("sources", ())]
    told += [("note", annotation) for annotation in row["annotations"]]
    for name, text in (*lines.items(), *told):
        if text:
            print(printable(f"  {name:<11}{text}"))
    for pair in row.get("pairs", ()):
        print(printable(f"  pair {pair['id']} ({pair['cluster']})"))
        for side in ("pro", "anti"):
            print(printable(f"    {side:<6}premise     {pair[side]['premise']}"))
            print(printable(f"{'':<10}hypothesis  {pair[side]['hypothesis']}"))
