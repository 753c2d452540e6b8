"""A sequence-to-sequence checkpoint, such as a T5: from a text to a text, greedily.

    encoder_model.onnx     in ONNX, as ``spanlab encoder convert`` writes it
    decoder_model.onnx
    model.safetensors      or in PyTorch, as transformers saves it
    tokenizer.json         a fast tokenizer
    config.json            which tokens a text begins and ends with

The folder decides which it is; ONNX, which needs far less, comes first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from spanlab.base.errors import InputError, missing_package
from spanlab.networks.checkpoint import (
    SAFETENSORS,
    Checkpoint,
    check_graph,
    folder_of,
    open_folder,
    refuse_pickles,
)
from spanlab.networks.classifier import (
    LOADING_SECONDS,
    Session,
    broken_by_item,
    first_line,
    loaded,
    open_session,
    run_network,
    seconds_for,
)
from spanlab.networks.devices import DeviceOptions
from spanlab.networks.tokenizing import CheckpointTokenizer

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
        encoder, decoder = (loaded(*half[:3]) for half in (network.encoder, network.decoder))
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


def load_onnx(checkpoint: Checkpoint, start: int, ends: frozenset[int]) -> OnnxNetwork:
    """Load a checkpoint's encoder and decoder.

    Raises:
        InputError: one is missing, damaged, unsafe or something else.
        UsageError: onnxruntime is missing.
    """
    folder = checkpoint.folder
    if not (folder / _DECODER).is_file():
        raise InputError("the checkpoint has no decoder", file=folder / _DECODER)
    sessions = []
    for path, wanted in ((checkpoint.weights, _READ), (folder / _DECODER, _WRITTEN)):
        check_graph(path, folder)
        session = open_session(path, DeviceOptions())
        inputs = {input_.name for input_ in session.inputs}
        if inputs != wanted:
            raise InputError(
                "the model is not an encoder or decoder without a cache",
                file=folder,
                found=f"inputs {', '.join(sorted(inputs))}",
                expected=", ".join(sorted(wanted)),
            )
        sessions.append(session)
    encoder, decoder = sessions
    return OnnxNetwork(encoder, decoder, start, ends)


_LARGEST_HEAD: Final = 100 << 20  # bytes of names and shapes, as safetensors bounds them
_WIDE: Final = 8192  # larger sizes are those of some weights
_ADAPTER: Final = "adapter_config.json"
_BY_OTHERS: Final = ("auto_map", "quantization_config", "transformers_weights")


@dataclass(frozen=True)
class TorchNetwork:
    """A model of transformers; ``start`` and ``ends`` are the tokens around what is written.

    ``weights`` is its file, ``changed`` when it says.
    """

    weights: Path
    changed: int
    start: int
    ends: frozenset[int]

    def write(self, read: Sequence[int], most: int) -> list[int]:
        """Return what is written after ``read``; see ``SequenceNetwork``."""
        seconds = seconds_for(len(read) * most)
        return run_network(
            self.weights, DeviceOptions(), seconds, _write_by_torch, self, list(read), most
        )


def _write_by_torch(network: TorchNetwork, read: list[int], most: int) -> list[int]:
    """Write greedily, in the sandbox."""
    import torch
    from transformers import GenerationConfig

    greedy = GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=most,
        decoder_start_token_id=network.start,
        eos_token_id=sorted(network.ends),
        pad_token_id=min(network.ends),  # nothing is filled up: one text is read at a time
    )
    model = _model(network.weights, network.changed)
    with broken_by_item(network.weights):
        ids = torch.tensor([read])
        (written,) = model.generate(
            ids, attention_mask=torch.ones_like(ids), generation_config=greedy
        ).tolist()
    return [token for token in written[1:] if token not in network.ends]


def load_torch(checkpoint: Checkpoint, start: int, ends: frozenset[int]) -> TorchNetwork:
    """Load a checkpoint; once as long as its weights are unchanged.

    Raises:
        InputError: it is damaged, no model of sequences, or needs more than its own weights.
        UsageError: torch or transformers is missing.
    """
    refuse_code(checkpoint)
    weights = checkpoint.folder.resolve() / SAFETENSORS  # whose link may lead out of the folder
    changed = weights.stat().st_mtime_ns
    run_network(weights, DeviceOptions(), LOADING_SECONDS, _load, weights, changed)
    return TorchNetwork(weights, changed, start, ends)


def refuse_code(checkpoint: Checkpoint) -> None:
    """Refuse a checkpoint of transformers that is more than its weights.

    Raises:
        InputError: says what else it needs.
    """
    others = [setting for setting in _BY_OTHERS if checkpoint.config.get(setting)]
    if (checkpoint.folder / _ADAPTER).exists():
        others.append(_ADAPTER)
    if others:
        raise InputError(
            "the checkpoint needs more than model.safetensors, which may run code",
            file=checkpoint.folder,
            found=", ".join(others),
            expected="a model that transformers brings, with an adapter merged into its weights",
        )


def _refuse_unfilled(weights: Path) -> None:
    """Refuse a configuration of more than there are weights for: transformers builds it first."""
    config = json.loads((weights.parent / "config.json").read_bytes())
    with weights.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        try:
            head = json.loads(file.read(min(size, _LARGEST_HEAD)))
            sizes = {number for name in head for number in head[name].get("shape", ())}
        except (ValueError, AttributeError, TypeError):
            raise InputError("the weights are damaged", file=weights) from None
    for name, value in config.items():
        is_depth, is_width = "layer" in name, name.endswith("_size") and value not in sizes
        most = len(head) if is_depth else _WIDE
        if (is_depth or is_width) and isinstance(value, int) and value > most:
            raise InputError(
                "the configuration is of a larger model than the file has weights for",
                file=weights.parent / "config.json",
                found=f"{name}: {value:,}",
            )


def _load(weights: Path, changed: int) -> None:
    _model(weights, changed)


@lru_cache(maxsize=2)
def _model(weights: Path, _changed: int) -> Any:
    what = "a sequence-to-sequence checkpoint in safetensors"
    model = load_pretrained("AutoModelForSeq2SeqLM", weights, what)
    from transformers import GenerationConfig

    model.generation_config = GenerationConfig()
    return model.eval()


def load_pretrained(
    auto: str, weights: Path, what: str, *, new: tuple[str, ...] = (), **settings: Any
) -> Any:
    """Load a model of transformers, which runs none of a checkpoint's code.

    Args:
        auto: the class of transformers that knows the model's.
        weights: ``model.safetensors``, with config.json beside it.
        what: for the message where a package is missing.
        new: how the names of weights begin that the file may lack, such as those of a new layer.
        settings: of the configuration.

    Raises:
        InputError: it is damaged, or lacks weights.
        UsageError: torch or transformers is missing.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise missing_package(what, error.name, "transformers") from error
    _refuse_unfilled(weights)
    transformers.utils.logging.set_verbosity_error()  # what goes wrong is our error, once
    transformers.utils.logging.disable_progress_bar()
    try:
        model, loading = getattr(transformers, auto).from_pretrained(
            weights.parent,
            dtype=torch.float32,
            attn_implementation="eager",  # the configuration may name one to be downloaded
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            **settings,
        )
    except Exception as error:  # noqa: BLE001 - transformers' errors have no common base
        raise InputError(
            f"transformers cannot load the model: {first_line(error)}", file=weights
        ) from None
    missing = sorted(name for name in loading["missing_keys"] if not name.startswith(new))
    if missing:
        raise InputError(
            "the file lacks weights of the model that the configuration names",
            file=weights,
            expected=", ".join(missing[:3]),
        )
    return model


