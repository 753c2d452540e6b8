"""People in a campaign: the test before they begin, the items they may write to, and who leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from pydantic import ValidationError

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.base.fields import message_of
from spanlab.output.figures import counted, figure
from spanlab.people.progress import against_gold
from spanlab.schema import (
    ADJUDICATED,
    Annotation,
    AnnotatorKind,
    CheckRules,
    DatasetSettings,
    DatasetSummary,
    Status,
)
from spanlab.schema.progress import PersonProgress
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of
from spanlab.worklists import check_items, drawing, entrances, plans
from spanlab.worklists.check_items import CheckItem, CheckItems
from spanlab.worklists.entrances import Entrance
from spanlab.worklists.names import handle_of


@dataclass(frozen=True)
class EntranceState:
    """The state of a person's test before they may begin.

    ``stage`` is "open" for who may work, "begin" before a test, "test" within one, "failed" after
    it. ``items`` are those of the test at hand, ``done`` how many of them are decided; ``score`` is
    the mean IoU of the last test that came to an end, and ``again`` whether another one may begin.
    """

    stage: Literal["open", "begin", "test", "failed"]
    attempt: int = 0
    items: tuple[str, ...] = ()
    done: int = 0
    score: float | None = None
    again: bool = False


def check_items_of(store: Store, dataset: str, person: str) -> CheckItems:
    """Return which check items a person was given; what calls this must not tell them.

    Raises:
        AccessError: who asks is somebody else, and may not read the dataset.
        NotFoundError: there is no such dataset.
    """
    with store.reading(dataset, person):
        return check_items.given_to(Store(store.database), dataset, person)


def entrance_of(
    store: Store, dataset: str, person: str, settings: DatasetSettings | None = None
) -> EntranceState:
    """Return the state of a person's test; judge the test if all of its items are decided.

    Somebody who has decided other items has begun before there was a test, and needs none.

    Raises:
        NotFoundError: there is no such dataset.
    """
    settings = settings or store.settings(dataset)
    if settings.known is None or not settings.known.test_items:
        return EntranceState("open")
    ended = [test for test in entrances.entered(store, dataset) if test.reviewer == person]
    passed = next((test for test in ended if test.passed), None)
    if passed is not None:
        return EntranceState("open", score=passed.score)
    given_items = check_items_of(store, dataset, person)
    counts = store.counts(dataset, person)
    decided = sum(answer.status is not Status.NOT_ANNOTATED for answer in given_items.given)
    if counts[Status.DONE] + counts[Status.SKIPPED] > decided:
        return EntranceState("open")
    attempt = max((answer.attempt for answer in given_items.given), default=0)
    last = ended[-1] if ended else None
    if attempt > (last.attempt if last else 0):
        return _judge_test(store, dataset, person, given_items.test(attempt))
    if last is None:
        return EntranceState("begin", attempt=1)
    n_left = given_items.total - len(given_items.given)
    may_retry = settings.known.retry and n_left >= settings.known.test_items
    return EntranceState("failed", last.attempt + 1, score=last.score, again=may_retry)


def _judge_test(
    store: Store, dataset: str, person: str, test: Sequence[CheckItem]
) -> EntranceState:
    attempt = test[0].attempt
    names = tuple(answer.item_id for answer in test)
    n_decided = sum(answer.status is not Status.NOT_ANNOTATED for answer in test)
    if n_decided < len(names):
        return EntranceState("test", attempt, names, n_decided)
    unrestricted = Store(store.database)  # with the gold labels, which the person may not see
    right = check_labels(unrestricted, dataset)
    records = (unrestricted.record(dataset, name) for name in names)
    shares = (against_gold(record, [person], right).get(person, 0.0) for record in records)
    score = sum(shares) / len(names)
    rules = store.settings(dataset).known
    passed = rules is None or score >= rules.pass_at
    entrance = Entrance(person, attempt, score=score, passed=passed, at=datetime.now(UTC))
    entrances.enter(store, dataset, entrance)
    return entrance_of(store, dataset, person)


@dataclass(frozen=True)
class TestedItem:
    """An item of a test that has come to an end: what its person marked, and what was right."""

    __test__ = False  # pytest takes the name for one of its own

    answer: str
    marked: Annotation
    right: Annotation
    iou: float


def tested_items(store: Store, dataset: str, person: str) -> tuple[TestedItem, ...]:
    """Return the items of a person's last test that they marked otherwise than is right.

    Empty before a test has come to an end.

    Raises:
        AccessError: they are of somebody else.
        NotFoundError: there is no such dataset.
    """
    given = check_items_of(store, dataset, person)
    ended = (test.attempt for test in entrances.entered(store, dataset) if test.reviewer == person)
    unrestricted = Store(store.database)  # with the gold labels
    names = check_labels(unrestricted, dataset)
    tested = []
    for each in given.test(max(ended, default=0) or -1):
        record = unrestricted.record(dataset, each.item_id)
        right = next((a for a in record.finished if a.annotator in names), None)
        if right is not None:
            none = Annotation(annotator=person, kind=AnnotatorKind.PERSON)
            share = against_gold(record, [person], names).get(person, 0.0)
            marked = record.by(person) or none
            tested.append(TestedItem(record.item.answer, marked, right, share))
    return tuple(item for item in tested if item.iou < 1)


def has_only_tested(store: Store, dataset: str, person: str) -> bool:
    """Return whether a person has decided nothing but the items of tests."""
    counts = store.counts(dataset, person)
    n_tests = len(check_items_of(store, dataset, person).tests)
    return counts[Status.DONE] + counts[Status.SKIPPED] <= n_tests


def begin_test(store: Store, dataset: str, person: str) -> None:
    """Give somebody the items of their next test.

    Raises:
        UsageError: they may not do one, or too few check items are left.
    """
    state = entrance_of(store, dataset, person)
    rules = store.settings(dataset).known
    if rules is None or not (state.stage == "begin" or state.again):
        raise UsageError(f"{person!r} is at no test of {dataset!r} that could begin")
    drawing.give_test(store, dataset, person, state.attempt, rules.test_items)


def let_in(store: Store, dataset: str, person: str) -> None:
    """Let somebody work on a dataset without a test, or after one that they have not passed."""
    entrances.enter(store, dataset, Entrance(person, 0, None, passed=True, at=datetime.now(UTC)))


def prepare_queue(
    store: Store, dataset: str, person: str, sample: Sequence[str] = (), *, anew: bool = True
) -> None:
    """Draw a person's own list of items, or what is to be drawn of it, if they may begin.

    Args:
        store: the annotation database.
        dataset: its name; nothing is done where people have no lists.
        person: whose list it is.
        sample: ids of items that the list is to have in any case: those of a measurement.
        anew: look also whether all of these are there, which takes longer than whether there is
            anything to be drawn.
    """
    settings = store.settings(dataset)
    if settings.has_lists and entrance_of(store, dataset, person, settings).stage == "open":
        drawing.draw(store, dataset, person, sample, anew=anew)


def check_may_write(store: Store, dataset: str, person: str, item: str) -> None:
    """Check that a person may write to an item, whatever it is: marks, notes, states, evidence.

    Where people have lists these are the items of the person's own, before and during a test those
    of the test alone.

    Raises:
        UsageError: there is a test before.
        NotFoundError: there is no such dataset, or no such item for this person.
    """
    settings = store.settings(dataset)
    if not settings.has_lists:
        return
    state = entrance_of(store, dataset, person, settings)
    # A test that has come to an end may still be corrected: what counts is judged already.
    if any(answer.item_id == item for answer in check_items_of(store, dataset, person).tests):
        return
    if state.stage != "open":
        raise UsageError("this dataset has a test before anybody begins: open Review to do it")
    prepare_queue(store, dataset, person)
    handle_of(store, dataset, person, item)


def describe_leaving(store: Store, dataset: str, person: str) -> str:
    """Describe the effect of taking items back from a person.

    Raises:
        NotFoundError: there is no such dataset, or nobody of this name in its plan.
        UsageError: the dataset has no plan.
    """
    summary = summary_of(store, dataset)
    plan, reserved = plans.plan(store, dataset), plans.n_held(store, dataset, person)
    if plan is None:
        raise UsageError(f"{dataset!r} has no plan: nothing is assigned or reserved")
    people = summary.names_of(AnnotatorKind.PERSON)
    names = dict.fromkeys((*summary.settings.assigned_to, *people))
    if not (person in names or reserved):
        raise NotFoundError(
            f"no person named {person!r} in {dataset!r}; available: "
            f"{', '.join(map(repr, names)) or 'none'}"
        )
    part = plan.of(person) or PersonProgress(person)
    if person in summary.settings.assigned_to:
        away = tuple(dict.fromkeys((*summary.settings.away, person)))
        n_left, state = part.left, "assigned"
        place = _moves_in_words(store, dataset, away, n_left)
    else:
        n_left, state, place = reserved, "reserved", "back to the queue"
    return (
        f"{counted(n_left, 'item')} of {person}, {state} and not finished, will go {place}. What "
        f"{person} has finished counts ({counted(part.done, 'item')}). You can undo this, except "
        "for items that others finish meanwhile."
    )


def describe_return(store: Store, dataset: str, person: str) -> str:
    """Describe the effect of giving a person their part of a plan back.

    Raises:
        NotFoundError: there is no such dataset, or nobody of this name is away from it.
    """
    away = store.settings(dataset).away
    if person not in away:
        raise NotFoundError(
            f"no items of {person!r} were reassigned in {dataset!r}; reassigned: "
            f"{', '.join(map(repr, away)) or 'none'}"
        )
    left = tuple(name for name in away if name != person)
    moves = {name: n for name, n in _moves(store, dataset, left).items() if n}
    gained = moves.pop(person, 0)
    lost = ", ".join(f"{name} {n:+,}" for name, n in moves.items())
    others = f" ({lost})" if lost else ""
    return (
        f"{person} gets {counted(gained, 'item')} of the plan again{others}. Items that others "
        "have finished meanwhile stay with them."
    )


def _moves(store: Store, dataset: str, away: Sequence[str]) -> dict[str, int]:
    """Return how many items more each of a plan's people has if these are away."""
    before, after = plans.plan(store, dataset), plans.plan(store, dataset, away=away)
    if before is None or after is None:
        return {}
    names = store.settings(dataset).assigned_to
    pairs = ((name, before.of(name), after.of(name)) for name in names)
    return {
        name: (new.assigned or 0) - (old.assigned or 0) for name, old, new in pairs if old and new
    }


