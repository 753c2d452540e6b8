"""People in a campaign: whether one may begin, and what becomes of the items of one who left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import ValidationError

from spanlab.errors import NotFoundError, UsageError
from spanlab.figures import counted, figure
from spanlab.schema import AnnotatorKind, DatasetSettings, KnownAnswers, Status
from spanlab.scorers.agreement import rated
from spanlab.storage import Store
from spanlab.storage.campaigns import Entrance, KnownItems
from spanlab.workflows.analysis.campaign import against_gold
from spanlab.workflows.datasets import summary_of


@dataclass(frozen=True)
class EntranceState:
    """Where somebody stands with the test before they may begin.

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


def entrance_of(
    store: Store, dataset: str, person: str, settings: DatasetSettings | None = None
) -> EntranceState:
    """Return whether somebody may work on a dataset; a test whose items are decided ends here.

    Whoever has decided other items than those of tests has begun before there was one, and may.

    Raises:
        NotFoundError: there is no such dataset.
    """
    settings = settings or store.settings(dataset)
    if settings.known is None or not settings.known.test_items:
        return EntranceState("open")
    ended = [test_taken for test_taken in store.entered(dataset) if test_taken.reviewer == person]
    passed = next((test_taken for test_taken in ended if test_taken.passed), None)
    if passed is not None:
        return EntranceState("open", score=passed.score)
    given = store.known_items(dataset, person)
    counts = store.counts(dataset, person)
    decided = sum(answer.status is not Status.NOT_ANNOTATED for answer in given.given)
    if counts[Status.DONE] + counts[Status.SKIPPED] > decided:
        return EntranceState("open")
    attempt = max((answer.attempt for answer in given.given), default=0)
    last = ended[-1] if ended else None
    if attempt > (last.attempt if last else 0):
        return _within(store, dataset, person, attempt, given)
    if last is None:
        return EntranceState("begin", attempt=1)
    return _failed(settings.known, given, last)


def _within(
    store: Store, dataset: str, person: str, attempt: int, given: KnownItems
) -> EntranceState:
    test = given.test(attempt)
    names = tuple(answer.item_id for answer in test)
    done = sum(answer.status is not Status.NOT_ANNOTATED for answer in test)
    if done < len(names):
        return EntranceState("test", attempt, names, done)
    shares = []
    whole = Store(store.database)  # with the gold labels, which the person may not see
    for name in names:
        record = whole.record(dataset, name)
        shares.append(against_gold(record, rated(record, [person])).get(person, 0.0))
    score = sum(shares) / len(shares)
    known = store.settings(dataset).known
    passed = known is None or score >= known.pass_at
    store.enter(dataset, Entrance(person, attempt, score, passed, datetime.now(UTC)))
    return entrance_of(store, dataset, person)


def _failed(known: KnownAnswers, given: KnownItems, last: Entrance) -> EntranceState:
    left = given.total - len(given.given)
    again = known.retry and left >= known.test_items
    return EntranceState("failed", last.attempt + 1, score=last.score, again=again)


def begin_test(store: Store, dataset: str, person: str) -> None:
    """Give somebody the items of their next test.

    Raises:
        UsageError: they may not do one, or too few items with gold labels are left.
    """
    state = entrance_of(store, dataset, person)
    known = store.settings(dataset).known
    if (
        known is None
        or state.stage not in {"begin", "failed"}
        or (state.stage == "failed" and not state.again)
    ):
        raise UsageError(f"{person!r} is at no test of {dataset!r} that could begin")
    store.give_test(dataset, person, state.attempt, known.test_items)


def let_in(store: Store, dataset: str, person: str) -> None:
    """Let somebody work on a dataset without a test, or after one that they have not passed."""
    store.enter(dataset, Entrance(person, 0, None, passed=True, at=datetime.now(UTC)))


