"""Training data for a verifier of one's own: chats in three splits, and how to train on them."""

from __future__ import annotations

import hashlib
import json
import random
import zipfile
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from spanlab.base.errors import BudgetError, ConfigurationError, InputError, SpanlabError
from spanlab.base.runtime import ahead
from spanlab.base.settings import Settings
from spanlab.formats.files import replacing
from spanlab.models import Meter, ModelChoice, answer_cache, language_model, predict
from spanlab.models.meter import together
from spanlab.schema import Record
from spanlab.schema.usage import Budget

if TYPE_CHECKING:
    import dspy

    from spanlab.systems.safe.teacher import TaughtItem


T = TypeVar("T")
_AT_ONCE: Final = 16  # items that the teacher is asked about at the same time
SPLITS: Final = ("train", "validation", "test")
_TENTHS: Final = ("test", "validation")  # of ten questions one each; the others are for training


# The settings of Kwon et al. 2026, appendix A.2 and §4.1, in Axolotl's form. 64 is the batch of
# all devices: micro batch x accumulation x devices.
QLORA: Final = """\
base_model: Qwen/Qwen3-8B
load_in_4bit: true
adapter: qlora
lora_r: 64
lora_alpha: 128
lora_dropout: 0.05
lora_target_linear: true
learning_rate: 0.0001
lr_scheduler: cosine
warmup_ratio: 0.03
optimizer: adamw_torch
micro_batch_size: 1
gradient_accumulation_steps: 64
num_epochs: 2
sequence_len: 8192
train_on_inputs: false
bf16: auto
datasets:
  - path: train.jsonl
    ds_type: json
    type: chat_template
test_datasets:
  - path: validation.jsonl
    ds_type: json
    split: train
    type: chat_template
output_dir: verifier
"""


@dataclass
class VerifierData:
    """Counts of written examples: by split, by type of error ("right" for none), and by origin.

    ``items`` have examples; ``left_out`` are those whose question is unverifiable.
    """

    items: set[str] = field(default_factory=set)
    left_out: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    origins: Counter[str] = field(default_factory=Counter)


def write_verifier_data(
    records: Iterable[Record],
    folder: Path,
    *,
    annotators: Sequence[str] = (),
    seed: int | None = 0,
    teacher: StepTeacher | None = None,
    flagged: bool = False,
) -> VerifierData:
    """Write ``train.jsonl``, ``validation.jsonl``, ``test.jsonl`` and ``qlora.yaml``.

    A line has ``messages``, a chat as the detector `safe` has it, and ``id``, ``question``,
    ``step``, ``error`` and ``origin``. A question is in one split only.

    Args:
        records: reasonings with what people said of them.
        folder: where to write; it is made.
        annotators: whose judgement is right; empty for all persons and gold labels.
        seed: of the errors that rules put into right steps; None puts none in.
        teacher: a model that makes right steps wrong in every way, and explains hard cases.
        flagged: whether questions that are unverifiable are taken, too.

    Raises:
        BudgetError: the teacher's budget is used up; what was paid for is in the cache.
        ConfigurationError: key, address or name of the teacher is wrong.
        InputError: nobody whose judgement counts has finished any of them, or the folder cannot be
            written to.
    """
    from spanlab.systems.safe.examples import examples_of
    from spanlab.systems.safe.steps import flag_of
    from spanlab.systems.safe.teacher import NOTHING_TAUGHT

    data = VerifierData()

    def taken() -> Iterator[Record]:
        for record in records:
            if not flagged and flag_of(record.item) is not None:
                data.left_out += 1
            else:
                yield record

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=folder) from error
    with ExitStack() as stack:
        files = {name: stack.enter_context(replacing(folder / f"{name}.jsonl")) for name in SPLITS}
        untaught = ((taken_step, NOTHING_TAUGHT) for taken_step in taken())
        pairs = teacher.teach(taken(), annotators) if teacher else untaught
        for record, taught in pairs:
            for example in examples_of(record, annotators, seed=seed, taught=taught):
                split = split_of(example.question or example.item)
                line = {
                    "messages": example.messages,
                    "id": example.item,
                    "question": example.question,
                    "step": example.step,
                    "error": example.error,
                    "origin": example.origin,
                }
                files[split].write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
                data.items.add(example.item)
                data.splits[split] += 1
                data.types[example.error or "right"] += 1
                data.origins[example.origin] += 1
        if not data.splits:
            raise InputError(
                "nobody has judged a step here",
                expected="items whose answer reasons, finished in Review or with gold labels",
            )
    with replacing(folder / "qlora.yaml") as stream:
        stream.write(QLORA.encode())
    return data


class StepTeacher:
    """A model that makes right steps wrong and explains hard cases, many at once.

    ``refused`` counts replies that could not be used.

    Args:
        model: the teacher.
        seed: of the steps that are made wrong.
        budget: limits on its calls.
    """

    def __init__(self, model: ModelChoice, seed: int = 0, budget: Budget | None = None) -> None:
        cache = answer_cache(Settings.read(), "models")
        self._lm = language_model(model, Meter(budget), cache=cache)
        self._seed = seed
        self.refused = 0

    def teach(
        self, records: Iterable[Record], annotators: Sequence[str]
    ) -> Iterator[tuple[Record, TaughtItem]]:
        """Yield records in order, each with the examples that the teacher made from its steps."""
        work = (self._record(record, annotators) for record in records)
        return (future.result() for future in ahead(work, _AT_ONCE))

    async def _record(self, record: Record, annotators: Sequence[str]) -> tuple[Record, TaughtItem]:
        from spanlab.systems.safe.examples import hard_cases, right_steps
        from spanlab.systems.safe.teacher import TaughtItem, corrupted, explained, to_corrupt

        item, right = record.item, right_steps(record, annotators)
        dice = random.Random(f"{self._seed}:{item.id}")
        corruptions = (
            corrupted(item, right, error, at=at, teach=self._teach)
            for error, at in to_corrupt(right, dice)
        )
        hard = {case.key: case for case in hard_cases(record, annotators)}
        explanations = (explained(item, case, self._teach) for case in hard.values())
        errors, feedback = await together(
            together(*map(self._usable, corruptions)), together(*map(self._usable, explanations))
        )
        return record, TaughtItem(
            [error for error in errors if error is not None],
            {key: text for key, text in zip(hard, feedback, strict=True) if text is not None},
        )

    async def _teach(self, module: dspy.Module, inputs: dict[str, str]) -> dspy.Prediction:
        return await predict(module, self._lm, **inputs)

    async def _usable(self, reply: Awaitable[T | None]) -> T | None:
        """Wait for a reply of the teacher; count one that cannot be used, and return None."""
        try:
            value = await reply
        except (BudgetError, ConfigurationError):
            raise
        except SpanlabError:
            value = None
        self.refused += value is None
        return value


def zip_verifier_data(records: Iterable[Record], stream: BinaryIO) -> int:
    """Write the training files of ``write_verifier_data`` as a zip.

    Args:
        records: items with judged steps.
        stream: the open file to write to.

    Returns:
        How many items have examples.

    Raises:
        InputError: nobody whose judgement counts has finished any of the records.
    """
    with (
        TemporaryDirectory() as name,
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        data = write_verifier_data(records, Path(name))
        for path in sorted(Path(name).iterdir()):
            archive.write(path, path.name)
    return len(data.items)


def split_of(question: str) -> str:
    """Return the split that a question belongs to, always the same one."""
    tenth = int(hashlib.sha256(question.encode("utf-8", "replace")).hexdigest(), 16) % 10
    return _TENTHS[tenth] if tenth < len(_TENTHS) else "train"
