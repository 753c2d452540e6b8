"""A sequence-to-sequence network in two ONNX files, run by onnxruntime without a cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from spanlab.detectors.common.checkpoint import Checkpoint, check_graph
from spanlab.detectors.common.onnx_model import (
    Session,
    broken_by_item,
    loaded,
    open_session,
    run_network,
    seconds_for,
)
from spanlab.detectors.common.running import DeviceOptions
from spanlab.errors import InputError

ENCODER: Final = "encoder_model.onnx"
_DECODER: Final = "decoder_model.onnx"
_READ: Final = {"input_ids", "attention_mask"}
_WRITTEN: Final = {"input_ids", "encoder_hidden_states", "encoder_attention_mask"}


@dataclass(frozen=True)
class OnnxNetwork:
    """An encoder and a decoder; ``start`` and ``ends`` are the tokens around what is written."""

    encoder: Session
    decoder: Session
    start: int
    ends: frozenset[int]

    def write(self, read: Sequence[int], most: int) -> list[int]:
        """Return what is written after ``read``; see ``SequenceNetwork``."""
        seconds = seconds_for(len(read) * most)  # without a cache
        path, running = self.encoder.path, self.encoder.running
        return run_network(path, running, seconds, _write_by_onnx, self, list(read), most)


def _write_by_onnx(network: OnnxNetwork, read: list[int], most: int) -> list[int]:
    """Write one token after the other, in the sandbox."""
    ids = np.array([read], np.int64)
    mask = np.ones_like(ids)
    written = [network.start]
    with broken_by_item(network.encoder.path):
        encoder, decoder = (loaded(*each[:3]) for each in (network.encoder, network.decoder))
        (states,) = encoder.run(None, {"input_ids": ids, "attention_mask": mask})[:1]
        while len(written) <= most:
            given = {
                "input_ids": np.array([written], np.int64),
                "encoder_hidden_states": states,
                "encoder_attention_mask": mask,
            }
            (logits,) = decoder.run(["logits"], given)
            best = int(logits[0, -1].argmax())
            if best in network.ends:
                break
            written.append(best)
    return written[1:]


def load_onnx(found: Checkpoint, start: int, ends: frozenset[int]) -> OnnxNetwork:
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
        session = open_session(path, DeviceOptions())
        inputs = {each.name for each in session.inputs}
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
