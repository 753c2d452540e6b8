"""A checkpoint's folder: which files count, what they say, and what is refused unopened.

    model.onnx        the network (or onnx/model.onnx, or any file that is named; a checkpoint of
                      sequences may have model.safetensors instead)
    tokenizer.json    a fast tokenizer
    config.json       labels, positions, vocabulary

Files are data: nothing of a checkpoint is run but the operators that onnxruntime itself brings,
and a checkpoint with a pickle in it is refused, wherever it came from.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from spanlab.base.errors import InputError, unreadable
from spanlab.base.fields import FrozenModel
from spanlab.base.settings import Settings, read_json
from spanlab.networks.checkpoint_facts import OPERATORS, facts

WEIGHTS: Final = ("model.onnx", "onnx/model.onnx")
SAFETENSORS: Final = "model.safetensors"
ORIGIN: Final = "fetched.json"
_PICKLES: Final = frozenset((".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib"))
_PICKLED: Final = re.compile(rb"PK\x03\x04|\x80[\x02-\x05]")
_LARGEST: Final = 128 * 2**20  # bytes of tokenizer.json or config.json
_MOST_FILES: Final = 10_000
_POSITIONS: Final = 512  # where a configuration does not say how many
_OFFSET: Final = frozenset(("camembert", "longformer", "mpnet", "roberta", "xlm-roberta"))


class CheckpointOrigin(FrozenModel):
    """Where a checkpoint was fetched from: its name and commit at the hub, and its files."""

    name: str
    commit: str
    sha256: dict[str, str]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that may be loaded; ``positions`` is how many tokens it takes at most.

    ``labels`` are its classes in order, empty if the configuration does not name them.
    """

    folder: Path
    weights: Path
    config: dict[str, Any] = field(repr=False)
    labels: tuple[str, ...]
    positions: int

    @property
    def name(self) -> str:
        """What people call it: ORGANISATION/MODEL where it was fetched, else its folder."""
        return self.folder.name.replace("--", "/", 1)

    def tokenizer(self) -> Path:
        """Return the file of the tokenizer.

        Raises:
            InputError: there is none, or it is too large.
        """
        path = self.folder / "tokenizer.json"
        if not path.is_file():
            raise InputError(
                "the checkpoint has no fast tokenizer",
                file=path,
                expected="tokenizer.json, as AutoTokenizer(…, use_fast=True).save_pretrained "
                "writes it",
            )
        _check_size(path)
        return path

    def digest(self) -> str:
        """Return the SHA-256 of the weights' file, in hexadecimal.

        Raises:
            InputError: the checkpoint was fetched, and is no longer what was fetched.
        """
        digest = sha256(self.weights)
        origin = origin_of(self.folder)
        name = self.weights.relative_to(self.folder).as_posix()
        if origin is not None and origin.sha256.get(name, digest) != digest:
            raise InputError(
                "the weights are not those that were fetched",
                file=self.weights,
                found=f"SHA-256 {digest}",
                expected=f"{origin.sha256[name]}: fetch the checkpoint again",
            )
        return digest


def origin_of(folder: Path) -> CheckpointOrigin | None:
    """Return where the checkpoint in a folder was fetched from; None for any other folder.

    Raises:
        InputError: what was noted of it is damaged.
    """
    path = folder / ORIGIN
    return (
        read_json(CheckpointOrigin, path, "what `spanlab encoder fetch` notes")
        if path.is_file()
        else None
    )


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetched_folder() -> Path:
    """Return the directory that ``spanlab encoder fetch`` puts checkpoints into."""
    return Settings.read().home / "encoders"


def open_checkpoint(name: str, weights: str = "") -> Checkpoint:
    """Return a checkpoint in ONNX after all that can be checked without running it.

    Args:
        name: a folder, or the hub's name of a checkpoint that was fetched.
        weights: the ONNX file in its folder; empty for ``model.onnx`` or ``onnx/model.onnx``.

    Raises:
        InputError: it is not there, incomplete, or holds what is not to be opened.
    """
    checkpoint = open_folder(name, weights)
    check_graph(checkpoint.weights, checkpoint.folder)
    return checkpoint


def open_folder(name: str, weights: str) -> Checkpoint:
    """Return a checkpoint whose weights nobody has looked into; see ``open_checkpoint``.

    Raises:
        InputError: it is not there, incomplete, or a pickle lies in its folder.
    """
    folder = folder_of(name)
    refuse_pickles(folder)
    config = _config(folder)
    path = _weights(folder, weights)
    return Checkpoint(folder, path, config, _labels(config, folder), _positions(config, folder))


