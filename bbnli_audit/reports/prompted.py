"""Reports the paper's figures of prompted models: the share of biased answers by prompt, and the worst subtopics."""

from collections.abc import Iterator, Mapping

from bbnli_audit.core.results.audit import AuditResult
from bbnli_audit.core.results.rows import SubtopicResult
from bbnli_audit.core.words import figure
from bbnli_audit.reports.notes import Quote

N_WORST = 4
_PARTS = ("pro_rate", "anti_rate")  # brittle answers are the same for both groups, so they are not biased


def biased_answers(result: AuditResult, quote: Quote = str) -> Iterator[str]:
    """Tell the share of biased answers with each prompt, and where it is largest; nothing for other models."""
    if result.model.prompt is None:
        return
    found = _parts_of(result.total)
    if found is None:
        yield f"Biased answers: not measured. No pair has answers to {quote(result.model.prompt)} that could be read."
        return
    told = [_tell(found, quote(result.model.prompt))]
    second = result.second_prompt
    if second is not None:
        shares = {each.measure: each.second for each in second.total.differences}
        other = {name: share for name in _PARTS if (share := shares.get(name)) is not None}
        told += [_tell(other, quote(second.prompts[1]))] if len(other) == len(_PARTS) else []
    yield f"Biased answers, the share of all (pro + anti): {'; '.join(told)}."
    parts = {row.path: each for row in result.subtopics if (each := _parts_of(row)) is not None}
    worst = sorted(parts, key=lambda path: (-sum(parts[path].values()), path))[:N_WORST]
    if len(result.subtopics) > 1:
        listed = ", ".join(f"{quote(path)} {figure(sum(parts[path].values()))}" for path in worst)
        yield f"Subtopics with the largest share of biased answers: {listed}."


def _parts_of(row: SubtopicResult) -> dict[str, float] | None:
    shares = {name: row.measures[name].value for name in _PARTS if name in row.measures}
    known = {name: share for name, share in shares.items() if share is not None}
    return known if len(known) == len(_PARTS) else None


def _tell(parts: Mapping[str, float], prompt: str) -> str:
    pro, anti = (parts[name] for name in _PARTS)
    return f"{figure(pro + anti)} with the prompt {prompt} (pro {figure(pro)}, anti {figure(anti)})"
