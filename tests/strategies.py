"""What Hypothesis draws for us."""

import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import date
from itertools import cycle
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from bbnli_audit.core.outcomes import CELLS, CellCounts
from bbnli_audit.core.results.audit import AuditResult, Settings
from bbnli_audit.core.results.comparison import Change, Comparison, Growth, LoosenedLimit, Regression
from bbnli_audit.core.results.release import Release
from bbnli_audit.core.results.rows import (
    NO_DATA,
    FastPathCheck,
    Judgement,
    Measured,
    ModelInfo,
    Reliability,
    Skill,
    SubtopicResult,
    SuiteInfo,
    Verdict,
    Waiver,
)
from bbnli_audit.core.values import Label
from bbnli_audit.measures.readings.kinds import LABELS as READ_LABELS
from bbnli_audit.measures.readings.kinds import classify
from bbnli_audit.measures.readings.table import PLACES, SIDES, PairTable

LABELS = [label.value for label in Label]
names = st.text(string.ascii_lowercase + "_", min_size=1, max_size=12)
shares = st.floats(0, 1)


@st.composite
def pair_frames(draw: st.DrawFn, min_size: int = 0, max_size: int = 40) -> pd.DataFrame:
    """Places and labels of the pairs of one subtopic: any labels, any clusters."""
    label = st.sampled_from(LABELS)
    rows = draw(st.lists(st.tuples(label, label, st.integers(0, 6)), min_size=min_size, max_size=max_size))
    return frame_of([(pro, anti) for pro, anti, _ in rows], [cluster for _, _, cluster in rows])


def frame_of(labels: list[tuple[str, str]], clusters: list[int] | None = None) -> pd.DataFrame:
    clusters = clusters if clusters is not None else list(range(len(labels)))
    return pd.DataFrame(
        {
            "suite": "invented",
            "domain": "planets",
            "subtopic": "zorbs",
            "pair_id": [f"{row:04d}" for row in range(len(labels))],
            "cluster": [f"c{cluster}" for cluster in clusters],
            "direction": "",  # tests/properties/test_direction.py has pairs with one
            "pro_label": pd.Series([pro for pro, _ in labels], dtype="str"),
            "anti_label": pd.Series([anti for _, anti in labels], dtype="str"),
        }
    )


def table_of(labels: list[tuple[str, str]], clusters: list[int] | None = None, **columns: Any) -> PairTable:
    """Build the pair table of a classifier that is certain of its labels; keyword arguments replace columns."""
    frame = frame_of(labels, clusters)
    shares = {
        f"{side}_{name}": (frame[f"{side}_label"] == name).astype(float).to_numpy() for side in SIDES for name in LABELS
    }
    frame = frame.assign(outcome=classify(frame), **shares)[[*PLACES, *READ_LABELS.columns]]
    return PairTable(frame.assign(**columns), READ_LABELS)


def pair_tables(min_size: int = 0, max_size: int = 40) -> st.SearchStrategy[PairTable]:
    """Pair tables of classifiers that are certain of their labels."""
    return pair_frames(min_size, max_size).map(
        lambda frame: table_of(
            list(zip(frame["pro_label"], frame["anti_label"], strict=True)),
            [int(cluster[1:]) for cluster in frame["cluster"]],
        )
    )


counts = st.builds(
    lambda numbers: CellCounts(dict(zip(CELLS, numbers, strict=True))),
    st.lists(st.integers(0, 10_000), min_size=9, max_size=9),
)


def _measured(values: st.SearchStrategy[float]) -> st.SearchStrategy[Measured]:
    return st.builds(
        lambda bounds, n: Measured(bounds[1], bounds[0], bounds[2], n),
        st.lists(values, min_size=3, max_size=3).map(sorted),
        st.integers(1, 10_000),
    )


