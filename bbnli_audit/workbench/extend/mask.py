"""Step 1, `mask`: proposes hypothesis templates with one mask each, or checks templates that people wrote."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError, suggest
from bbnli_audit.suites.template_file import PLACEHOLDER, TemplateFile
from bbnli_audit.workbench.extend.table import MaskedTemplate, path_of, read_table
from bbnli_audit.workbench.workspace import Counts, count_by_subtopic

MASK = "[MASK]"
GROUPS = ("GROUP1", "GROUP2")
# The strategies: mask a verb, mask the placeholder of a word list, or add a mask before such a placeholder.
VERB, SLOT, ADDED = "verb", "slot", "added"
STRATEGIES = (VERB, SLOT, ADDED)

_AFTER_GROUP = re.compile(r"\{\{\s*GROUP[12]\s*\}\}(?P<rest>(?: [a-z']+)+)")
# After a plural noun, a verb does not end in -s. So if a word in -s follows a group, that word is a noun, and the
# group is an adjective.
_GROUP_AND_NOUN = re.compile(r"\{\{\s*GROUP[12]\s*\}\} (?:[a-z]+s|[a-z]*men|people)\b")
_LISTS = json.loads((Path(__file__).parent / "assets" / "verb_words.json").read_text(encoding="utf-8"))
_WORDS = {name: frozenset(" ".join(found["words"]).split()) for name, found in _LISTS.items()}


def propose(file: TemplateFile, strategies: Sequence[str] = STRATEGIES) -> Iterator[MaskedTemplate]:
    """Propose masked templates of a subtopic. Hypotheses without a group are left out: they have no counterfactual."""
    with_noun = [_GROUP_AND_NOUN.search(one.template) is not None for one in file.hypotheses]
    is_adjective = 2 * sum(with_noun) > len(with_noun)
    seen: set[str] = set()
    for index, hypothesis in enumerate(file.hypotheses):
        template = hypothesis.template
        if not names_group(template):
            continue
        found: dict[str, str] = {}
        if VERB in strategies:
            found |= dict.fromkeys(mask_verbs(template, is_adjective=is_adjective), VERB)
        for slot in PLACEHOLDER.finditer(template):
            if slot[1] in GROUPS:
                continue
            start, end = slot.span()
            if SLOT in strategies:
                found.setdefault(f"{template[:start]}{MASK}{template[end:]}", SLOT)
            if ADDED in strategies and start > 0:  # a word added at the start would make the capital wrong
                found.setdefault(f"{template[:start]}{MASK} {template[start:]}", ADDED)
        for masked, strategy in found.items():
            if names_group(masked) and masked not in seen:
                seen.add(masked)
                yield MaskedTemplate(file.domain, file.name, f"h{index:02d}", strategy, masked)


def mask_verbs(template: str, *, is_adjective: bool = False) -> Iterator[str]:
    """Mask the probable verb of each group, one verb at a time.

    There is no parser. The first word after the group counts as its verb. Lists name the words that are passed over,
    and the words that show that there is no verb. After a form of "be", only -ing and -ed forms count. So people must
    check the result. With `is_adjective`, the group is an adjective, as in "northern towns", and the noun after the
    group is passed over.
    """
    for after in _AFTER_GROUP.finditer(template):
        words = list(re.finditer(r"[a-z']+", after["rest"]))[is_adjective:]
        verb = _find_verb([word[0] for word in words])
        if verb is not None:
            start, end = (after.start("rest") + place for place in words[verb].span())
            yield f"{template[:start]}{MASK}{template[end:]}"


def _find_verb(words: Sequence[str]) -> int | None:
    after_copula = False
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in _WORDS["have"] and following in _WORDS["determiners"]:
            return place
        if word in _WORDS["copula"] | _WORDS["skipped"]:
            after_copula = after_copula or word in _WORDS["copula"]
            continue
        if word in _WORDS["no_verb"] or (after_copula and not word.endswith(("ing", "ed"))):
            return None
        return place
    return None


def read_templates(path: Path, files: Sequence[TemplateFile]) -> list[MaskedTemplate]:
    """Read masked templates that people may have written or edited. Refuse a file that the next steps could not use."""
    known = {file.local_path: file for file in files}
    seen: set[tuple[str, str]] = set()

    def find_fault(row: MaskedTemplate) -> str | None:
        fault = _find_fault(row, known)
        if fault is None and (path_of(row), row.masked) in seen:
            return "has the same masked template as an earlier line. Remove one."
        seen.add((path_of(row), row.masked))
        return fault

    rows = read_table(path, MaskedTemplate, find_fault)
    if not rows:
        raise WorkbenchError(f"{path}: has no masked templates, so there is nothing to extend.")
    return rows


def _find_fault(row: MaskedTemplate, known: Mapping[str, TemplateFile]) -> str | None:
    """Say what is wrong with a row, without quoting a sentence."""
    file = known.get(path_of(row))
    if file is None:
        return f"the suite has no subtopic {path_of(row)!r}. {suggest(path_of(row), known)}"
    if not re.fullmatch(r"h\d+", row.template) or int(row.template[1:]) >= len(file.hypotheses):
        last = f"h{len(file.hypotheses) - 1:02d}"
        return f"template is {row.template!r:.20}; expected the hypothesis it comes from, h00 to {last}."
    n_masks = row.masked.count(MASK)
    if n_masks != 1:
        return f"the masked template has {n_masks} masks; expected one {MASK}."
    for slot in sorted({*PLACEHOLDER.findall(row.masked)} - {*GROUPS, *file.words}):
        hint = suggest(slot, (*GROUPS, *file.words))
        return f"uses {{{{{slot}}}}}, which is neither a group nor a word list of the subtopic. {hint}"
    if not names_group(row.masked):
        return "names no group ({{GROUP1}} or {{GROUP2}}), so exchanging the groups would change nothing."
    return None


def names_group(template: str) -> bool:
    return any(slot in GROUPS for slot in PLACEHOLDER.findall(template))


def count(rows: Sequence[MaskedTemplate], files: Sequence[TemplateFile]) -> Counts:
    hypotheses = {file.local_path: len(file.hypotheses) for file in files}
    by_strategy = {name: [path_of(row) for row in rows if row.strategy == name] for name in STRATEGIES}
    return count_by_subtopic({"hypotheses": hypotheses, "masked_templates": map(path_of, rows), **by_strategy})