def _moves_in_words(store: Store, dataset: str, away: Sequence[str], n_left: int) -> str:
    moves = {name: n for name, n in _moves(store, dataset, away).items() if n > 0}
    getting = [f"{name} ({n:,})" for name, n in moves.items()]
    n_nobody = n_left - sum(moves.values())
    if n_nobody > 0:
        getting.append(f"nobody ({n_nobody:,}: all others have them already, or are away)")
    return f"to {', '.join(getting) or 'nobody'}"


def test_in_words(state: EntranceState, rules: CheckRules) -> str:
    """Return the words about a test for the person who is before, in or after it."""
    n_items, needed = counted(rules.test_items, "item"), figure(rules.pass_at, 2)
    if state.stage == "begin":
        return (
            f"Qualification test: {n_items} with known answers. To pass, your marks need a mean "
            f"overlap (IoU) of {needed} with the right ones; 1 is the same characters."
        )
    if state.stage == "test":
        return f"Qualification test: {state.done} of {counted(len(state.items), 'item')} decided"
    score = figure(state.score or 0.0, 2)
    if state.stage == "open":
        return f"Passed: mean IoU {score}. You can start."
    kind = (
        "Read the guidelines again, and retry with other items."
        if state.again
        else "Ask the dataset's lead to let you start."
    )
    return f"Not passed: mean IoU {score}, {needed} needed. {kind}"


