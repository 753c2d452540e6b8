"""Prompt optimisation as a job: a workflow whose searches are kept one by one.

    prepare   which labelled items, with their labels as they are now, and their passages
    fold      search on all but one fold, score both prompts on that one; for each fold
    finish    search on all items, and keep the program

What a step returns is kept by DBOS and not done again. A step that was killed begins anew and
comes to the same end: its search draws from a seed, and every answer of a model is in the cache.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from dbos import DBOS
from pydantic import TypeAdapter

from optimizers.estimates import plan_search
from optimizers.examples import LabelledItem, PartLabel
from optimizers.held_out import FoldScores
from optimizers.preparing import build_tuner, choose_examples, fetch_passages
from optimizers.request import Optimisation
from optimizers.tuning import PromptTuner
from optimizers.watching import Event, SearchRemark, StoppableMeter
from spanlab.base.errors import SpanlabError
from spanlab.detection import DetectorSpec
from spanlab.detection.setup import settings_of
from spanlab.jobs import job_store, worker
from spanlab.jobs.rate_limiter import JobCalls
from spanlab.jobs.steps import notify_when_done, step
from spanlab.jobs.thread_watch import ThreadWatch
from spanlab.jobs.views import KINDS, curve_of, progress_of
from spanlab.models import Meter
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import SearchCurve, SearchTrial, TunedProgram
from spanlab.schema.progress import RunProgress
from spanlab.schema.usage import Usage
from spanlab.text.labels import ItemLabels

T = TypeVar("T")
Pinned = list[dict[str, Any]]  # the labels of each item or claim, as JSON


@DBOS.workflow(name=KINDS["optimise"].workflow)
@notify_when_done("optimise")
async def optimise(request: dict[str, Any]) -> dict[str, Any]:
    """Tune a detector's prompts; ``request`` is an optimisation as JSON."""
    job_id = DBOS.workflow_id or ""
    pinned = await _prepare(request)
    count = int(request["search"]["folds"])
    if count and request["search"]["target"] and request["search"]["transfer"] == "others":
        count = 1
    scores = [await _fold(job_id, request, pinned, number) for number in range(1, count + 1)]
    return await _finish(job_id, request, pinned, scores)


@step("spanlab.optimise.prepare")
async def _prepare(request_json: dict[str, Any]) -> Pinned:
    me, request = worker.current(), Optimisation.model_validate(request_json)
    examples = await asyncio.to_thread(
        lambda: choose_examples(me.store.records(request.dataset), request.search)
    )
    job_id = DBOS.workflow_id or ""
    meter = Meter(request, before_attempt=JobCalls(me, job_id, request).wait)
    progress = RunProgress(
        total=plan_search(request.search, len(examples)).trials, started=time.time()
    )
    try:
        examples = await fetch_passages(examples, request, meter, me.store)
    except SpanlabError:
        await asyncio.to_thread(me.jobs.report, job_id, replace(progress, usage=meter.usage))
        raise
    progress = replace(progress, usage=meter.usage)
    unit = request.search.unit
    curve = SearchCurve(items=len(examples), unit=unit)
    await asyncio.to_thread(me.jobs.report, job_id, progress, curve)
    await asyncio.to_thread(
        me.jobs.note, job_id, f"{me.name} begins: {len(examples)} labelled {unit}"
    )
    labels = [example.label for example in examples]
    pinned: Pinned = TypeAdapter(list[ItemLabels | PartLabel]).dump_python(labels, mode="json")
    return pinned


@step("spanlab.optimise.fold")
async def _fold(
    job_id: str, request: dict[str, Any], pinned: Pinned, number: int
) -> dict[str, Any]:
    def work(tuner: PromptTuner, examples: list[LabelledItem]) -> dict[str, Any]:
        parts = tuner.split(examples)
        if number > len(parts):
            return {}
        return tuner.run_fold(number, parts[number - 1]).model_dump(mode="json")

    return await _run_watched(job_id, request, pinned, work, fold=number)


