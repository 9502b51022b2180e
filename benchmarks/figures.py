"""The figures to reach, and whether they were."""

from collections.abc import Sequence

from benchmarks.contenders import CROSS_ENCODER, EXACT, LOOP, ONE_BY_ONE, PIPELINE, Contender
from benchmarks.end_to_end import Runs, StartUp
from benchmarks.growth import Growth
from benchmarks.page import Figure
from benchmarks.parts import Parts
from benchmarks.side_by_side import Comparison


def list_figures(
    bbnli: Comparison,
    bert: Comparison,
    wq: Comparison,
    distilbert: Comparison,
    parts: Parts,
    runs: Runs,
    start_up: StartUp,
    growth: Sequence[Growth],
) -> list[Figure]:
    n_different = sum(found.label_differences(EXACT)[0] for found in (bbnli, bert, wq, distilbert))
    wanted_ratios: list[tuple[str, Comparison, Contender, str, float, float]] = [
        ("BBNLI, minilm-nli", bbnli, CROSS_ENCODER, "CrossEncoder.predict", 1.3, 1.5),
        ("BBNLI, minilm-nli", bbnli, PIPELINE, "pipeline(32)", 1.35, 1.6),
        ("BBNLI, minilm-nli", bbnli, ONE_BY_ONE, "one by one", 2.8, 3.2),
        ("BBNLI, BERT-base size", bert, CROSS_ENCODER, "CrossEncoder.predict", 1.3, 1.4),
        ("BBNLI, BERT-base size", bert, PIPELINE, "pipeline(32)", 1.15, 1.25),
        ("BBNLI, BERT-base size", bert, ONE_BY_ONE, "one by one", 2.0, 2.3),
        ("WQ-NLI texts", wq, CROSS_ENCODER, "CrossEncoder.predict", 1.4, 1.5),
        ("WQ-NLI texts", wq, PIPELINE, "pipeline(32)", 1.7, 1.9),
        ("WQ-NLI texts", wq, LOOP, "the paper's loop, a text against a text", 7.0, 8.0),
    ]
    return [
        Figure("labels that differ from the loop with batch 1", 0, 0, n_different, "{:.0f}", is_upper=True),
        *(
            Figure(f"{what}: against {told}", must, aim, found.ratio(EXACT, other) or 0.0, "{:.2f} ×")
            for what, found, other, told, must, aim in wanted_ratios
        ),
        Figure("share of the limit, minilm-nli", 0.8, 0.95, bbnli.share_of_limit(EXACT), "{:.0%}"),
        Figure("share of the limit, BERT-base size", 0.8, 0.95, bert.share_of_limit(EXACT), "{:.0%}"),
        Figure("share of the limit, DistilBERT (generic path)", 0.65, 0.75, distilbert.share_of_limit(EXACT), "{:.0%}"),
        Figure(
            "tokenizing, sorting, storing, measures and reports, of the cold run",
            *(0.05, 0.02, parts.beside_model / parts.total),
            "{:.1%}",
            is_upper=True,
        ),
        Figure("everything stored, a changed limit", 3.0, 1.5, runs.changed_limit, "{:.2f} s", is_upper=True),
        Figure("imports of torch in it", 0, 0, runs.imports_torch, "{:.0f}", is_upper=True),
        Figure("installed but unused: added to start-up", 50, 20, start_up.added_ms, "{:.0f} ms", is_upper=True),
        Figure("`-n 2` against plain, cold", 1.1, 1.0, runs.cold_in_two / runs.cold, "{:.2f} ×", is_upper=True),
        Figure(
            f"memory above the loaded model at {growth[-1].n_texts:,} texts",
            *(300, 150, growth[-1].above_model),
            "{:.0f} MB",
            is_upper=True,
        ),
        Figure(
            f"cost of a text, up to {growth[-1].n_texts:,} texts, above that at {growth[0].n_texts:,}",
            *(0.1, 0.05, max(0.0, *(size.cost / growth[0].cost - 1 for size in growth))),
            "{:.0%}",
            is_upper=True,
        ),
    ]
