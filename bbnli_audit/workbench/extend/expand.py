"""Step 2, `expand`: puts groups and words into premises and masked hypotheses, as the suite does with its templates."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from bbnli_audit.core.values import Side
from bbnli_audit.suites.template_file import TemplateFile, bindings, render, with_groups
from bbnli_audit.workbench.extend.table import MaskedTemplate, Sample, path_of
from bbnli_audit.workbench.workspace import Counts, count_by_subtopic


def expand(
    files: Sequence[TemplateFile], templates: Iterable[MaskedTemplate], n_premises: int | None = None
) -> list[Sample]:
    """Return each distinct sample once. A sample is a premise and a masked hypothesis with the same groups and words.

    `n_premises` limits how many premises of each subtopic are used. They are evenly spread over the subtopic's file.
    """
    templates = list(templates)
    samples: dict[tuple[str, str, str], Sample] = {}
    for file in files:
        of_file = [template for template in templates if path_of(template) == file.local_path]
        for sample in _expand(file, of_file, n_premises):
            samples.setdefault((file.local_path, sample.premise, sample.masked), sample)
    return list(samples.values())


def _expand(file: TemplateFile, templates: Sequence[MaskedTemplate], n_premises: int | None) -> Iterator[Sample]:
    n_all = len(file.premises)
    n = n_all if n_premises is None else min(n_premises, n_all)
    for index in (place * n_all // n for place in range(n)):
        for template in templates:
            cluster = f"p{index:02d}/{template.template}"
            for words in bindings(file, file.premises[index], template.masked):
                groups = {side: with_groups(file, side, words) for side in Side}
                for side, other in ((Side.PRO, Side.ANTI), (Side.ANTI, Side.PRO)):
                    premise = render(file.premises[index], groups[side])
                    masked, counterpart = (render(template.masked, groups[one]) for one in (side, other))
                    name = sha256(f"{premise}\t{masked}".encode()).hexdigest()[:12]
                    source = (file.domain, file.name, name, cluster, template.strategy, side.value)
                    yield Sample(*source, premise, masked, counterpart)


def count(samples: Sequence[Sample]) -> Counts:
    hypotheses = {(path_of(sample), sample.masked) for sample in samples}
    return count_by_subtopic(
        {"masked_samples": map(path_of, samples), "masked_hypotheses": [path for path, _ in hypotheses]}
    )