_COMPARED: Final = (
    "People who compare their lists can tell check items: more people have these than the plan "
    "asks for."
)
OPENED: Final = "Lists that people have opened get more check items only with new items."
CHECK_LABELS: Final = "known"  # the name of labels that make check items, where there are none


def check_labels(store: Store, dataset: str) -> frozenset[str]:
    """Return whose labels make a dataset's check items, or would."""
    summary = summary_of(store, dataset)
    return summary.settings.check_labels(summary.names_of(AnnotatorKind.GOLD))


def checks_in_words(store: Store, dataset: str) -> str:
    """Return how many check items there are, and whose labels make them."""
    rules = store.settings(dataset).known
    names = ", ".join(f"“{name}”" for name in (rules.labels if rules else ()))
    n_checks = len(check_items.check_ids(store, dataset))
    compared = compared_in_words(store.settings(dataset))
    return f"{counted(n_checks, 'check item')}, with labels of {names}. {OPENED} {compared}".strip()


def compared_in_words(settings: DatasetSettings) -> str:
    """Say that lists tell check items; empty if everybody has, or may have, each item."""
    is_told = settings.overlap and settings.overlap < (len(settings.assigned_to) or math.inf)
    return _COMPARED if is_told else ""


def usual_labels(summary: DatasetSummary) -> tuple[str, ...]:
    """Return whose labels make check items unless the lead says otherwise.

    Those that came with the dataset; what its team decides is never among them. Where there are
    none, ``CHECK_LABELS``, under which the lead then decides some on the page Adjudicate.
    """
    gold = (name for name in summary.names_of(AnnotatorKind.GOLD) if name != ADJUDICATED)
    return tuple(gold) or (CHECK_LABELS,)


