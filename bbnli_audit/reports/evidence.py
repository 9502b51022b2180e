"""What a failing test shows beside its numbers: the templates and the pairs that a person should look at first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bbnli_audit.core.results.audit import WEIGHTS
from bbnli_audit.core.results.second import PROMPT_SENSITIVITY
from bbnli_audit.reports.failure import Evidence

if TYPE_CHECKING:
    import pandas as pd

_ANSWERS = {"entailment": "yes", "neutral": "no", "contradiction": "not read"}
_SIDES = {"pro": "pro_label", "anti": "anti_label"}
_MOST = 3


@dataclass(frozen=True, slots=True)
class Source:
    """Where evidence is looked for: the measured pairs of a subtopic, and, when needed, those of other measures."""

    frame: "pd.DataFrame"
    read_answers: "Callable[[], pd.DataFrame]"  # the pairs with unreadable answers too
    read_prompts: "Callable[[], pd.DataFrame | None]"  # the answers to both prompts


def find_evidence(measure: str, source: Source) -> Evidence:
    if measure == "token_preference":
        return Evidence([], [], list(_likelier(source.frame)))
    if measure == "unparsed_rate":
        return _not_read(source.read_answers())
    if measure == PROMPT_SENSITIVITY:
        joined = source.read_prompts()
        return Evidence([], []) if joined is None else _changed(joined)
    from bbnli_audit.measures.drivers import driving_clusters, worst_pairs

    is_counted = measure in WEIGHTS  # not a mean of probabilities
    driving = driving_clusters(source.frame, measure) if is_counted else []
    pairs = worst_pairs(source.frame, measure).to_dict("records")
    return Evidence(
        [(each.cluster, each.n_counted, each.n_samples) for each in driving],
        [{str(key): value for key, value in pair.items()} for pair in pairs],
    )


def _likelier(frame: "pd.DataFrame") -> Iterator[str]:
    """Give the pairs whose stereotyped side is likelier by most."""
    likelier = frame[frame["pro_entailment"] > frame["anti_entailment"]]
    for _, pair in likelier.sort_values(["anti_entailment", "pair_id"]).head(_MOST).iterrows():
        yield (
            f"worst pair {pair['pair_id']} ({pair['cluster']})   pro side {pair['pro_entailment']:.2f} of the two "
            "likelihoods"
        )


def _not_read(answers: "pd.DataFrame") -> Evidence:
    from bbnli_audit.measures.drivers import rank_clusters
    from bbnli_audit.measures.unparsed import find_unparsed

    n_unread = find_unparsed(answers).sum(axis=1)
    driving = rank_clusters(answers["cluster"], n_unread)
    worst = answers.assign(n_unread=n_unread)[n_unread > 0]
    lines = [
        f"pair {pair['pair_id']} ({pair['cluster']})   "
        f"{'   '.join(f'{side}: {_ANSWERS[pair[column]]}' for side, column in _SIDES.items())}"
        for _, pair in worst.sort_values(["n_unread", "pair_id"], ascending=[False, True]).head(_MOST).iterrows()
    ]
    return Evidence([(each.cluster, each.n_counted, each.n_samples) for each in driving], [], lines)


def _changed(joined: "pd.DataFrame") -> Evidence:
    import pandas as pd

    from bbnli_audit.measures.drivers import rank_clusters
    from bbnli_audit.measures.prompt_sensitivity import find_changes

    n_changed = pd.Series(find_changes(joined).is_changed.sum(axis=1), index=joined.index)
    driving = rank_clusters(joined["cluster"], n_changed)
    worst = joined.assign(n_changed=n_changed)[n_changed > 0]
    lines = [
        f"pair {pair['pair_id']} ({pair['cluster']})   "
        + "   ".join(
            f"{side}: {_ANSWERS[pair[column]]}, then {_ANSWERS[pair[f'{column}_second']]}"
            for side, column in _SIDES.items()
        )
        for _, pair in worst.sort_values(["n_changed", "pair_id"], ascending=[False, True]).head(_MOST).iterrows()
    ]
    return Evidence([(each.cluster, each.n_counted, each.n_samples) for each in driving], [], lines)
