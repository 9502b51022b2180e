"""Encoder-decoder models such as T5: the encoder reads a prompt once, and the decoder writes the answer greedily.

Texts are computed one at a time and without a cache. Even so, the long prompt is read only once.
"""

from collections.abc import Sequence
from typing import Any

from bbnli_audit.models.language_model.decoding import Decoder, check_finite
from bbnli_audit.models.language_model.token_tree import Ids
from bbnli_audit.models.protocol import Tensor


class EncoderDecoder(Decoder):
    """A `Decoder` for models that read with an encoder and write with a decoder."""

    def use_trees(self, prompts: Sequence[Ids], longest: int) -> None:  # noqa: ARG002 - as in `Decoder`
        """Find out whether the model keeps state. The encoder reads each prompt as a whole, so there are no trees."""
        long = prompts[0]
        self._copies.find_state(lambda model: [self.plain_logits(ids, model) for ids in (long, long[: len(long) // 2])])

    def decode_alone(self, ids: Ids) -> list[int]:
        model = self._copies.for_use()
        encoded, answer = self._encode(model, ids), list[int]()
        while len(answer) < self._n_new and not self._is_done(answer):
            token = int(check_finite(self._logits(model, encoded, answer)).argmax())
            if token in self._end_ids:
                break
            answer.append(token)
        return answer

    def plain_logits(self, ids: Ids, model: Any | None = None) -> Tensor:
        model = self._copies.make() if model is None else model
        return self._logits(model, self._encode(model, ids), [])

    def _encode(self, model: Any, ids: Ids) -> Any:
        with self._torch.inference_mode():
            return model.get_encoder()(input_ids=self._tensor([ids]))

    def _logits(self, model: Any, encoded: Any, answer: Sequence[int]) -> Tensor:
        """Return the scores of the next token."""
        written = self._tensor([[*_start_of(model), *answer]])
        with self._torch.inference_mode():
            logits: Tensor = model(encoder_outputs=encoded, decoder_input_ids=written, use_cache=False).logits[0, -1]
            return logits


def _start_of(model: Any) -> list[int]:
    """Return the tokens that every answer begins with."""
    settings, config = model.generation_config, model.config
    start = settings.decoder_start_token_id
    ids = [config.decoder_start_token_id if start is None else start, settings.forced_bos_token_id]
    return [token for token in ids if token is not None]
