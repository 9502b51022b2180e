from collections.abc import Callable

import numpy as np

from bbnli_audit.measures.drivers import DrivingCluster, DrivingWord, driving_clusters, driving_words, worst_pairs
from bbnli_audit.measures.readings.table import Floats, PairTable
from bbnli_audit.measures.registry import find_measure
from tests.strategies import table_of

E, N, C = "entailment", "neutral", "contradiction"
PRO, ANTI, BRITTLENESS = (find_measure(name).count for name in ("pro_rate", "anti_rate", "brittleness_rate"))


def words_of(table: PairTable, count: Callable[[PairTable], Floats], most: int = 5) -> list[DrivingWord]:
    return driving_words(table.frame, count(table), most)


def test_clusters_that_add_most_come_first() -> None:
    table = table_of([(E, N), (E, C), (N, N), (E, N), (E, E)], [0, 1, 1, 2, 2])
    assert driving_clusters(table.frame, PRO(table), most=2) == [DrivingCluster("c1", 2, 4), DrivingCluster("c0", 1, 2)]
    assert driving_clusters(table.frame, BRITTLENESS(table)) == [DrivingCluster("c2", 2, 4)]
    assert driving_clusters(table.frame, ANTI(table)) == []


def test_worst_pairs_count_towards_the_measure_and_are_the_most_confident() -> None:
    table = table_of(
        [(E, N), (E, C), (C, N), (E, C)], pro_neutral=[0.1, 0.3, 0.0, 0.1], anti_neutral=[0.9, 0.1, 0.9, 0.1]
    )
    assert list(worst_pairs(table, PRO(table))["pair_id"]) == ["0003", "0001", "0000"]
    assert list(worst_pairs(table, PRO(table), most=1)["pair_id"]) == ["0003"]
    assert list(worst_pairs(table, ANTI(table))["pair_id"]) == ["0002"]


def _with_texts(labels: list[tuple[str, str]], premises: list[str]) -> PairTable:
    return table_of(labels, pro_premise=premises, pro_hypothesis="Zorbs juggle.")


def test_a_planted_word_is_found() -> None:
    nimble, plain = "A Nimble crowd came.", "A crowd came."
    table = _with_texts([(E, C)] * 5 + [(N, N)] * 5 + [(E, N)] * 2 + [(N, N)] * 8, [nimble] * 10 + [plain] * 10)
    assert words_of(table, PRO) == [DrivingWord("nimble", 10, 20, 2, 20)]
    assert words_of(table, PRO)[0].excess == 4
    assert words_of(table, ANTI) == words_of(table, BRITTLENESS) == []


def test_a_word_in_all_pairs_or_in_too_few_drives_nothing() -> None:
    table = _with_texts([(E, C)] * 4 + [(N, N)] * 6, ["rare crowd"] * 4 + ["crowd"] * 6)
    assert words_of(table, PRO) == []
    more = _with_texts([(E, C)] * 5 + [(N, N)] * 6, ["rare crowd"] * 5 + ["crowd"] * 6)
    assert [word.word for word in words_of(more, PRO)] == ["rare"]
    assert words_of(more.take(np.arange(len(more)) > 0), PRO) == []


def test_a_word_with_a_smaller_share_than_the_rest_is_left_out() -> None:
    table = _with_texts([(N, N)] * 5 + [(E, N)] * 5, ["calm crowd"] * 5 + ["crowd"] * 5)
    assert words_of(table, PRO) == []


def test_a_telling_word_comes_before_one_that_nearly_every_pair_has() -> None:
    labels = [(E, C)] * 6 + [(E, N)] * 4 + [(N, N)] * 10
    premises = ["nimble usual"] * 6 + ["usual"] * 9 + ["other"] * 5
    assert [word.word for word in words_of(_with_texts(labels, premises), PRO)] == ["nimble", "usual"]


def test_words_of_the_same_pairs_are_one_and_ties_go_by_the_word() -> None:
    labels = [(C, E)] * 5 + [(C, E)] * 5 + [(N, N)] * 10
    premises = ["red moon's"] * 5 + ["blue"] * 5 + ["green"] * 10
    words = words_of(_with_texts(labels, premises), ANTI)
    assert [word.word for word in words] == ["blue", "moon's, red"]
    assert [word.word for word in words_of(_with_texts(labels, premises), ANTI, most=1)] == ["blue"]


def test_no_pairs_no_words() -> None:
    assert words_of(_with_texts([], []), PRO) == []