measures = st.just(NO_DATA) | _measured(shares)
differences = _measured(st.floats(-1, 1))
growths = _measured(st.floats(-2, 2)).map(lambda found: Growth(found.value, found.low, found.high, found.n))
judgements = st.builds(
    Judgement,
    measure=names,
    limit=shares,
    verdict=st.sampled_from(Verdict),
    source=st.text(max_size=20),
    times_needed=st.none() | st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)),
    waiver=st.none()
    | st.builds(Waiver, reason=names, owner=names, expires=names, source=names, is_expired=st.booleans()),
    is_corrected=st.booleans(),
)
subtopic_results = st.builds(
    SubtopicResult.of,
    st.tuples(names, names, names).map("/".join),
    counts,
    n_clusters=st.integers(0, 1000),
    measures=st.dictionaries(names, measures, max_size=4),
    control_accuracy=st.none() | shares,
    n_controls=st.integers(0, 1000),
    verdicts=st.lists(judgements, max_size=4).map(tuple),
    n_identical=st.integers(0, 100),
    n_duplicates=st.integers(0, 100),
    n_truncated=st.integers(0, 100),
    n_unparsed=st.integers(0, 100),
)
model_infos = st.builds(
    ModelInfo, name=names, fingerprint=names, kind=names, backend=names, dtype=names, labels=st.just(tuple(LABELS))
)
changes = st.builds(Change, pair_id=names, cluster=names, before=st.sampled_from(CELLS), after=st.sampled_from(CELLS))
regressions = st.builds(
    Regression,
    path=names,
    measure=names,
    margin=shares,
    source=names,
    verdict=st.sampled_from(Verdict),
    baseline=st.none() | shares,
    candidate=st.none() | shares,
    increase=growths,
    p_value=shares,
    p_mcnemar=shares,
    p_adjusted=shares,
    n_shared=st.integers(0, 1000),
    times_needed=st.none() | st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)),
    flipped=st.lists(changes, max_size=2).map(tuple),
    fixed=st.lists(changes, max_size=2).map(tuple),
)
skills = st.builds(
    Skill,
    probe_accuracy=st.none() | shares,
    control_accuracy=st.none() | shares,
    n_controls=st.integers(0, 1000),
    best_constant=shares,
)
settings = st.builds(
    Settings,
    thresholds=names,
    decide=st.sampled_from(["bounds", "point"]),
    confidence=st.floats(0.5, 0.99),
    inconclusive=st.sampled_from(["warn", "fail"]),
    skill=skills,
    versions=st.dictionaries(names, st.none() | names, max_size=2),
    agreement=st.none() | st.builds(FastPathCheck, n_checked=st.just(9), n_different=st.just(0), limit=shares),
    not_audited=st.lists(names, max_size=2).map(tuple),
    n_limits=st.integers(0, 100),
)
audit_results = st.builds(
    AuditResult,
    model=model_infos,
    suites=st.lists(st.builds(SuiteInfo, name=names, version=names, sha256=names, pairing=names), max_size=2).map(
        tuple
    ),
    settings=settings,
    subtopics=st.lists(subtopic_results, max_size=3).map(tuple),
    domains=st.lists(subtopic_results, max_size=2).map(tuple),
    suite_rows=st.lists(subtopic_results, max_size=2).map(tuple),
    total=subtopic_results,
    release=st.none() | st.builds(Release, *[st.none() | names] * 3),
    pairs=st.dictionaries(
        names,
        st.dictionaries(names, st.dictionaries(names, st.sampled_from(CELLS), max_size=3), max_size=2),
        max_size=2,
    ),
    reliability=st.lists(
        st.builds(
            Reliability,
            suite=names,
            measure=names,
            n_subtopics=st.integers(4, 99),
            halves=st.floats(-1, 1),
            value=st.floats(-1, 1),
        ),
        max_size=2,
    ).map(tuple),
    required=st.frozensets(st.tuples(names, names), max_size=4).map(lambda found: tuple(sorted(found))),
    comparison=st.none()
    | st.builds(
        Comparison,
        baseline=model_infos,
        source=names,
        is_same_data=st.booleans(),
        n_shared=st.integers(0, 1000),
        n_only_candidate=st.integers(0, 1000),
        n_only_baseline=st.integers(0, 1000),
        n_tests=st.integers(1, 100),
        regressions=st.lists(regressions, max_size=2).map(tuple),
        loosened=st.lists(
            st.builds(LoosenedLimit, path=names, measure=names, before=shares, after=shares, source=names), max_size=2
        ).map(tuple),
    ),
)


