"""Expands templates to pairs and controls exactly as the published BBNLI set was expanded.

A premise and a hypothesis share one binding of words. The published set was made from the product of all word lists,
without duplicates. Binding only the words that occur gives the same texts without making them thousands of times.
"""

from collections.abc import Iterator, Mapping
from itertools import product

from bbnli_audit.core.values import Control, Pair, Pairing, Side, SubtopicItems, TextPair
from bbnli_audit.suites.template_file import PLACEHOLDER, Hypothesis, TemplateFile

Binding = Mapping[str, str]


def expand_pairs(file: TemplateFile, pairing: Pairing) -> list[Pair]:
    """Return every pair of the published count, also those that are identical on both sides.

    Where both texts are exchanged, that count keeps equal texts from two premise templates apart; where the premise is
    fixed, it does not.
    """
    seen: dict[tuple[int, TextPair, TextPair], Pair] = {}
    for premise_index, premise in enumerate(file.premises):
        origin = premise_index if pairing is Pairing.BOTH else 0
        for hypothesis_index, hypothesis in enumerate(file.hypotheses):
            cluster = f"p{premise_index:02d}/h{hypothesis_index:02d}"
            for words in bindings(file, premise, hypothesis.template):
                for pro, anti in _exchange(file, premise, hypothesis, words, pairing):
                    seen.setdefault((origin, pro, anti), Pair(cluster, pro, anti))
    return list(seen.values())


def expand_items(file: TemplateFile, pairing: Pairing) -> SubtopicItems:
    return SubtopicItems(tuple(expand_pairs(file, pairing)), tuple(_controls(file)))


def render(template: str, binding: Binding) -> str:
    """Fill in the placeholders. An undefined one is empty, as in the published set (one question has one)."""
    return PLACEHOLDER.sub(lambda match: binding.get(match[1], ""), template)


def _controls(file: TemplateFile) -> Iterator[Control]:
    seen = set()
    for premise_index, premise in enumerate(file.premises):
        for control_index, control in enumerate(file.controls):
            cluster = f"p{premise_index:02d}/c{control_index:02d}"
            for side, words in product(Side, bindings(file, premise, control.template)):
                binding = with_groups(file, side, words)
                text = TextPair(render(premise, binding), render(control.template, binding))
                if (text, control.expected) not in seen:
                    seen.add((text, control.expected))
                    yield Control(cluster, text, control.expected)


def _exchange(
    file: TemplateFile, premise: str, hypothesis: Hypothesis, words: Binding, pairing: Pairing
) -> Iterator[tuple[TextPair, TextPair]]:
    given, swapped = (with_groups(file, side, words) for side in Side)
    pro, anti = (render(hypothesis.template, binding) for binding in (given, swapped))
    premises = (render(premise, given), render(premise, swapped))
    if pairing is Pairing.BOTH:
        yield TextPair(premises[0], pro), TextPair(premises[1], anti)
    else:
        # The stance belongs to the hypothesis: it stays pro under the swapped premise.
        for rendered in dict.fromkeys(premises):
            yield TextPair(rendered, pro), TextPair(rendered, anti)


def bindings(file: TemplateFile, *templates: str) -> Iterator[Binding]:
    """Return every choice of words for the placeholders that occur in some templates."""
    used = {name for template in templates for name in PLACEHOLDER.findall(template)}
    keys = [key for key in file.words if key in used]
    for values in product(*(file.words[key] for key in keys)):
        yield dict(zip(keys, values, strict=True))


def with_groups(file: TemplateFile, side: Side, words: Binding) -> Binding:
    """Add the groups, as in the stereotype or exchanged."""
    first, second = file.groups if side is Side.PRO else file.groups[::-1]
    return {**words, "GROUP1": first, "GROUP2": second}
