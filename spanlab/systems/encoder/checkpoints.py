"""Fetches checkpoints of local encoders from the hub, converts and lists them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spanlab.base.errors import InputError, UsageError, missing_package, unreadable
from spanlab.networks.checkpoint import (
    ORIGIN,
    SAFETENSORS,
    WEIGHTS,
    Checkpoint,
    CheckpointOrigin,
    check_graph,
    fetched_folder,
    folder_of,
    open_checkpoint,
    open_folder,
    origin_of,
    refuse_pickles,
    sha256,
)
from spanlab.networks.checkpoint_facts import facts

_NAME: Final = re.compile(r"(?!.*--)[A-Za-z0-9_][\w.-]*/[A-Za-z0-9_][\w.-]*", re.ASCII)
_TASKS: Final[Mapping[str, str]] = {
    "ForTokenClassification": "token-classification",
    "ForSequenceClassification": "text-classification",
    "ForConditionalGeneration": "text2text-generation",
}
_PART: Final = re.compile(r"model-\d+-of-\d+\.safetensors")
_INDEX: Final = "model.safetensors.index.json"
_FOR_CONVERSION: Final = ("tokenizer_config.json", "special_tokens_map.json")
_SHOWN: Final = 500  # characters of what a failed conversion said last


def fetched_checkpoints() -> tuple[str, ...]:
    """Return the names of the checkpoints that were fetched, in alphabetical order."""
    files_fetched = fetched_folder().glob(f"*--*/{ORIGIN}")
    return tuple(sorted(file.parent.name.replace("--", "/", 1) for file in files_fetched))


def fetched_with_origin() -> Iterator[tuple[Checkpoint, CheckpointOrigin]]:
    """Yield the checkpoints that were fetched, with their origin.

    Raises:
        InputError: one of them is damaged.
    """
    for name in fetched_checkpoints():
        folder = folder_of(name)
        origin = origin_of(folder)
        if origin is not None:
            networks = [file for file in origin.sha256 if file.endswith(".onnx")]
            networks += [file for file in WEIGHTS if (folder / file).is_file()]  # converted
            networks += sorted(file for file in origin.sha256 if file.endswith(".safetensors"))
            yield _open(name, next(iter(networks), "")), origin


def fetch(
    name: str,
    revision: str = "main",
    weights: str = "",
    on_file: Callable[[str], None] = lambda file: None,
) -> tuple[Checkpoint, CheckpointOrigin]:
    """Get a checkpoint from the hub: network, tokenizer and configuration, nothing else.

    Args:
        name: ORGANISATION/NAME.
        revision: a branch, tag or commit; what it stands for now is kept as a commit.
        weights: the ONNX file; empty for ``model.onnx`` or ``onnx/model.onnx``, or, where there
            is neither, for the weights in safetensors, maybe in several files.
        on_file: called with each file's name before it is fetched.

    Raises:
        UsageError: the name is none, or ``huggingface_hub`` is missing.
        InputError: the hub has not all that is needed, a file is not what the hub says, or the
            checkpoint holds what is not to be opened. What was fetched before stays then.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a name of the hub: it is ORGANISATION/NAME")
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise missing_package("fetching a checkpoint", error.name, "encoder") from error
    hub = _HubRepository(HfApi(endpoint=os.environ.get("HF_ENDPOINT")), name, revision, on_file)
    files = hub.files()
    chosen = (weights,) if weights else _weights_in(files)
    for file_name in (*chosen, "tokenizer.json", "config.json"):
        if file_name not in files:
            raise InputError(
                f"{name} has no {file_name} at the hub",
                expected="weights in ONNX (--weights names another file) or in safetensors, "
                "tokenizer.json and config.json",
            )
    in_onnx = chosen[0].endswith(".onnx")
    for_conversion = () if in_onnx else (name for name in _FOR_CONVERSION if name in files)
    with replacing_folder(fetched_folder() / name.replace("/", "--", 1)) as folder:
        for file_name in (*chosen, "tokenizer.json", "config.json", *for_conversion):
            hub.get(file_name, folder)
        if in_onnx:
            network = chosen[0]
            for location in sorted(facts(folder / network).external):
                external_file = (Path(network).parent / location).as_posix()
                if external_file in files:
                    hub.get(external_file, folder)
            check_graph(folder / network, folder)
        shutil.rmtree(folder / ".cache", ignore_errors=True)
        refuse_pickles(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        sums = {path.relative_to(folder).as_posix(): sha256(path) for path in paths}
        origin = CheckpointOrigin(name=name, commit=hub.commit, sha256=sums)
        (folder / ORIGIN).write_text(origin.model_dump_json(indent=2), encoding="utf-8")
    return _open(name, chosen[0]), origin


def next_command(checkpoint: Checkpoint, name: str) -> str:
    """Return the next command for a checkpoint: one that uses it, or that converts it first.

    Args:
        checkpoint: as ``fetch`` or ``convert`` returns it.
        name: what the user calls it: a name at the hub, or a folder.
    """
    in_onnx = checkpoint.weights.suffix == ".onnx"
    named = checkpoint.config.get("architectures") or [""]
    task = next((task for ending, task in _TASKS.items() if str(named[0]).endswith(ending)), "")
    if task == "text2text-generation":
        return f"use it: --detector papelo --option first_model={name}"
    if not in_onnx:
        return f"convert it, where torch and optimum are installed: spanlab encoder convert {name}"
    detector = "encoder-nli" if task == "text-classification" else "encoder"
    unnamed = detector == "encoder" and all(
        label.startswith("LABEL_") for label in checkpoint.labels
    )
    labels = " --option supported=LABEL_0" if unnamed else ""  # as LettuceDetect's
    return f"use it: --detector {detector} --option model={name}{labels}"


def _weights_in(files: Iterable[str]) -> tuple[str, ...]:
    """Return the weights among a repository's files, in ONNX if it has them."""
    names = sorted(files)
    for candidate in (*WEIGHTS, SAFETENSORS):
        if candidate in names:
            return (candidate,)
    parts = tuple(name for name in names if _PART.fullmatch(name))
    return (*parts, _INDEX) if parts else (WEIGHTS[0],)


def _open(name: str, weights: str) -> Checkpoint:
    return (open_folder if weights.endswith(".safetensors") else open_checkpoint)(name, weights)


def convert(name: str, target: Path | None = None) -> Checkpoint:
    """Export a checkpoint of PyTorch to ONNX, with the ``optimum-cli`` that the user has.

    Args:
        name: a folder with config.json, model.safetensors (maybe in several files) and
            tokenizer.json, or the name of a checkpoint that was fetched.
        target: the folder to write, which must not be there; by default ``onnx`` in the
            checkpoint's, so that it can be used by its name.

    Raises:
        UsageError: ``optimum-cli`` is not installed, or the target is there.
        InputError: the source holds a pickle, lacks something, or cannot be exported.
    """
    source = folder_of(name)
    target = source / "onnx" if target is None else target
    if target.exists():
        raise UsageError(f"{target} already exists: name another folder with -o")
    refuse_pickles(source)
    if not any(source.glob("*.safetensors")):
        raise InputError(
            "there are no weights to convert", file=source, expected="model.safetensors"
        )
    task = _task(source)
    command = shutil.which("optimum-cli")
    if command is None:
        raise UsageError(
            "converting needs torch and optimum, which spanlab does not install: "
            "pip install torch 'optimum[onnxruntime]' (an environment of its own will do, with "
            "its bin directory on the PATH)"
        )
    with replacing_folder(target) as folder:
        finished = subprocess.run(
            [command, "export", "onnx", "--model", str(source), "--task", task, str(folder)],
            capture_output=True,
            text=True,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
            check=False,
        )
        if finished.returncode:
            last = (finished.stderr or finished.stdout).strip()[-_SHOWN:]
            raise InputError(f"optimum-cli could not export it: …{last}", file=source)
        if task != "text2text-generation":
            open_checkpoint(str(folder))
    return open_checkpoint(str(target), _onnx_file_in(target))


def _onnx_file_in(target: Path) -> str:
    """Return the ONNX file that stands for a converted checkpoint."""
    return "encoder_model.onnx" if (target / "encoder_model.onnx").is_file() else ""


def _task(source: Path) -> str:
    path = source / "config.json"
    try:
        named = json.loads(path.read_bytes()).get("architectures") or []
    except (OSError, ValueError, AttributeError) as error:
        raise unreadable(path, error) from None
    for ending, task in _TASKS.items():
        if any(str(name).endswith(ending) for name in named):
            return task
    raise InputError(
        "the checkpoint classifies neither tokens nor texts",
        file=path,
        field="architectures",
        found=named,
        expected=f"one that ends in {', '.join(_TASKS)}",
    )


@contextmanager
def replacing_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder that takes the place of ``target`` if the block ends without an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as temporary:
        folder = Path(temporary) / target.name
        folder.mkdir()
        yield folder
        if target.exists():
            target.rename(Path(temporary) / "old")
        folder.rename(target)


@dataclass
class _HubRepository:
    """A repository at the hub, at the commit that a revision stands for."""

    api: Any
    name: str
    revision: str
    on_file: Callable[[str], None]
    commit: str = ""

    def files(self) -> dict[str, Any]:
        """Return the hub's list of files, by path."""
        with self._errors():
            info = self.api.model_info(self.name, revision=self.revision, files_metadata=True)
        self.commit = str(info.sha)
        self._files = {sibling.rfilename: sibling for sibling in info.siblings or ()}
        return self._files

    def get(self, file: str, folder: Path) -> None:
        """Fetch a file, and check its hash against the hub's list."""
        self.on_file(file)
        with self._errors():
            self.api.hf_hub_download(self.name, file, revision=self.commit, local_dir=folder)
        path, listed = folder / file, self._files[file]
        large = getattr(listed.lfs, "sha256", None)
        digest = sha256(path) if large else _blob(path)
        expected = large or listed.blob_id
        if expected is None or digest != expected:
            raise InputError(
                "the file is not what the hub has listed",
                file=f"{self.name}/{file}",
                found=digest,
                expected=str(expected),
            )

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the hub's, its transport's and the disk's
            reason = str(error).strip().partition("\n")[0][:_SHOWN] or type(error).__name__
            raise InputError(
                f"the hub did not give {self.name} at {self.revision!r}: {reason}"
            ) from None


def _blob(path: Path) -> str:
    """Return the name that git has for a file's content."""
    content = path.read_bytes()
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
