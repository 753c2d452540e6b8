"""A sequence-to-sequence checkpoint, such as a T5: from a text to a text, greedily.

    encoder_model.onnx     in ONNX, as ``spanlab encoder convert`` writes it
    decoder_model.onnx
    model.safetensors      or in PyTorch, as transformers saves it
    tokenizer.json         a fast tokenizer
    config.json            which tokens a text begins and ends with

The folder decides which it is; ONNX, which needs far less, comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from spanlab.detectors.common import seq2seq_onnx, seq2seq_torch
from spanlab.detectors.common.checkpoint import (
    SAFETENSORS,
    Checkpoint,
    folder_of,
    open_folder,
    refuse_pickles,
)
from spanlab.detectors.common.tokenizing import CheckpointTokenizer
from spanlab.errors import InputError


class SequenceNetwork(Protocol):
    """What writes tokens after tokens that it has read; any number of threads may share it."""

    def write(self, read: Sequence[int], most: int) -> list[int]:
        """Return the likeliest token after each before it, ``most`` of them, without the end."""
        ...


_LOADERS: Final[dict[str, Callable[[Checkpoint, int, frozenset[int]], SequenceNetwork]]] = {
    seq2seq_onnx.ENCODER: seq2seq_onnx.load_onnx,
    SAFETENSORS: seq2seq_torch.load_torch,
}


@dataclass(frozen=True)
class TextRewriter:
    """A loaded checkpoint; any number of threads may share it."""

    network: SequenceNetwork
    tokenizing: CheckpointTokenizer

    def __deepcopy__(self, memo: object) -> TextRewriter:
        """Return itself: the copy of a detector runs the same network."""
        return self

    @classmethod
    def load(cls, name: str) -> TextRewriter:
        """Load a checkpoint from a folder, or one that was fetched from the hub by its name.

        Raises:
            InputError: it is missing, damaged, unsuitable or unsafe.
            UsageError: what its weights need is not installed.
        """
        folder = folder_of(name)
        refuse_pickles(folder)
        weights = next((each for each in _LOADERS if (folder / each).is_file()), "")
        if not weights:
            raise InputError(
                "the checkpoint has no weights of sequences",
                file=folder,
                expected="encoder_model.onnx and decoder_model.onnx, or model.safetensors",
            )
        found = open_folder(name, weights)
        found.digest()
        start, end = (found.config.get(f"{each}_token_id") for each in ("decoder_start", "eos"))
        named = end if isinstance(end, list) else [end]
        ends = frozenset(each for each in named if isinstance(each, int))
        if not isinstance(start, int) or not ends:
            raise InputError(
                "the configuration does not say which tokens a text begins and ends with",
                file=found.folder / "config.json",
                found=f"decoder_start_token_id {start}, eos_token_id {end}",
                expected="a number each",
            )
        tokenizing = CheckpointTokenizer.of(
            found.tokenizer(), found.positions, found.config.get("vocab_size")
        )
        return cls(_LOADERS[weights](found, start, ends), tokenizing)

    def rewrite(self, text: str, most: int = 64) -> str:
        """Return what the checkpoint makes of a text.

        Args:
            text: what it reads, with the prefix that it was trained with.
            most: tokens that are written, at most.

        Raises:
            InputError: the text is longer than the checkpoint reads, or the network breaks on it.
        """
        ids = self.tokenizing.tokenizer.encode(text).ids
        place = self.tokenizing.place
        if len(ids) > self.tokenizing.limit:
            raise InputError(
                f"the text has {len(ids):,} tokens, and the model reads {self.tokenizing.limit:,}",
                file=place,
            )
        written = self.network.write(ids, most)
        return str(self.tokenizing.tokenizer.decode(written, skip_special_tokens=True)).strip()