def sound(result: AuditResult) -> AuditResult:
    """Make the counts of a result those of its pairs, and its levels those of its subtopics."""
    cells = [{cluster: {f"{cluster} {each}": cell for each, cell in ids.items()} for cluster, ids in found.items()}
             for found in result.pairs.values()]  # fmt: skip
    rows = {row.path: row for row in result.subtopics}
    pairs = {path: dict(cells[at]) if at < len(cells) else {} for at, path in enumerate(rows)}

    def recount(row: SubtopicResult, path: str, prefix: str) -> SubtopicResult:
        below = (found for path, found in pairs.items() if path.startswith(prefix))
        tally: Counter[str] = Counter(cell for found in below for ids in found.values() for cell in ids.values())
        kept = {each.name: getattr(row, each.name) for each in fields(row)}
        for name in ("path", "n_pairs", "n_samples", "outcomes", "counts"):
            del kept[name]
        kept["verdicts"] = tuple({each.measure: each for each in row.verdicts}.values())
        kept["n_clusters"] = len(pairs[path]) if path in pairs else row.n_clusters
        return SubtopicResult.of(path, CellCounts(tally), **kept)

    def levels(drawn: Sequence[SubtopicResult], depth: int) -> tuple[SubtopicResult, ...]:
        paths = dict.fromkeys("/".join(path.split("/")[:depth]) for path in rows)
        return tuple(recount(row, path, f"{path}/") for path, row in zip(paths, cycle(drawn), strict=False))

    suites = {path.split("/")[0] for path in rows}
    return replace(
        result,
        pairs=pairs,
        suites=(*result.suites, *(SuiteInfo(name, "1", "2" * 64, "both") for name in sorted(suites))),
        subtopics=tuple(recount(row, path, path) for path, row in rows.items()),
        domains=levels([*result.domains, result.total], 2),
        suite_rows=levels([*result.suite_rows, result.total], 1),
        total=replace(recount(result.total, "total", ""), control_accuracy=result.settings.skill.control_accuracy),
    )


sound_results = audit_results.map(sound)  # those that a reader accepts


@st.composite
def threshold_files(draw: st.DrawFn) -> dict[str, Any]:
    """Valid contents of a threshold file."""
    limit = st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("max_pro", "max_anti", "max_brittleness", "max_misprediction"), shares)
    )
    some = limit.filter(bool)
    override = st.builds(lambda limits, reason: {**limits, "reason": reason}, some, names)
    file: dict[str, Any] = {
        "version": 1,
        "competence": {"min_control_accuracy": draw(shares)},
        "defaults": draw(limit),
    }
    optional: dict[str, Any] = {
        "decide": st.sampled_from(["bounds", "point"]),
        "confidence": st.floats(0.5, 0.999),
        "inconclusive": st.sampled_from(["warn", "fail"]),
        "regression": st.fixed_dictionaries({"max_increase": shares}),
        "suites": st.dictionaries(
            names,
            st.fixed_dictionaries(
                {},
                optional={
                    "defaults": limit,
                    "domains": st.dictionaries(names, override, max_size=2),
                    "subtopics": st.dictionaries(names, override, max_size=2),
                },
            ),
            max_size=2,
        ),
        "waivers": st.lists(
            st.fixed_dictionaries(
                {
                    "subtopic": names,
                    "measure": st.sampled_from(["pro", "anti", "brittleness", "misprediction"]),
                    "reason": names,
                    "owner": names,
                    "expires": st.dates(date(2020, 1, 1), date(2040, 1, 1)),
                }
            ),
            max_size=2,
        ),
    }
    return {**file, **draw(st.fixed_dictionaries({}, optional=optional))}
