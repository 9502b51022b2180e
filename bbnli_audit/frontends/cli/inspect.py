"""Show how a model reads one pair of texts.

Prints the tokens of a pair of texts (by default a harmless pair), how the model is run, and the model's probabilities
beside those of plain transformers. For a classifier, the command also prints the segments, and the tokens that the head
reads. For a language model, it also prints the tokens that both texts share. The exit code is 1 if the probabilities
differ from those of plain transformers by more than rounding.

Examples:
    bbnli-audit inspect path/to/checkpoint
    bbnli-audit inspect path/to/checkpoint --premise "Two zorbs juggle." --hypothesis "Some zorbs juggle."
"""

import argparse
from typing import Any

from bbnli_audit.core.errors import OptionError
from bbnli_audit.core.options import ModelOptions
from bbnli_audit.core.values import TextPair
from bbnli_audit.frontends.cli.arguments import add_documented, write_out

_PREMISE, _HYPOTHESIS = "Two zorbs mended a red boat by the lake.", "Someone mended a boat."


def add_parser(commands: Any) -> None:
    add = add_documented(commands, "inspect", run, __doc__).add_argument
    add("model", metavar="MODEL", help="a checkpoint or a language model: its folder, its name on the hub, or demo")
    add("--premise", metavar="TEXT", default=_PREMISE, help=f"the first text (default: {_PREMISE})")
    add("--hypothesis", metavar="TEXT", default=_HYPOTHESIS, help=f"the second text (default: {_HYPOTHESIS})")
    for name, metavar, what in (
        ("labels", "A,B,C", "what the model's outputs mean, in their order"),
        ("device", "DEVICE", "auto (default), cpu, cuda, cuda:N"),
        ("dtype", "TYPE", "fp32 (default), bf16, fp16, int8"),
        ("backend", "NAME", "torch (default) or onnx"),
    ):
        add(f"--{name}", metavar=metavar, help=what)


def run(arguments: argparse.Namespace) -> int:
    from bbnli_audit.models.inference.plain_check import TOLERANCE
    from bbnli_audit.models.opening import explain_model

    how = {name: getattr(arguments, name) for name in ("labels", "device", "dtype", "backend")}
    text = TextPair(arguments.premise, arguments.hypothesis)
    if not all(part.strip() for part in text):
        raise OptionError("--premise and --hypothesis must not be empty.")
    found = explain_model(arguments.model, ModelOptions(**how), text)
    lines = dict(found.lines)
    for title, row in (("as audited", found.ours), ("plain transformers", found.plain)):
        lines[title] = "  ".join(f"{label} {share:.6f}" for label, share in zip(found.labels, row, strict=False))
    off = max(abs(one - other) for one, other in zip(found.ours, found.plain, strict=True))
    lines["difference"] = f"{off:.1g}, {'within rounding' if off <= TOLERANCE else 'more than rounding'}"
    width = max(map(len, lines)) + 2
    write_out("".join(f"{title:<{width}}{told}\n" for title, told in lines.items()))
    return int(off > TOLERANCE)
