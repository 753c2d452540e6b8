"""A sequence-to-sequence network in two ONNX files, run by onnxruntime without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from spanlab.detectors.common.checkpoint import Checkpoint, check_graph
from spanlab.detectors.common.onnx_model import open_session
from spanlab.detectors.common.running import Running
from spanlab.errors import InputError

ENCODER: Final = "encoder_model.onnx"
_DECODER: Final = "decoder_model.onnx"
_READ: Final = {"input_ids", "attention_mask"}
_WRITTEN: Final = {"input_ids", "encoder_hidden_states", "encoder_attention_mask"}


@dataclass(frozen=True)
class OnnxNetwork:
    """An encoder and a decoder; ``start`` and ``ends`` are the tokens around what is written."""

    encoder: Any
    decoder: Any
    start: int
    ends: frozenset[int]

    def write(self, read: Sequence[int], most: int) -> list[int]:
        """Return what is written after ``read``; see ``SequenceNetwork``."""
        ids = np.array([read], np.int64)
        mask = np.ones_like(ids)
        written = [self.start]
        (states,) = self.encoder.run(None, {"input_ids": ids, "attention_mask": mask})[:1]
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
        return written[1:]


def load(found: Checkpoint, start: int, ends: frozenset[int]) -> OnnxNetwork:
    """Load a checkpoint's encoder and decoder.

    Raises:
        InputError: one is missing, damaged, unsafe or something else.
        UsageError: onnxruntime is missing.
    """
    folder = found.folder
    if not (folder / _DECODER).is_file():
        raise InputError("the checkpoint has no decoder", file=folder / _DECODER)
    sessions = []
    for path, wanted in ((found.weights, _READ), (folder / _DECODER, _WRITTEN)):
        check_graph(path, folder)
        session = open_session(path, Running())
        inputs = {each.name for each in session.get_inputs()}
        if inputs != wanted:
            raise InputError(
                "the model is no encoder or decoder without a cache",
                file=folder,
                found=f"inputs {', '.join(sorted(inputs))}",
                expected=", ".join(sorted(wanted)),
            )
        sessions.append(session)
    encoder, decoder = sessions
    return OnnxNetwork(encoder, decoder, start, ends)
