"""A sequence-to-sequence checkpoint in ONNX, such as a T5: from a text to a text, greedily.

The folder is what ``spanlab encoder convert`` writes of one: ``encoder_model.onnx``,
``decoder_model.onnx``, ``tokenizer.json`` and ``config.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from spanlab.detectors.common.checkpoint import check_graph, open_checkpoint
from spanlab.detectors.common.onnx_model import first_line, open_session
from spanlab.detectors.common.running import Running
from spanlab.detectors.common.tokenizing import Tokenizing
from spanlab.errors import InputError

_ENCODER: Final = "encoder_model.onnx"
_DECODER: Final = "decoder_model.onnx"
_READ: Final = {"input_ids", "attention_mask"}
_WRITTEN: Final = {"input_ids", "encoder_hidden_states", "encoder_attention_mask"}


@dataclass(frozen=True)
class Rewriter:
    """A loaded checkpoint; any number of threads may share it.

    ``start`` and ``ends`` are the tokens that what is written begins and ends with.
    """

    encoder: Any
    decoder: Any
    tokenizing: Tokenizing
    start: int
    ends: frozenset[int]

    def __deepcopy__(self, memo: object) -> Rewriter:
        """Return itself: the copy of a detector runs the same network."""
        return self

    @classmethod
    def load(cls, name: str, running: Running | None = None) -> Rewriter:
        """Load a checkpoint from a folder.

        Raises:
            InputError: it is missing, damaged, unsuitable or unsafe.
            UsageError: onnxruntime or tokenizers is missing.
        """
        found = open_checkpoint(name, _ENCODER)
        folder, config, place = found.folder, found.config, str(found.folder)
        if not (folder / _DECODER).is_file():
            raise InputError("the checkpoint has no decoder", file=folder / _DECODER)
        check_graph(folder / _DECODER, folder)
        tokenizing = Tokenizing.of(
            found.tokenizer(), found.positions, config.get("vocab_size"), place
        )
        start, end = config.get("decoder_start_token_id"), config.get("eos_token_id")
        named = end if isinstance(end, list) else [end]
        ends = frozenset(each for each in named if isinstance(each, int))
        if not isinstance(start, int) or not ends:
            raise InputError(
                "the configuration does not say which tokens a text begins and ends with",
                file=folder / "config.json",
                found=f"decoder_start_token_id {start}, eos_token_id {end}",
                expected="a number each",
            )
        where = running or Running()
        sessions = [open_session(folder / file, where) for file in (_ENCODER, _DECODER)]
        for session, wanted in zip(sessions, (_READ, _WRITTEN), strict=True):
            inputs = {each.name for each in session.get_inputs()}
            if inputs != wanted:
                raise InputError(
                    "the model is no encoder or decoder without a cache",
                    file=folder,
                    found=f"inputs {', '.join(sorted(inputs))}",
                    expected=", ".join(sorted(wanted)),
                )
        encoder, decoder = sessions
        return cls(encoder, decoder, tokenizing, start, ends)

    def rewrite(self, text: str, most: int = 64) -> str:
        """Return what the checkpoint makes of a text.

        Args:
            text: what it reads, with the prefix that it was trained with.
            most: tokens that are written, at most.

        Raises:
            InputError: the text is longer than the checkpoint reads, or the network breaks on it.
        """
        ids = self.tokenizing.tokenizer.encode(text).ids
        if len(ids) > self.tokenizing.limit:
            raise InputError(
                f"the text has {len(ids):,} tokens, and the model reads {self.tokenizing.limit:,}",
                file=self.tokenizing.place,
            )
        read = np.array([ids], np.int64)
        mask = np.ones_like(read)
        written = [self.start]
        try:
            (states,) = self.encoder.run(None, {"input_ids": read, "attention_mask": mask})[:1]
            while len(written) <= most:
                given = {
                    "input_ids": np.array([written], np.int64),
                    "encoder_hidden_states": states,
                    "encoder_attention_mask": mask,
                }
                (logits,) = self.decoder.run(["logits"], given)
                best = int(logits[0, -1].argmax())
                if best in self.ends:
                    break
                written.append(best)
        except Exception as error:  # noqa: BLE001 - onnxruntime's errors have no common base
            place = self.tokenizing.place
            raise InputError(f"the model broke: {first_line(error)}", file=place) from None
        return str(self.tokenizing.tokenizer.decode(written[1:], skip_special_tokens=True)).strip()
