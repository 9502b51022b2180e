"""Computes checkpoints with ONNX Runtime: a fast path, so it is always checked against the exact path.

A checkpoint is exported each time it is loaded. No exported file is kept, so none can be out of date. We use torch's
older exporter, which traces the model on an example. The older exporter takes one second; the newer one takes ten. But
a trace may be right only for texts as long as the example, or only for the branch that the example took. Torch does not
always say so. So before an exported graph is used, it is compared with the model's own forward: on texts of other
lengths, and in a larger batch.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bbnli_audit.core.errors import ModelError
from bbnli_audit.models.batches import MIN_ROWS
from bbnli_audit.models.checkpoint import Checkpoint
from bbnli_audit.models.classifier.classify import Classifier, EncodedText, TextEncoder, by_length, probe_texts, stack
from bbnli_audit.models.classifier.onnx_int8 import write_int8
from bbnli_audit.models.loading import WHOLE_MACHINE, Share, load_classifier, n_cores, short_reason, telling_breaks
from bbnli_audit.models.protocol import Floats, Ids

_OPSET = 17  # the first opset with layer normalization
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
# Logits may differ from torch's by rounding. If a graph is right only for its example, it is off by far more on other
# texts.
_TOLERANCE = 1e-3


class OnnxPredictor(Classifier):
    """A sequence classifier that is exported when it is loaded, and run by ONNX Runtime in float32 or int8."""

    def __init__(self, checkpoint: Checkpoint, share: Share = WHOLE_MACHINE) -> None:
        self._runtime = _import_runtime()
        self._is_int8 = checkpoint.info.dtype == "int8"
        self._share = share
        model, tokenizer, max_length = load_classifier(checkpoint.info.name, checkpoint.folder)
        super().__init__(checkpoint.info, TextEncoder(tokenizer, max_length))
        with TemporaryDirectory(prefix="bbnli-onnx-", ignore_cleanup_errors=True) as folder, _quiet():
            try:
                model.eval()
                checked = self._encoder.encode(probe_texts())
                expected = _torch_logits(model, checked)
                graph = _write_graph(model, stack(checked[:1]), Path(folder, "model.onnx"))
                del model  # frees memory before the session reads the weights again
                self._session = self._open(graph)
                _check(self._session, checked, expected)
                if self._is_int8:
                    self._session = self._open(write_int8(graph, Path(folder, "int8.onnx")))
            except Exception as exc:
                fault = f"--model={self.info.name}: ONNX Runtime cannot run it: {short_reason(exc)}"
                advice = "Leave --bbnli-backend and --bbnli-dtype out: torch computes it then."
                raise ModelError(f"{fault}.\n{advice}") from exc
        self.is_on_cpu = self._session.get_providers()[0] == _CPU
        self.n_threads = n_cores(share) if self.is_on_cpu else 1

    def _open(self, path: Path) -> Any:
        import torch

        options = self._runtime.SessionOptions()
        # Several batches run at once, each on a core of its own.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors are raised as exceptions
        providers: list[Any] = [_CPU]
        if not self._is_int8 and _CUDA in self._runtime.get_available_providers():
            providers.insert(0, (_CUDA, {"device_id": self._share.index % max(1, torch.cuda.device_count())}))
        return self._runtime.InferenceSession(str(path), options, providers=providers)

    @property
    def path(self) -> str:
        return f"ONNX Runtime, {'int8' if self._is_int8 else 'float32'}: batches of one length"

    def logits(self, texts: Sequence[EncodedText]) -> Floats:
        # ONNX Runtime's errors have no common class.
        with telling_breaks(self.info.name, "texts", [len(text.ids) for text in texts], (Exception,)):
            return _run(self._session, texts)


def _import_runtime() -> Any:
    try:
        import onnx  # noqa: F401 - torch's exporter needs it
        import onnxruntime
    except ImportError as exc:
        raise ModelError('--bbnli-backend=onnx needs onnx and onnxruntime: pip install "bbnli-audit[onnx]"') from exc
    return onnxruntime


def _torch_logits(model: Any, texts: Sequence[EncodedText]) -> Floats:
    import torch

    found: list[torch.Tensor] = []
    with torch.no_grad():  # in inference mode, the model might keep tensors that a later trace cannot use
        for text in texts:
            inputs = {key: torch.from_numpy(array[:1]) for key, array in stack([text]).items()}
            found.append(model(**inputs).logits[0].double())
    return torch.stack(found).numpy()


def _check(session: Any, texts: Sequence[EncodedText], expected: Floats) -> None:
    """Compare the graph's logits with the model's: on several lengths, and in a batch larger than the traced one."""
    import numpy as np

    rows = [*range(len(texts)), *[0] * MIN_ROWS]
    off = np.abs(_run(session, [texts[row] for row in rows]) - expected[rows])
    if (off > _TOLERANCE * max(1.0, np.abs(expected).max())).any():  # NaN passes: it is refused elsewhere
        raise ValueError(f"the exported graph does not compute what the model does, logits are off by {off.max():.2g}")


def _write_graph(model: Any, example: dict[str, Ids], path: Path) -> Path:
    import torch

    class LogitsOnly(torch.nn.Module):
        """Takes its inputs in a fixed order and returns one output, as a graph does."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> Any:
            return self.model(**dict(zip(example, inputs, strict=True))).logits

    with torch.no_grad():
        torch.onnx.export(
            LogitsOnly().eval(),
            tuple(torch.from_numpy(array) for array in example.values()),
            str(path),
            input_names=list(example),
            output_names=["logits"],
            dynamic_axes={**{name: {0: "texts", 1: "tokens"} for name in example}, "logits": {0: "texts"}},
            opset_version=_OPSET,
            dynamo=False,
        )
    return path


def _run(session: Any, texts: Sequence[EncodedText]) -> Floats:
    """Return the logits of texts. Texts of one length run together, so that nothing is padded."""
    import numpy as np

    names = [node.name for node in session.get_inputs()]  # a trace drops inputs that the model does not read
    logits: dict[int, Any] = {}
    for rows in by_length(texts):
        stacked = stack([texts[row] for row in rows])
        (found,) = session.run(["logits"], {name: stacked[name] for name in names})
        logits.update(zip(rows, found, strict=False))  # `found` may have more rows, up to MIN_ROWS
    return np.stack([logits[row] for row in range(len(texts))]).astype(np.float64)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the messages of an export out of the test output, and restore all settings afterwards.

    Torch warns that the exporter is old, and warns about each branch in the trace. Models log how they treat short
    texts. If an export fails, native code prints its whole graph, whatever the log level.
    """
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    sys.stdout.flush()
    stdout, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(nowhere)
        logging.disable(level)