def check_begun(store: Store, dataset: str, person: str, item: str) -> None:
    """Check that somebody may write to an item: of who is at a test, to those of the test alone.

    Raises:
        UsageError: they may not.
        NotFoundError: there is no such dataset.
    """
    settings = store.settings(dataset)
    if settings.known is None or not settings.known.test_items:
        return
    given = store.known_items(dataset, person).given
    if any(answer.item_id == item and answer.attempt for answer in given):
        return
    if entrance_of(store, dataset, person, settings).stage != "open":
        raise UsageError("this dataset has a test before anybody begins: open Review to do it")


def leaving(store: Store, dataset: str, person: str) -> str:
    """Say what taking items back from a person would do.

    Raises:
        NotFoundError: there is no such dataset, or nobody of this name in its plan.
        UsageError: the dataset has no plan.
    """
    summary = summary_of(store, dataset)
    part, reserved = store.part(dataset, person), store.n_held(dataset, person)
    if part is None:
        raise UsageError(f"{dataset!r} has no plan: nothing is assigned or reserved")
    people = [w.name for w in summary.annotators if w.kind is AnnotatorKind.PERSON]
    known = dict.fromkeys((*summary.settings.assigned_to, *people))
    if not (person in known or reserved):
        raise NotFoundError(
            f"nobody called {person!r} works on {dataset!r}; there are: "
            f"{', '.join(map(repr, known)) or 'nobody yet'}"
        )
    if person in summary.settings.assigned_to:
        left, which, where = part.left, "assigned", "to those who come next in the plan"
    else:
        left, which, where = reserved, "reserved", "back to the queue, for whoever comes first"
    return (
        f"{counted(left, 'item')} of {person}, {which} and not finished, will go {where}. What "
        f"{person} has finished stays and counts ({counted(part.done, 'item')}). By the plan, "
        "Review offers them nothing any more. Giving back undoes this, but for what others have "
        "finished by then."
    )


def test_in_words(state: EntranceState, known: KnownAnswers) -> str:
    """Return what is said of a test to whoever is before, in or after it."""
    n_items, wanted = counted(known.test_items, "item"), figure(known.pass_at, 2)
    if state.stage == "begin":
        return (
            f"Before you begin: {n_items} to get to know the task. Their right answers are known, "
            f"and your marks are compared with them: an overlap (IoU) of {wanted} leads on. Take "
            "your time, and read the guidelines first (key g)."
        )
    if state.stage == "test":
        return f"Test before you begin: {state.done} of {counted(len(state.items), 'item')} decided"
    score = figure(state.score or 0.0, 2)
    if state.stage == "open":
        return f"Thank you: your marks overlap with the known answers by {score}. You may begin."
    kind = (
        "Have another look at the guidelines, and try again with other items."
        if state.again
        else "Who leads this dataset can let you in: ask them."
    )
    return (
        f"Thank you for doing the test. Your marks overlap with the known answers by {score}; "
        f"{wanted} is needed here. Tasks like this are learnt by doing. {kind}"
    )


def change_known(store: Store, dataset: str, changed: Mapping[str, object] | None) -> None:
    """Change how items with known answers are used, or use them no more.

    Where they are, reviewers never see what others marked: it would tell the answers.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        changed: fields of ``KnownAnswers``, also as text; others stay as they are. None for no use.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: there is no such field, or its value is out of range.
    """

    def change(now: DatasetSettings) -> DatasetSettings:
        if changed is None:
            return now.model_copy(update={"known": None})
        before = (now.known or KnownAnswers()).model_dump()
        try:
            known = KnownAnswers.model_validate({**before, **changed})
        except ValidationError as error:
            first = error.errors()[0]
            names = ", ".join(KnownAnswers.model_fields)
            raise UsageError(f"{first['loc'][0]}: {first['msg']}; there are {names}") from error
        blind = {"always_blind": True, "shown_when_done": False}
        return now.model_copy(update={"known": known, **blind})

    store.change_settings(dataset, change)