class SequenceNetwork(Protocol):
    """What writes tokens after tokens that it has read; any number of threads may share it."""

    def write(self, read: Sequence[int], most: int) -> list[int]:
        """Return the likeliest token after each before it, ``most`` of them, without the end."""
        ...


_LOADERS: Final[dict[str, Callable[[Checkpoint, int, frozenset[int]], SequenceNetwork]]] = {
    ENCODER: load_onnx,
    SAFETENSORS: load_torch,
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
        weights = next((file for file in _LOADERS if (folder / file).is_file()), "")
        if not weights:
            raise InputError(
                "the checkpoint has no weights of sequences",
                file=folder,
                expected="encoder_model.onnx and decoder_model.onnx, or model.safetensors",
            )
        checkpoint = open_folder(name, weights)
        checkpoint.digest()
        start, end = (
            checkpoint.config.get(f"{role}_token_id") for role in ("decoder_start", "eos")
        )
        named = end if isinstance(end, list) else [end]
        ends = frozenset(token for token in named if isinstance(token, int))
        if not isinstance(start, int) or not ends:
            raise InputError(
                "the configuration does not say which tokens a text begins and ends with",
                file=checkpoint.folder / "config.json",
                found=f"decoder_start_token_id {start}, eos_token_id {end}",
                expected="a number each",
            )
        tokenizing = CheckpointTokenizer.of(
            checkpoint.tokenizer(), checkpoint.positions, checkpoint.config.get("vocab_size")
        )
        return cls(_LOADERS[weights](checkpoint, start, ends), tokenizing)

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
