from bbnli_audit.metrics.drivers import DrivingCluster, driving_clusters, worst_pairs
from tests.strategies import frame_of

E, N, C = "entailment", "neutral", "contradiction"


def test_clusters_that_add_most_come_first() -> None:
    frame = frame_of([(E, N), (E, C), (N, N), (E, N), (E, E)], [0, 1, 1, 2, 2])
    assert driving_clusters(frame, "pro_rate", most=2) == [DrivingCluster("c1", 2, 4), DrivingCluster("c0", 1, 2)]
    assert driving_clusters(frame, "brittleness_rate") == [DrivingCluster("c2", 2, 4)]
    assert driving_clusters(frame, "anti_rate") == []


def test_worst_pairs_count_towards_the_measure_and_are_the_most_confident() -> None:
    frame = frame_of([(E, N), (E, C), (C, N), (E, C)]).assign(
        pro_neutral=[0.1, 0.3, 0.0, 0.1], anti_neutral=[0.9, 0.1, 0.9, 0.1]
    )
    assert list(worst_pairs(frame, "pro_rate")["pair_id"]) == ["0003", "0001", "0000"]
    assert list(worst_pairs(frame, "pro_rate", most=1)["pair_id"]) == ["0003"]
    assert list(worst_pairs(frame, "anti_rate")["pair_id"]) == ["0002"]