def change_checks(store: Store, dataset: str, changed: Mapping[str, object] | None) -> None:
    """Change how a dataset uses check items, or end their use.

    With them reviewers never see what others marked, which would tell the answers. Whose labels
    make check items is settled when their use begins: see ``usual_labels``.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        changed: fields of ``CheckRules``, also as text; others stay as they are. None for no use.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: there is no such field, its value is out of range, or too few items have labels
            that make check items.
    """
    summary = summary_of(store, dataset)

    def change(settings: DatasetSettings) -> DatasetSettings:
        if changed is None:
            return settings.model_copy(update={"known": None})
        begun = CheckRules(labels=usual_labels(summary))
        before = (settings.known or begun).model_dump()
        labels = changed.get("labels", before["labels"])
        names = tuple(filter(None, labels.split(","))) if isinstance(labels, str) else labels
        try:
            rules = CheckRules.model_validate({**before, **changed, "labels": names})
        except ValidationError as error:
            first = error.errors()[0]
            names = ", ".join(CheckRules.model_fields)
            raise UsageError(
                f"{first['loc'][0]}: {message_of(first)}; available: {names}"
            ) from error
        _check_enough(summary, rules)
        blind = {"always_blind": True, "shown_when_done": False}
        return settings.model_copy(update={"known": rules, **blind})

    store.change_settings(dataset, change)


def _check_enough(summary: DatasetSummary, rules: CheckRules) -> None:
    """Check that there are check items, and enough of them for the test."""
    n_checks = sum(
        annotator.counts.get(Status.DONE, 0)
        for annotator in summary.annotators
        if annotator.kind is AnnotatorKind.GOLD and annotator.name in rules.labels
    )
    names = " or ".join(f"“{name}”" for name in rules.labels)
    way = (
        f"On the page Adjudicate, enter {names} as the name of the gold labels and decide some "
        "items, or choose other labels (--known labels=NAME)"
    )
    if not n_checks:
        raise UsageError(f"there is no check item yet: nothing is labelled by {names}. {way}")
    if n_checks < rules.test_items:
        raise UsageError(
            f"a test of {counted(rules.test_items, 'item')} needs as many check items, and "
            f"{summary.name!r} has {n_checks}. {way}"
        )
