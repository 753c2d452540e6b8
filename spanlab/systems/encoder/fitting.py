"""Fits a classifier of tokens to shares of people in PyTorch, and writes it in ONNX."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.networks.checkpoint import Checkpoint
from spanlab.networks.rewriter import load_pretrained

LABELS: Final = ("supported", "hallucinated")
_BATCH: Final = 8  # rows a step
_WARMING: Final = 0.1  # of the steps, in which the learning rate rises; then it falls to 0
_STEEPEST: Final = 1.0  # norm of a step's gradients
_OPSET: Final = 17


class TrainingRow(NamedTuple):
    """A row of token ids with their types; ``shares`` are NaN for tokens that are not learnt."""

    ids: list[int]
    types: list[int]
    shares: NDArray[np.float32]
    weight: float


class FitSettings(NamedTuple):
    """How often every row is read, the seed of all that is drawn, and the highest learning rate."""

    epochs: int
    seed: int
    rate: float


def write_network(
    base: Checkpoint,
    rows: Sequence[TrainingRow],
    settings: FitSettings,
    folder: Path,
    on_step: Callable[[int, int], None],
) -> None:
    """Train a network, and write its checkpoint into a folder.

    The same rows, settings and number of threads give the same weights on one machine. ``on_step``
    is called with the steps that are done, and how many there are.

    Raises:
        InputError: the base is damaged, or no network that classifies tokens.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = load_pretrained(
            "AutoModelForTokenClassification",
            base.weights,
            "training a checkpoint",
            new=("classifier.", "score."),
            num_labels=len(LABELS),
            id2label=dict(enumerate(LABELS)),
            label2id={label: number for number, label in enumerate(LABELS)},
        )
        _fit(model, rows, settings, on_step)
    model.config.architectures = [type(model).__name__]
    model.config.to_json_file(folder / "config.json", use_diff=False)
    shutil.copyfile(base.tokenizer(), folder / "tokenizer.json")
    export(model, rows[:2], folder / "model.onnx")


def _fit(
    model: Any,
    rows: Sequence[TrainingRow],
    settings: FitSettings,
    on_step: Callable[[int, int], None],
) -> None:
    """Train a network in place."""
    import torch

    torch.use_deterministic_algorithms(True)
    steps = ceil(len(rows) / _BATCH) * settings.epochs
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.rate)
    rising = max(_WARMING * steps, 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / rising, (steps - step) / (steps - rising + 1))
    )
    shuffling = np.random.default_rng(settings.seed)
    model.train()
    for step, batch in enumerate(_batches(rows, settings.epochs, shuffling), start=1):
        loss = _loss(model, batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), _STEEPEST)
        optimiser.step()
        schedule.step()
        on_step(step, steps)


def _batches(
    rows: Sequence[TrainingRow], epochs: int, shuffling: np.random.Generator
) -> Iterator[list[TrainingRow]]:
    for _ in range(epochs):
        order = shuffling.permutation(len(rows)).tolist()
        for begin in range(0, len(rows), _BATCH):
            yield [rows[number] for number in order[begin : begin + _BATCH]]


def _loss(model: Any, batch: Sequence[TrainingRow]) -> Any:
    """Return the mean binary cross entropy of the tokens that are learnt."""
    import torch
    from torch.nn.functional import log_softmax

    logs = log_softmax(model(**_inputs(model, batch)).logits, dim=-1)
    shares = torch.full(logs.shape[:2], torch.nan)
    for at, row in enumerate(batch):
        shares[at, : len(row.ids)] = torch.from_numpy(row.shares)
    learnt = ~torch.isnan(shares)
    weights = torch.tensor([row.weight for row in batch])[:, None].expand_as(shares)[learnt]
    right, wrong = logs[learnt].unbind(-1)
    losses = -(shares[learnt] * wrong + (1 - shares[learnt]) * right)
    return (weights * losses).sum() / weights.sum()


def _inputs(model: Any, batch: Sequence[TrainingRow]) -> dict[str, Any]:
    """Return what a network reads of rows, filled up to the longest."""
    import torch

    shape = len(batch), max(len(row.ids) for row in batch)
    ids = torch.full(shape, model.config.pad_token_id or 0)
    mask, types = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    for at, row in enumerate(batch):
        size = len(row.ids)
        ids[at, :size], types[at, :size] = torch.tensor(row.ids), torch.tensor(row.types)
        mask[at, :size] = 1
    read = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    kinds = getattr(model.config, "type_vocab_size", 0)
    return read if kinds > 1 else {k: v for k, v in read.items() if k != "token_type_ids"}


def export(model: Any, rows: Sequence[TrainingRow], path: Path) -> None:
    """Write a network in ONNX, which reads rows of any number and length; it is traced on some."""
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *read: Any) -> Any:
            return self.model(**dict(zip(names, read, strict=True))).logits

    given = _inputs(model, rows)
    names = list(given)
    axes = {name: {0: "rows", 1: "tokens"} for name in (*names, "logits")}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of tracing; tests compare the result with the network
        torch.onnx.export(
            Logits().eval(),
            tuple(given.values()),
            path,
            dynamo=False,
            opset_version=_OPSET,
            input_names=names,
            output_names=["logits"],
            dynamic_axes=axes,
        )
