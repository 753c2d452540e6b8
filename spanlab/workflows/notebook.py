"""The few functions that a notebook or script needs, on lists of records in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from spanlab.datasets import ReadOptions, read, write
from spanlab.detectors import Detector, DetectorSpec, EnsembleSpec, LocalDetector, Spec
from spanlab.errors import InputError, UsageError
from spanlab.labels import labels_of
from spanlab.lm import Budget, ModelChoice
from spanlab.options import problem
from spanlab.retrievers import RetrieverSpec
from spanlab.schema import Record
from spanlab.scorers import ScoreReport
from spanlab.scorers import score as score_labels
from spanlab.workflows.detection.file_run import FileRun
from spanlab.workflows.detection.request import (
    RunLimits,
    RunOptions,
    check_without_dataset,
    request_of,
)
from spanlab.workflows.detection.selection import DetectorSelection, specifications
from spanlab.workflows.voting import Cleanup, vote_records


def load(
    *files: str | Path,
    format: str = "auto",
    contexts: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    records: str | None = None,
    turns: str = "last",
) -> list[Record]:
    """Read records from files of any supported format.

    Args:
        files: paths, read in order.
        format: "auto" or one of ``spanlab.datasets.FORMATS``.
        contexts: a directory of ``<id>.context.txt`` files or a JSONL with passages.
        columns: for tables and JSON, our field → their column or path of fields.
        records: for JSON that is one object, the path of its list of records; None finds it.
        turns: of a chat, the "last" answer is an item or "all" are.

    Returns:
        All records, possibly none.

    Raises:
        InputError: names file, line, field, what was found and what would be right.
    """
    options = ReadOptions(
        format=format,
        contexts=None if contexts is None else Path(contexts),
        columns=columns,
        records=records,
        turns=turns,
    )
    return [record for file in files for record in read(Path(file), options)]


def annotate(
    records: Iterable[Record],
    detector: str | DetectorSelection | Spec | Detector | LocalDetector = "offline",
    **options: object,
) -> list[Record]:
    """Return the records with a detector's annotation added, or renewed.

    It may be called from a notebook, whose event loop already runs.

    Args:
        records: what to annotate.
        detector: a detector's or ensemble's name or specification, a `DetectorSelection` of one, or
            an object with `name` and `annotate(item)` or `async detect(item)`.
        **options: for a detector by name, those of `spanlab annotate` with underscores, such as
            ``model="gpt-4o-mini", search="brave", max_calls=500``, and ``retriever``, a
            specification; for the others ``concurrency``, ``budget`` and the limits of a budget.
            For detectors that ask no model ``concurrency`` is the number of processes (None: 1),
            for the others that of items annotated at once (None: 32).

    Raises:
        UsageError: no detector or option has this name, or something it needs is missing.
        BudgetError: the budget is used up; what was paid for is in the cache of answers.
        ConfigurationError: key, address or name of the model is wrong.
    """
    if isinstance(detector, str):
        chosen = RunOptions.checked({"detectors": (detector,), **options})
        (detector,) = specifications(chosen)
        limits: RunLimits = chosen
    else:
        try:
            limits = RunLimits.checked(options)
        except UsageError as error:
            also = "what a detector works with goes with its name, or into its specification"
            raise UsageError(f"{error}; {also}") from None
    check_without_dataset(limits)
    if isinstance(detector, DetectorSelection):
        (detector,) = specifications(detector)
    if isinstance(detector, DetectorSpec | EnsembleSpec):
        bounds = {"concurrency": limits.concurrency, "budget": limits.budget}
        stream = FileRun.of(request_of("records", [detector], **bounds))
    else:
        stream = FileRun.own(detector, limits.concurrency)
    found = []
    for record in stream.annotated(islice(records, limits.limit)):
        if stream.spent is not None:
            raise stream.spent
        found.append(record)
    return found


def reason(
    records: Iterable[Record],
    verification: Literal["none", "self", "safe"] = "safe",
    *,
    model: str | ModelChoice | None = None,
    generator: str | ModelChoice | None = None,
    retriever: RetrieverSpec | None = None,
    budget: Budget | None = None,
    **options: object,
) -> list[Record]:
    """Answer the questions of records step by step, with every step verified (SAFE).

    Args:
        records: items with a question, and the passages to answer it from.
        verification: who verifies: nobody, the generator itself, or the verifier.
        model: the model that verifies and reasons; None takes SPANLAB_MODEL.
        generator: the model that reasons, if it is another one.
        retriever: searched for evidence that the passages lack; None for nobody.
        budget: limits on the model calls.
        options: ``steps``, ``retries``, ``feedback`` and ``judge``, see ``ReasonOptions``.

    Returns:
        A record for each: its answer is the steps, ``meta["reasoning"]`` has the final answer, and
        steps that stayed wrong are marked.

    Raises:
        UsageError: there is no such option, or something that is needed is missing.
        BudgetError: the budget is used up; what was paid for is in the cache of answers.
        ConfigurationError: key, address or name of the model is wrong.
    """
    from spanlab.detectors.safe.reasoner import ReasonOptions
    from spanlab.workflows.reasoning import QuestionReasoner

    choice = DetectorSelection(detectors=("safe",), model=model or "", retriever=retriever)
    try:
        way = ReasonOptions.model_validate({"verification": verification, **options})
    except ValidationError as error:
        raise UsageError(f"reason: {problem(error)}") from None
    work = QuestionReasoner(choice, [way], generator=generator, budget=budget)
    found = list(work.answered(records))
    if work.spent is not None:
        raise work.spent
    return found


def vote(
    records: Iterable[Record],
    annotators: Sequence[str] | None = None,
    *,
    name: str = "vote",
    cleanup: Cleanup = "none",
) -> list[Record]:
    """Return the records with a vote added: the share of annotators that mark each character.

    Args:
        records: what to vote on.
        annotators: who votes; None for all persons.
        name: what the vote is called.
        cleanup: "mushroom" trims raw spans as SemEval-2025 Task 3 did.
    """
    return list(vote_records(records, annotators=annotators, name=name, cleanup=cleanup))


def score(records: Iterable[Record], annotator: str, gold: str = "gold") -> ScoreReport:
    """Score one annotator of the records against another.

    Args:
        records: records that both have annotated.
        annotator: whose annotations are scored.
        gold: whose annotations are right.

    Returns:
        Scores per item, per language and macro over languages.

    Raises:
        InputError: there are no records, or one lacks either annotation.
    """
    pairs = []
    for record in records:
        for name in (gold, annotator):
            if record.by(name) is None:
                raise InputError(
                    f"item {record.item.id!r} has no annotation by {name!r}",
                    expected=f"one of {[a.annotator for a in record.annotations]}",
                )
        pairs.append((labels_of(record, gold), labels_of(record, annotator)))
    if not pairs:
        raise InputError("there are no records to score")
    return score_labels(pairs)


def save(
    records: Iterable[Record],
    path: str | Path,
    *,
    format: str | None = None,
    annotator: str | None = None,
) -> int:
    """Write records to a file, which appears only when it is complete.

    Args:
        records: what to write.
        path: the file to write or replace.
        format: "spanlab" (lossless), mushroom, labelstudio, averitec, claims, csv, parquet or
            huggingface; None goes by the path's ending: .jsonl, .csv, .parquet or .zip.
        annotator: only this annotator's annotations; None for all.

    Returns:
        The number of records written.

    Raises:
        UsageError: there is no such format, or the path's ending says none.
        InputError: the file cannot be written, or the format needs one annotator to be named.
    """
    return write(records, Path(path), format=format, annotator=annotator)
