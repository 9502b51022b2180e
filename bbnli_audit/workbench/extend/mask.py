"""Step 1, `mask`: proposes hypothesis templates with one mask, or checks those that somebody wrote."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bbnli_audit.core.errors import WorkbenchError, suggest
from bbnli_audit.suites.template_file import PLACEHOLDER, TemplateFile
from bbnli_audit.workbench.extend.table import MaskedTemplate, read_lines

MASK = "[MASK]"
GROUPS = ("GROUP1", "GROUP2")
# A verb masked; a word of a list masked; a mask added beside such a word.
VERB, SLOT, ADDED = "verb", "slot", "added"
STRATEGIES = (VERB, SLOT, ADDED)

_AFTER_GROUP = re.compile(r"\{\{\s*GROUP[12]\s*\}\}(?P<rest>(?: [a-z']+)+)")
# A verb after a plural has no -s, so what has one is a noun.
_GROUP_AND_NOUN = re.compile(r"\{\{\s*GROUP[12]\s*\}\} (?:[a-z]+s|[a-z]*men|people)\b")
_COPULA = frozenset("am are be been being is was were".split())  # noqa: SIM905 - as one reads them
_SKIPPED = _COPULA | frozenset(
    "all also always can could do does generally had has have may might mostly must never often rarely rather really "  # noqa: SIM905
    "seldom should still tend that to usually who will would".split()
)
_NO_VERB = frozenset(
    "a about an and any as at because better both but by during for from if in into instead less like likely more most "  # noqa: SIM905
    "no not of on or other out over rather some than the their them then there these they this those too under up when "
    "where which while with within without worse".split()
)
_HAVE = frozenset(("have", "has", "had"))
_DETERMINERS = frozenset(("a", "an", "the", "no", "some", "more", "less", "their", "many", "few", "several"))


def propose(file: TemplateFile, strategies: Sequence[str] = STRATEGIES) -> Iterator[MaskedTemplate]:
    """Propose masked templates of a subtopic, for people to look at.

    A template that names no group in the hypothesis is left out: it has no counterfactual.
    """
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
            if ADDED in strategies and start > 0:  # before a first word its capital would be wrong
                found.setdefault(f"{template[:start]}{MASK} {template[start:]}", ADDED)
        for masked, strategy in found.items():
            if names_group(masked) and masked not in seen:
                seen.add(masked)
                yield MaskedTemplate(file.domain, file.name, f"h{index:02d}", strategy, masked)


def mask_verbs(template: str, *, is_adjective: bool = False) -> Iterator[str]:
    """Mask what looks like the verb that a group does: the first word after the group that can be one.

    There is no parser here: words that cannot be verbs are skipped by lists, and after a form of "be" only -ing and
    -ed forms count. People look at what this finds.

    Args:
        template: A hypothesis.
        is_adjective: Whether a noun follows the group, as in "northern towns".
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
        if word in _HAVE and following in _DETERMINERS:
            return place
        if word in _SKIPPED:
            after_copula = after_copula or word in _COPULA
            continue
        if word in _NO_VERB or (after_copula and not word.endswith(("ing", "ed"))):
            return None
        return place
    return None


def read_templates(path: Path, files: Sequence[TemplateFile]) -> list[MaskedTemplate]:
    """Read masked templates that somebody wrote, and refuse what the next steps could not use.

    Raises:
        WorkbenchError: naming the file, the line and what is wrong there. No message quotes a sentence.
    """
    known = {(file.domain, file.name): file for file in files}
    rows: dict[tuple[str, str, str], MaskedTemplate] = {}
    for line, values in read_lines(path, MaskedTemplate._fields):
        row = MaskedTemplate(**{column: values[column] for column in MaskedTemplate._fields})
        subtopic = known.get((row.domain, row.subtopic))
        fault = _fault(row, subtopic, known)
        if fault is None and (row.domain, row.subtopic, row.masked) in rows:
            fault = "has the same masked template as an earlier line. Remove one."
        if fault is not None:
            raise WorkbenchError(f"{path}:{line}: {fault}")
        rows[row.domain, row.subtopic, row.masked] = row
    if not rows:
        raise WorkbenchError(f"{path}: holds no masked template, so there is nothing to extend.")
    return list(rows.values())


def _fault(row: MaskedTemplate, file: TemplateFile | None, known: "dict[tuple[str, str], TemplateFile]") -> str | None:
    if file is None:
        names = ["/".join(key) for key in known]
        given = f"{row.domain}/{row.subtopic}"
        return f"the suite has no subtopic {given!r}. {suggest(given, names)}"
    if not re.fullmatch(r"h\d+", row.template) or int(row.template[1:]) >= len(file.hypotheses):
        last = f"h{len(file.hypotheses) - 1:02d}"
        return f"template is {row.template!r:.20}; expected which hypothesis it comes from, h00 to {last}."
    n_masks = row.masked.count(MASK)
    if n_masks != 1:
        return f"the masked template has {n_masks} masks; expected one {MASK}."
    slots = set(PLACEHOLDER.findall(row.masked))
    for slot in sorted(slots - {*GROUPS, *file.words}):
        return f"uses {{{{{slot}}}}}, which is no group and no word list of it. {suggest(slot, (*GROUPS, *file.words))}"
    if not names_group(row.masked):
        return "names no group ({{GROUP1}} or {{GROUP2}}), so exchanging the groups would change nothing."
    return None


def names_group(template: str) -> bool:
    return any(slot in GROUPS for slot in PLACEHOLDER.findall(template))


def count(rows: Sequence[MaskedTemplate], files: Sequence[TemplateFile]) -> dict[str, dict[str, int]]:
    """Count hypothesis templates and masked ones, by strategy."""
    strategies: dict[str, Counter[str]] = {}
    for row in rows:
        strategies.setdefault(f"{row.domain}/{row.subtopic}", Counter())[row.strategy] += 1
    counts = {}
    for file in files:
        path = f"{file.domain}/{file.name}"
        found = strategies.get(path, Counter())
        counts[path] = {"hypotheses": len(file.hypotheses), "masked_templates": found.total()}
        counts[path] |= {strategy: found[strategy] for strategy in STRATEGIES}
    return counts