def check_graph(path: Path, folder: Path) -> None:
    """Refuse an ONNX file that needs more than onnxruntime and the files of its folder.

    Raises:
        InputError: says which operator or file.
    """
    graph = facts(path)
    strange = sorted(
        operator
        for operator in graph.operators
        if operator.name not in OPERATORS.get(operator.domain.removeprefix("ai.onnx"), ())
    )
    if strange:
        raise InputError(
            "the model has operators that no encoder needs: they may run other code, or never end",
            file=path,
            found=", ".join(".".join(filter(None, operator)) for operator in strange[:3]),
            expected="those of transformers' exports, also quantised or optimised by onnxruntime",
        )
    root = folder.resolve()
    for location in sorted(graph.external):
        _check_external(path, location, root)


def folder_of(name: str) -> Path:
    """Return the folder of a checkpoint, which is a folder or the name of a fetched one.

    Raises:
        InputError: nothing is named, or there is none.
    """
    if not name.strip():
        raise InputError(
            "no checkpoint is named",
            expected="model=FOLDER, or model=ORGANISATION/NAME after "
            "`spanlab encoder fetch ORGANISATION/NAME`",
        )
    fetched = fetched_folder() / name.strip().replace("/", "--", 1)
    folder = fetched if fetched.is_dir() else Path(name.strip())
    if not folder.is_dir():
        raise InputError(
            "there is no such checkpoint",
            file=name,
            expected="a folder, or a name that `spanlab encoder list` shows (`spanlab encoder "
            "fetch` gets others)",
        )
    return folder


def refuse_pickles(folder: Path) -> None:
    """Refuse a folder in which a pickle lies.

    Raises:
        InputError: says which file it is.
    """
    for path in islice(folder.rglob("*"), _MOST_FILES):
        if path.is_file() and is_pickle(path):
            raise InputError(
                "the checkpoint holds a pickle, which can run anything when it is opened",
                file=path,
                expected="a folder without it: the network in ONNX or safetensors, "
                "tokenizer.json and config.json are enough",
            )


def is_pickle(path: Path) -> bool:
    """Say whether a file is a pickle, by its name or, for weights, by its first bytes."""
    if path.suffix in _PICKLES:
        return True
    if path.suffix not in {".bin", ".onnx"}:
        return False
    with path.open("rb") as file:
        return _PICKLED.match(file.read(4)) is not None


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise InputError("the checkpoint has no configuration", file=path, expected="config.json")
    try:
        config = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=path) from None
    if not isinstance(config, dict):
        raise InputError("the configuration is not an object", file=path, found=config)
    return config


def _check_size(path: Path) -> None:
    if path.stat().st_size > _LARGEST:
        raise InputError(f"larger than {_LARGEST:,} bytes", file=path)


def _text(path: Path) -> str:
    _check_size(path)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error


def _weights(folder: Path, named: str) -> Path:
    if named and (Path(named).is_absolute() or ".." in Path(named).parts):
        raise InputError("the model lies outside the checkpoint's folder", file=named)
    tried = [folder / name for name in ([named] if named else WEIGHTS)]
    for path in tried:
        if path.is_file():
            return path
    convertible = folder.name.replace("--", "/", 1) if (folder / ORIGIN).is_file() else folder
    raise InputError(
        "the checkpoint has no ONNX model",
        file=tried[0],
        expected=f"model.onnx; `spanlab encoder convert {convertible}` makes it from safetensors",
    )


def _labels(config: dict[str, Any], folder: Path) -> tuple[str, ...]:
    named = config.get("id2label")
    if named is None:
        return ()
    try:
        by_number = {int(key): str(value) for key, value in named.items()}
    except (AttributeError, ValueError):
        by_number = {}
    if not by_number or sorted(by_number) != list(range(len(by_number))):
        raise InputError(
            "the labels are not numbered from 0",
            file=folder / "config.json",
            field="id2label",
            found=named,
        )
    return tuple(by_number[number] for number in range(len(by_number)))


def _positions(config: dict[str, Any], folder: Path) -> int:
    positions = config.get("max_position_embeddings", _POSITIONS)
    if not isinstance(positions, int) or isinstance(positions, bool):
        positions = 0
    if config.get("model_type") in _OFFSET:  # their positions begin after that of the padding
        pad = config.get("pad_token_id")
        positions -= (pad if isinstance(pad, int) else 1) + 1
    if positions < 1:
        raise InputError(
            "the number of positions is not a number above 0",
            file=folder / "config.json",
            field="max_position_embeddings",
            found=config.get("max_position_embeddings"),
        )
    return positions


def _check_external(path: Path, location: str, root: Path) -> None:
    target = path.parent / location
    inside = location and not Path(location).is_absolute() and "\\" not in location
    try:
        inside = inside and target.resolve().is_relative_to(root)
    except (OSError, RuntimeError, ValueError):
        inside = False
    if not inside:
        raise InputError(
            "the model's weights lie outside the checkpoint's folder", file=path, found=location
        )
    if not target.is_file():
        raise InputError("a file of the model's weights is missing", file=path, found=location)
