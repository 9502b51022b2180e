"""Step 2, `expand`: puts groups and words into premises and masked hypotheses, as the suite's own are expanded."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from bbnli_audit.core.values import Side
from bbnli_audit.suites.expansion import bindings, render, with_groups
from bbnli_audit.suites.template_file import TemplateFile
from bbnli_audit.workbench.extend.table import MaskedTemplate, Sample


def expand(
    files: Sequence[TemplateFile], templates: Iterable[MaskedTemplate], n_premises: int | None = None
) -> list[Sample]:
    """Give each distinct sample once: a premise and a masked hypothesis that share one binding of groups and words.

    Args:
        files: The suite.
        templates: Its masked templates.
        n_premises: How many premises of a subtopic are used, evenly spread; all when left out.
    """
    by_subtopic: dict[tuple[str, str], list[MaskedTemplate]] = {}
    for template in templates:
        by_subtopic.setdefault((template.domain, template.subtopic), []).append(template)
    samples: dict[tuple[str, str, str], Sample] = {}
    for file in files:
        for sample in _expand(file, by_subtopic.get((file.domain, file.name), ()), n_premises):
            samples.setdefault((f"{file.domain}/{file.name}", sample.premise, sample.masked), sample)
    return list(samples.values())


def _expand(file: TemplateFile, templates: Sequence[MaskedTemplate], n_premises: int | None) -> Iterator[Sample]:
    n = len(file.premises) if n_premises is None else min(n_premises, len(file.premises))
    for index in (place * len(file.premises) // n for place in range(n)):
        premise = file.premises[index]
        for template in templates:
            for words in bindings(file, premise, template.masked):
                groups = {side: with_groups(file, side, words) for side in Side}
                for side, other in ((Side.PRO, Side.ANTI), (Side.ANTI, Side.PRO)):
                    rendered = render(premise, groups[side])
                    masked, counterpart = (render(template.masked, groups[one]) for one in (side, other))
                    yield Sample(
                        file.domain,
                        file.name,
                        sha256(f"{rendered}\t{masked}".encode()).hexdigest()[:12],
                        f"p{index:02d}/{template.template}",
                        template.strategy,
                        side.value,
                        rendered,
                        masked,
                        counterpart,
                    )


def count(samples: Sequence[Sample]) -> dict[str, dict[str, int]]:
    """Count masked samples, and the distinct masked hypotheses among them."""
    counts: dict[str, dict[str, int]] = {}
    distinct: dict[str, set[str]] = {}
    for sample in samples:
        path = f"{sample.domain}/{sample.subtopic}"
        found = counts.setdefault(path, {"masked_samples": 0, "masked_hypotheses": 0})
        found["masked_samples"] += 1
        distinct.setdefault(path, set()).add(sample.masked)
        found["masked_hypotheses"] = len(distinct[path])
    return counts
