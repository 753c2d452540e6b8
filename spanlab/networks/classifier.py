"""A network in an ONNX file: from rows of token ids to probabilities of its classes, in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar, TypeVarTuple

import numpy as np

from spanlab.base.errors import InputError, SandboxError, SpanlabError, UsageError, missing_package
from spanlab.base.processes import networks
from spanlab.networks.devices import BATCH, Device, DeviceOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spanlab.networks.checkpoint import Checkpoint
    from spanlab.networks.tokenizing import TokenWindow


T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Task = Literal["tokens", "texts"]  # classes of every token, or of the whole row
_TOKENS: Final = 16_384  # of a batch together, with what fills them up: bounds the memory

_PROVIDERS: Final[dict[Device, str]] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "directml": "DmlExecutionProvider",
}
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_RANK: Final[dict[Task, int]] = {"tokens": 3, "texts": 2}
LOADING_SECONDS: Final = 120.0  # of processor time on each core
_SECONDS: Final = 30.0  # for a batch
_SECONDS_OF_TOKEN: Final = 0.02  # … and more for each of its tokens, on the slowest of machines
_NO_MEMORY: Final = ("Failed to allocate memory", "bad_alloc", "Unable to allocate")
_TYPES: Final[dict[str, type[np.integer[Any]]]] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
}


@dataclass(frozen=True)
class OnnxClassifier:
    """A loaded network, which any number of threads may share.

    ``inputs`` are its inputs by name with their types; ``labels`` its classes in order; ``pad`` is
    the token id that fills up shorter rows of a batch.
    """

    session: Any
    place: Path
    task: Task
    inputs: dict[str, type[np.integer[Any]]]
    output: str
    labels: tuple[str, ...]
    pad: int

    def rate(self, rows: Sequence[TokenWindow], batch: int = BATCH) -> list[NDArray[np.float32]]:
        """Return the probabilities of the classes, row by row.

        Args:
            rows: token ids with their types.
            batch: rows at most that go through the network at once.

        Returns:
            For each row, in their order, an array of tokens × classes, or of classes alone.

        Raises:
            InputError: the network breaks on them, or what it returns is no number.
        """
        outputs: list[NDArray[np.float32] | None] = [None] * len(rows)
        for numbers in self._batches(rows, batch):
            logits = self._run([rows[number] for number in numbers])
            for at, number in enumerate(numbers):
                kept = logits[at, : len(rows[number].ids)] if self.task == "tokens" else logits[at]
                outputs[number] = softmax(kept)
        return [output for output in outputs if output is not None]

    def _batches(self, rows: Sequence[TokenWindow], most: int) -> Iterator[list[int]]:
        """Yield numbers of rows, the longest first: what is together is about equally long."""
        masked = "attention_mask" in self.inputs
        waiting = list[int]()
        longest = 0
        for number in sorted(range(len(rows)), key=lambda index: -len(rows[index].ids)):
            length = len(rows[number].ids)
            full = len(waiting) >= most or (len(waiting) + 1) * longest > _TOKENS
            # What does not know which tokens only fill up would read them as text.
            if waiting and (full or (not masked and length != longest)):
                yield waiting
                waiting = []
            longest = length if not waiting else longest
            waiting.append(number)
        if waiting:
            yield waiting

    def _run(self, rows: Sequence[TokenWindow]) -> NDArray[np.float32]:
        width = max(len(row.ids) for row in rows)
        shape = len(rows), width
        given = {name: np.zeros(shape, dtype=kind) for name, kind in self.inputs.items()}
        given["input_ids"].fill(self.pad)
        for at, row in enumerate(rows):
            size = len(row.ids)
            given["input_ids"][at, :size] = row.ids
            if "attention_mask" in given:
                given["attention_mask"][at, :size] = 1
            if "token_type_ids" in given:
                given["token_type_ids"][at, :size] = row.types
            if "position_ids" in given:
                given["position_ids"][at, :size] = range(size)
        (logits,) = self.session.run([self.output], given)
        wanted = (
            (len(rows), width, len(self.labels))
            if self.task == "tokens"
            else (len(rows), len(self.labels))
        )
        if logits.shape != wanted or not np.isfinite(logits).all():
            raise InputError(
                "what the model returned is not a probability",
                file=self.place,
                found=f"{self.output} of shape {logits.shape}",
                expected=f"finite numbers of shape {wanted}",
            )
        return np.asarray(logits, dtype=np.float32)


def load(checkpoint: Checkpoint, task: Task, running: DeviceOptions) -> OnnxClassifier:
    """Load the network of a checkpoint; once in a process for the same file and setting.

    Raises:
        UsageError: onnxruntime is missing, or has not this device.
        InputError: the file is damaged, or a model for something else.
    """
    session = open_session(checkpoint.weights, running)
    inputs = _inputs(session, checkpoint)
    output = _output(session, checkpoint, task)
    size = output.shape[-1]
    labels = checkpoint.labels
    if not labels and isinstance(size, int):
        labels = tuple(f"LABEL_{number}" for number in range(size))
    if not labels or (isinstance(size, int) and size != len(labels)):
        raise InputError(
            "labels and outputs of the model differ in number",
            file=checkpoint.folder / "config.json",
            field="id2label",
            found=", ".join(labels) or "no labels",
            expected=f"{size} labels",
        )
    pad = checkpoint.config.get("pad_token_id")
    number = pad if isinstance(pad, int) and pad >= 0 else 0
    return OnnxClassifier(session, checkpoint.weights, task, inputs, output.name, labels, number)


class NetworkPort(NamedTuple):
    """An input or output of a network, as onnxruntime describes it."""

    name: str
    type: str
    shape: list[int | str | None]


class Session(NamedTuple):
    """A network of a file, ``changed`` when it says, that is loaded and run in the sandbox."""

    path: Path
    changed: int
    running: DeviceOptions
    inputs: tuple[NetworkPort, ...]
    outputs: tuple[NetworkPort, ...]

    def run(self, names: Sequence[str], given: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """Return outputs.

        Raises:
            InputError: the network breaks on what it is given, or takes too long or too much.
        """
        seconds = seconds_for(given["input_ids"].size)
        return run_network(self.path, self.running, seconds, _run, *self[:3], names, given)


def seconds_for(tokens: int) -> float:
    """Return the seconds on each core that a network may take for so many tokens."""
    return _SECONDS + tokens * _SECONDS_OF_TOKEN


def open_session(path: Path, running: DeviceOptions) -> Session:
    """Return the network of a file; loaded once as long as it is unchanged.

    Raises:
        UsageError: onnxruntime is missing, or has not this device.
        InputError: onnxruntime cannot load the file.
    """
    key = path.resolve(), path.stat().st_mtime_ns, running
    return Session(*key, *run_network(path, running, LOADING_SECONDS, _ports, *key))


def run_network(
    path: Path, running: DeviceOptions, seconds: float, work: Callable[[*Ts], T], *args: *Ts
) -> T:
    """Return what a function returns in the sandbox that has networks loaded.

    Args:
        path: the file of the network, for messages.
        running: where it runs.
        seconds: that it may take on each core.
        work: the function, see ``Sandbox.run``.
        *args: what it is called with.

    Raises:
        InputError: it passed a limit, or broke.
    """
    try:
        return networks(limited=running.device == "cpu").run(seconds, work, *args)
    except SandboxError as error:
        raise InputError(f"the model broke: {error}", file=path) from None


def _ports(
    path: Path, changed: int, running: DeviceOptions
) -> tuple[tuple[NetworkPort, ...], tuple[NetworkPort, ...]]:
    session = loaded(path, changed, running)
    inputs, outputs = (
        tuple(NetworkPort(port.name, port.type, list(port.shape)) for port in ports)
        for ports in (session.get_inputs(), session.get_outputs())
    )
    return inputs, outputs


def _run(
    path: Path,
    changed: int,
    running: DeviceOptions,
    names: Sequence[str],
    given: Mapping[str, NDArray[Any]],
) -> list[NDArray[Any]]:
    with broken_by_item(path):
        outputs: list[NDArray[Any]] = loaded(path, changed, running).run(list(names), dict(given))
    return outputs


@contextmanager
def broken_by_item(path: Path) -> Iterator[None]:
    """Have what a network raises, which has no base in common, told in our words."""
    try:
        yield
    except SpanlabError:
        raise
    except Exception as error:  # noqa: BLE001 - onnxruntime's errors have no common base
        raise InputError(f"the model broke: {first_line(error)}", file=path) from None


@lru_cache(maxsize=4)
def loaded(path: Path, changed: int, running: DeviceOptions) -> Any:
    """Return onnxruntime's session of a file, in the sandbox; raises as ``open_session``."""
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_package("a local encoder", error.name, "encoder") from error
    if path.stat().st_mtime_ns != changed:
        raise InputError("the model was changed after it was checked", file=path)
    onnxruntime.disable_telemetry_events()
    provider = _PROVIDERS[running.device]
    if provider not in onnxruntime.get_available_providers():
        raise UsageError(
            f"device {running.device!r}: the onnxruntime that is installed has no {provider} "
            f"(it has {', '.join(onnxruntime.get_available_providers())})"
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = running.threads
    options.log_severity_level = 4  # what goes wrong is said once, as an error of ours
    names = dict.fromkeys((provider, _PROVIDERS["cpu"]))
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=list(names))
    except Exception as error:  # noqa: BLE001 - onnxruntime's errors have no common base
        raise InputError(
            f"onnxruntime cannot load the model: {first_line(error)}", file=path
        ) from None


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return probabilities along the last axis."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), dtype=np.float32)