@step("spanlab.optimise.finish")
async def _finish(
    job_id: str, request: dict[str, Any], pinned: Pinned, scores: list[dict[str, Any]]
) -> dict[str, Any]:
    programs = ProgramRegistry(worker.current().settings.programs)

    def work(tuner: PromptTuner, examples: list[LabelledItem]) -> dict[str, Any]:
        folds = [FoldScores.model_validate(fold) for fold in scores]
        program = tuner.finish(examples, folds)
        kept = _save_under_free_name(program, programs)
        if kept.name != program.name:
            remark = f"another search has taken the name {program.name}: kept as {kept.name}"
            tuner.on_event(SearchRemark(text=remark))
        program = kept
        held_out = None if program.held_out is None else program.held_out.model_dump(mode="json")
        return {"program": program.name, "held_out": held_out}

    outcome = await _run_watched(job_id, request, pinned, work, fold=0)
    me = worker.current()
    row = await asyncio.to_thread(me.jobs.part, job_id)
    curve = SearchCurve.model_validate({**(curve_of(row) or SearchCurve()).model_dump(), **outcome})
    await asyncio.to_thread(me.jobs.report, job_id, progress_of(row), curve)
    return outcome


def _save_under_free_name(program: TunedProgram, programs: ProgramRegistry) -> TunedProgram:
    """Keep a program; if another search has taken its name meanwhile, under the next free one."""
    number, kept = 1, program
    while kept.name in programs:
        existing = programs.load(kept.name)
        name_and_time = {"created": existing.created, "name": existing.name}
        if existing == program.model_copy(update=name_and_time):
            return existing  # this step was killed right after it
        number += 1
        kept = program.model_copy(update={"name": f"{program.name}-{number}"})
    programs.save(kept)
    return kept


async def _run_watched(
    job_id: str,
    request_json: dict[str, Any],
    pinned: Pinned,
    work: Callable[[PromptTuner, list[LabelledItem]], T],
    *,
    fold: int,
) -> T:
    """Do ``work`` in a thread; meanwhile tell how far it is, and stop it if the job is stopped."""
    request, watch = Optimisation.model_validate(request_json), await ThreadWatch.begun(job_id)
    settings, store = watch.me.settings, watch.me.store
    curve = (curve_of(watch.row) or SearchCurve()).without_fold(fold)
    progress_log = ProgressLog(curve, progress_of(watch.row))
    stopper = StoppableMeter(
        request,
        spent=progress_log.before.usage,
        should_stop=watch.stopped.is_set,
        wait=watch.pace(request),
        concurrency=request.search.threads,
    )
    labels = TypeAdapter(list[ItemLabels | PartLabel]).validate_python(pinned)
    ids = list(dict.fromkeys(label.id for label in labels))

    def run() -> T:
        records = store.records_at(request.dataset, store.positions_of(request.dataset, ids))
        items = {record.item.id: record.item for record in records}
        examples = [
            LabelledItem.of(items[label.id], label) for label in labels if label.id in items
        ]
        examples.sort(key=lambda example: example.item.id)
        return work(build_tuner(request, settings, stopper, progress_log.add), examples)

    return await watch.run(run, progress_log, stopper)


class ProgressLog:
    """The trials and remarks of a search; written by its threads, read by the worker's loop."""

    def __init__(self, curve: SearchCurve, before: RunProgress) -> None:
        self.before = before
        self._curve = curve
        self._lock = threading.Lock()
        self._remarks: list[str] = []
        self._new = True
        self._saved_usage = Usage()

    def add(self, event: Event) -> None:
        """Add a trial or a remark."""
        with self._lock:
            self._new = True
            if isinstance(event, SearchTrial):
                self._curve = self._curve.with_trial(event)
            else:
                self._remarks.append(event.text)

    def save(self, jobs: job_store.JobStore, job_id: str, stopper: StoppableMeter) -> None:
        """Save with the job what is new since the last time."""
        used = stopper.usage
        with self._lock:
            if not self._new and used == self._saved_usage:
                return
            new, self._new, self._saved_usage = self._new, False, used
            curve, remarks, self._remarks = self._curve, self._remarks, []
        done = len(curve.trials)
        progress = replace(
            self.before,
            done=done,
            total=max(self.before.total, done),
            usage=self.before.usage + used,
        )
        jobs.report(job_id, progress, curve if new else None)
        for remark in remarks:
            jobs.note(job_id, remark)


def same(under_way: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Say whether a search under way does all that another one asks for."""
    a, b = map(Optimisation.model_validate, (under_way, request))
    left_out = {"name", "threads", "detector", "prompt_model"}
    return (
        a.dataset == b.dataset
        and a.search.model_dump(exclude=left_out) == b.search.model_dump(exclude=left_out)
        and settings_of(a.search.detector) == settings_of(b.search.detector)
        and _writer(a.search.prompt_model) == _writer(b.search.prompt_model)
    )


def _writer(model: Any) -> object:
    return None if model is None else settings_of(DetectorSpec(detector="prompts", model=model))
