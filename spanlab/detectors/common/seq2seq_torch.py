"""A sequence-to-sequence network of PyTorch, loaded and run by transformers on the processor.

Of a folder, ``config.json`` and ``model.safetensors`` are read, and nothing in it is run: no code
that it names or brings, no adapter, no quantisation by another package, no generation settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from spanlab.detectors.common.checkpoint import SAFETENSORS, Checkpoint
from spanlab.detectors.common.onnx_model import (
    LOADING_SECONDS,
    broken_by_item,
    first_line,
    run_network,
    seconds_for,
)
from spanlab.detectors.common.running import DeviceOptions
from spanlab.errors import InputError, missing_package

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
    return [each for each in written[1:] if each not in network.ends]


def load_torch(found: Checkpoint, start: int, ends: frozenset[int]) -> TorchNetwork:
    """Load a checkpoint; once as long as its weights are unchanged.

    Raises:
        InputError: it is damaged, no model of sequences, or needs more than its own weights.
        UsageError: torch or transformers is missing.
    """
    others = [each for each in _BY_OTHERS if found.config.get(each)]
    if (found.folder / _ADAPTER).exists():
        others.append(_ADAPTER)
    if others:
        raise InputError(
            "the checkpoint needs more than model.safetensors, which may run code",
            file=found.folder,
            found=", ".join(others),
            expected="a model that transformers brings, with an adapter merged into its weights",
        )
    weights = found.folder.resolve() / SAFETENSORS  # whose link may lead out of the folder
    changed = weights.stat().st_mtime_ns
    run_network(weights, DeviceOptions(), LOADING_SECONDS, _load, weights, changed)
    return TorchNetwork(weights, changed, start, ends)


def _load(weights: Path, changed: int) -> None:
    _model(weights, changed)


@lru_cache(maxsize=2)
def _model(weights: Path, _changed: int) -> Any:
    try:
        import torch
        from transformers import AutoModelForSeq2SeqLM, GenerationConfig
        from transformers.utils import logging
    except ImportError as error:
        what = "a sequence-to-sequence checkpoint in safetensors"
        raise missing_package(what, error.name, "transformers") from error
    logging.set_verbosity_error()  # what goes wrong is said once, as an error of ours
    logging.disable_progress_bar()
    try:
        model, told = AutoModelForSeq2SeqLM.from_pretrained(
            weights.parent,
            dtype=torch.float32,
            attn_implementation="eager",  # the configuration may name one to be downloaded
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
        )
    except Exception as error:  # noqa: BLE001 - transformers' errors have no common base
        raise InputError(
            f"transformers cannot load the model: {first_line(error)}", file=weights
        ) from None
    if told["missing_keys"]:
        raise InputError(
            "the file lacks weights of the model that the configuration names",
            file=weights,
            expected=", ".join(sorted(told["missing_keys"])[:3]),
        )
    model.generation_config = GenerationConfig()
    return model.eval()
