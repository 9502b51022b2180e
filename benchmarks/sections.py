"""The page, section by section."""

from collections.abc import Mapping, Sequence

from benchmarks.contenders import CONTENDERS, CROSS_ENCODER, EXACT, LOOP, ONE_BY_ONE, PIPELINE
from benchmarks.end_to_end import Runs, StartUp
from benchmarks.growth import Growth
from benchmarks.memory import Memory
from benchmarks.page import table
from benchmarks.parts import Parts
from benchmarks.side_by_side import Comparison
from benchmarks.winoqueer_full import FullRun

_OTHERS = {"pipeline(32)": PIPELINE, "CrossEncoder": CROSS_ENCODER, "one by one": ONE_BY_ONE, "the loop": LOOP}
_NONE = "–"


def comparison_section(found: Comparison, memory: Mapping[str, Memory] | None = None) -> str:
    """Tell of one workload, with memory where it was measured."""
    contenders = [contender for contender in CONTENDERS if contender.name in found.scores]
    others = {told: other for told, other in _OTHERS.items() if other.name in found.scores}
    header = ["what", "in a round", "texts/s", *(f"vs {told}" for told in others)]
    header += ["of the limit", "padding", "other labels"]
    if memory:
        header += ["peak RSS MB", "above the model MB"]
    rows = []
    for contender in contenders:
        n_different, n_compared = found.label_differences(contender)
        stride, padding = found.strides[contender.name], found.scores[contender.name].padding
        row = [contender.name, "all" if stride == 1 else f"1/{stride}", f"{found.texts_a_second(contender):.1f}"]
        row += [_tell_ratio(found.ratio(contender, other)) for other in others.values()]
        row += [f"{found.share_of_limit(contender):.0%}", _NONE if padding is None else f"{padding:.1%}"]
        row.append(f"{n_different} of {n_compared:,}")
        if memory:
            row += [f"{memory[contender.name].peak:.0f}", f"{memory[contender.name].above_model:.0f}"]
        rows.append(row)
    one_thread, thread_a_core = (rate / 1e9 for rate in found.gemm_rates)
    return (
        f"### {found.workload.title}\n\n"
        f"{len(found.workload.texts):,} distinct texts, {found.mean_tokens:.1f} tokens on average. Limit: "
        f"{found.limit:.1f} texts/s (products at {thread_a_core:.0f} GFLOP/s with one thread a core, {one_thread:.0f} "
        f"with one thread for all). Largest spread between rounds: "
        f"{max(score.spread for score in found.scores.values()):.0%}.\n\n" + table(header, rows)
    )


def _tell_ratio(ratio: float | None) -> str:
    return _NONE if ratio is None else f"{ratio:.2f}"


def rows_paragraph(found: Comparison) -> str:
    """Tell of whole rows where the same text is in several."""
    workload = found.workload
    return (
        f"\nThe paper's script predicts both texts of {workload.n_rows:,} rows, {len(workload.loop_texts):,} "
        f"in all; {len(workload.texts):,} are distinct, and an audit predicts each of those once. Row against row that "
        f"is {found.row_ratio(EXACT):.1f} × the paper's loop (text against text: {found.ratio(EXACT, LOOP):.1f} ×). In "
        "the whole file more texts recur than in these rows.\n"
    )


def runs_section(runs: Runs, start_up: StartUp, model: str, n_rounds: int, n_start_ups: int) -> str:
    rows = [
        [f"`pytest --model {model}`, nothing stored", f"{runs.cold:.2f}"],
        ["the same with `-n 2`", f"{runs.cold_in_two:.2f}"],
        ["again, everything stored", f"{runs.warm:.2f}"],
        ["again, with a changed limit", f"{runs.changed_limit:.2f}"],
        ["pytest on one empty test, plugin installed", f"{start_up.with_plugin:.3f}"],
        ["the same with `-p no:bbnli_audit`", f"{start_up.without_plugin:.3f}"],
    ]
    imported = "imported" if runs.imports_torch else "not imported"
    return (
        f"Wall time of audits of the published BBNLI files, 16 subtopics; medians of {n_rounds}, the last two lines of "
        f"{n_start_ups}, interleaved. With everything stored torch was {imported}.\n\n"
        + table(["run", "seconds"], rows)
    )


def parts_section(parts: Parts, model: str) -> str:
    shares = {
        "tokenizing and sorting": parts.planning,
        "storing": parts.storing,
        "measures": parts.measures,
        "reports": parts.reports,
        "together": parts.beside_model,
    }
    rows = [[name, f"{seconds:.2f}", f"{seconds / parts.total:.1%}"] for name, seconds in shares.items()]
    return (
        f"A cold audit of the published BBNLI set with {model} in one process, the model loaded: {parts.total:.1f} s. "
        "Storing goes on while other threads run the model, so what these parts add is less than their sum.\n\n"
        + table(["part", "seconds", "of the audit"], rows)
    )


def growth_section(growth: Sequence[Growth]) -> str:
    rows = [
        [
            f"{size.n_texts:,}",
            f"{size.n_texts / size.seconds:,.0f}",
            f"{size.cost / growth[0].cost:.2f}",
            f"{size.above_model:.0f}",
            f"{size.store_size:.1f}",
        ]
        for size in growth
    ]
    return (
        "Distinct texts of WQ-NLI with tiny-nli, through a store in a file, each size in processes of its own; medians "
        "of interleaved rounds.\n\n"
        + table(["texts", "texts/s", f"cost of a text, {rows[0][0]} = 1", "MB above the model", "store MB"], rows)
    )


def full_section(found: FullRun) -> str:
    """Tell of the whole published WQ-NLI in one run."""
    costs = {
        "pairs": f"{found.n_pairs:,}",
        "distinct texts": f"{found.n_texts:,}",
        "reading": f"{found.reading:.1f} s",
        "predicting": f"{found.predicting:.1f} s",
        "texts/s": f"{found.n_texts / found.predicting:.0f}",
        "measures": f"{found.measuring:.1f} s",
        "together": f"{found.seconds:.1f} s",
        "peak RSS MB": f"{found.peak:.0f}",
        "above the model MB": f"{found.peak - found.loaded:.0f}",
    }
    shares = [f"{value:.3f} ({low:.3f}–{high:.3f})" for value, low, high in found.measures.values()]
    return (
        f"`python -m benchmarks.winoqueer_full {found.model}`: all usable pairs of the published file in one process, "
        "one run, nothing stored, the model loaded before.\n\n"
        + table(list(costs), [list(costs.values())])
        + "\nIts measures in total, with 95% intervals over predicates ([winoqueer.md](winoqueer.md)):\n\n"
        + table(list(found.measures), [shares])
    )