def _inputs(session: Session, checkpoint: Checkpoint) -> dict[str, type[np.integer[Any]]]:
    types = {input_.name: input_.type for input_ in session.inputs}
    strange = sorted(name for name in types if name not in _INPUTS or types[name] not in _TYPES)
    if strange or "input_ids" not in types:
        raise InputError(
            "the model does not read texts as encoders do",
            file=checkpoint.weights,
            found=f"inputs {_listed(f'{name} {kind}' for name, kind in types.items())}",
            expected=f"input_ids, and maybe {_listed(_INPUTS[1:])}, of integers",
        )
    return {name: _TYPES[kind] for name, kind in types.items()}


def _output(session: Session, checkpoint: Checkpoint, task: Task) -> NetworkPort:
    outputs = session.outputs
    logits = next((output for output in outputs if output.name == "logits"), outputs[0])
    rank = _RANK[task]
    if len(logits.shape) != rank or logits.type not in {"tensor(float)", "tensor(float16)"}:
        kinds = {"tokens": "every token", "texts": "a pair of texts"}
        raise InputError(
            f"the model does not classify {kinds[task]}",
            file=checkpoint.weights,
            found=f"{logits.name} {logits.type} of shape {logits.shape}",
            expected=f"logits with {rank} dimensions",
        )
    return logits


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def first_line(error: Exception) -> str:
    """Return what of onnxruntime's error is worth showing."""
    if any(words in str(error) for words in _NO_MEMORY):
        return "it asks for more than three quarters of this machine's memory"
    return str(error).strip().partition("\n")[0][:300]
