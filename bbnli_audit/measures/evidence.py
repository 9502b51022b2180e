"""What a failing test shows beside its numbers: the templates and the pairs to look at first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bbnli_audit.measures.drivers import Counting, DrivingCluster, driving_clusters, rank_clusters, worst_pairs
from bbnli_audit.measures.readings.table import SIDES, PairTable

__all__ = ["MOST", "Evidence", "counted_evidence", "rank_clusters", "valued_evidence"]

MOST = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """Clusters that drive a measure, and by pair id a line about each pair to look at."""

    clusters: Sequence[DrivingCluster] = ()
    pairs: Mapping[str, str] = field(default_factory=dict)


def counted_evidence(measure: Counting, table: PairTable) -> Evidence:
    """For measures that count samples: the clusters that add most, and the worst pairs."""
    return Evidence(driving_clusters(table, measure, MOST), _worst(measure, table))


def valued_evidence(measure: Counting, table: PairTable) -> Evidence:
    """For means of probabilities: the worst pairs alone."""
    return Evidence([], _worst(measure, table))


def _worst(measure: Counting, table: PairTable) -> dict[str, str]:
    tell = table.reading.tell
    return {
        str(pair["pair_id"]): f"worst pair {pair['pair_id']} ({pair['cluster']})   "
        + "   ".join(f"{side}: {tell(pair, side)}" for side in SIDES)
        + "   (expected neutral)"
        for pair in worst_pairs(table, measure, MOST).to_dict("records")
    }
