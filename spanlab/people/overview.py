"""A campaign's people: what each has left, how fast and how well they work, when all is done."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlencode

from spanlab.base.settings import Settings
from spanlab.output.figures import counted, figure
from spanlab.output.tables import Column, ResultTable, ResultViews, column_of, figures_of, table_of
from spanlab.output.wording import blind_in_words, plan_in_words
from spanlab.people.logins import state_of, token_table
from spanlab.people.progress import CampaignReport, CheckMarks, campaign
from spanlab.schema import AccessToken, AnnotatorKind, DatasetSummary, Permission, Status
from spanlab.schema.progress import FinishedItem, PersonProgress, PlanProgress
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of
from spanlab.worklists import check_items, entrances, plans, sight
from spanlab.worklists.entrances import Entrance

_ENOUGH: Final = 3  # check items before anybody is warned of
_WINDOW: Final = 14  # days that tell how much a day may bring
_TOO_FAST: Final = 720  # items an hour: nobody reads and judges an answer within five seconds
_FURTHEST: Final = 730  # days ahead that anything is foreseen
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_PERSON: Final = Column(key="person", title="Person")
_NO_PLAN: Final = (
    "No review plan. Set how many people finish each item, and who, to see remaining work and the "
    "expected finish."
)
_SURPLUS: Final = (
    "more than the plan asks for: an item that is left open for an hour goes to others, too."
)
_CHECKED: Final = "Mean IoU with the right labels of check items."


@dataclass(frozen=True)
class CampaignPerson:
    """A person in a campaign.

    ``per_hour`` is items an hour of work, as the browser measured it. ``agreement`` is the mean
    IoU with others on items that both finished, ``known`` that with gold labels. ``until`` is the
    day (UTC) on which their share is done at the pace of the last days. ``test`` is how each try
    at the test before they may begin went, in words, ``has_begun`` whether they passed it or were
    let in; ``read`` the newest version of the guidelines that they confirmed, 0 for none.
    ``warning`` is what the lead should look at.
    """

    name: str
    assigned: int | None
    done: int
    left: int | None
    per_hour: float | None
    last_active: datetime | None
    agreement: float | None
    until: date | None
    known: float | None
    test: str
    has_begun: bool
    read: int
    away: bool
    warning: str


@dataclass(frozen=True)
class CampaignOverview(ResultViews):
    """The progress of a campaign, by person; ``until`` is the day (UTC) when its plan is done.

    ``is_blind``: whether who looks reviews blind and is not done, so that agreement is left out.
    """

    summary: DatasetSummary
    plan: PlanProgress | None
    people: tuple[CampaignPerson, ...]
    done: int
    until: date | None
    invitations: tuple[AccessToken, ...] = ()
    is_blind: bool = False

    def tables(self) -> tuple[ResultTable, ...]:
        """Return people, and links that nobody has used."""
        people = people_table(self)
        if self.plan is None:
            people = people.model_copy(update={"remarks": (*people.remarks, _NO_PLAN)})
        result_tables = [people]
        if self.invitations:
            result_tables.append(
                token_table(self.invitations, "Invitations that nobody has accepted yet")
            )
        return tuple(result_tables)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return figures_of(
            dataset=self.summary.name,
            needed=self.plan and self.plan.needed,
            done=self.done,
            until=self.until,
            people=self.people,
        )


def oversee(
    store: Store, dataset: str, report: CampaignReport | None = None, reviewer: str = ""
) -> CampaignOverview:
    """Return the overview of a campaign for its lead: the progress of each person.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        report: what people marked, if it is known already; None reads all items.
        reviewer: what who asks is called where they review; empty if they do not.

    Raises:
        NotFoundError: there is no such dataset.
        AccessError: who asks does not lead it.
    """
    store.require(Permission.MANAGE, dataset)
    summary, today = summary_of(store, dataset), datetime.now(UTC).date()
    report = report or campaign(store, dataset)
    plan = plans.plan(store, dataset) if summary.settings.overlap else None
    finished = plans.finished(store, dataset)
    if summary.settings.known:  # which count for no plan
        checks = check_items.check_ids(store, dataset)
        finished = tuple(item for item in finished if item.item_id not in checks)
    days = Counter(item.at.date() for item in finished)
    readings = entrances.readings(store, dataset)
    sources = _Sources(
        summary=summary,
        plan=plan,
        report=report,
        finished=finished,
        entrances=entrances.entered(store, dataset),
        last_active=entrances.last_active(store, dataset),
        read={reading.reviewer: reading.version for reading in readings},  # the newest comes last
        today=today,
    )
    people = summary.names_of(AnnotatorKind.PERSON)
    tested = (entrance.reviewer for entrance in sources.entrances)
    is_blind = bool(reviewer) and sight.sight_of(store, dataset, reviewer).blind
    names = dict.fromkeys((*summary.settings.assigned_to, *people, *sources.read, *tested))
    progress = tuple(map(sources.person, names))
    return CampaignOverview(
        summary=summary,
        plan=plan,
        people=progress,
        done=sum(person.done for person in progress) if plan is None else plan.done,
        until=None if plan is None else _last_day(plan, progress, days, today),
        invitations=tuple(
            token
            for token in store.access.tokens("invitation")
            if token.dataset == dataset and state_of(token) == "open"
        ),
        is_blind=is_blind,
    )


def _last_day(
    plan: PlanProgress, people: Iterable[CampaignPerson], days: Mapping[date, int], today: date
) -> date | None:
    """Foresee when a plan is done: by the pace of all, and not before any of its people are."""
    together = done_by(days, plan.needed - plan.done, today)
    own = (person.until for person in people if person.until and not person.away)
    return together and max(together, *own, together)


def done_by(days: Mapping[date, int], left: int, today: date) -> date | None:
    """Foresee the day on which all is done, at the average pace of the last fourteen days.

    Args:
        days: items finished on each day (UTC).
        left: items that are still to be finished.
        today: the current day (UTC), which counts for the average only if it is the first.

    Returns:
        The day; None if nothing is left, nothing was finished in these days, or it is too far off.
    """
    first = max(min(days, default=today), today - timedelta(days=_WINDOW))
    window = [first + timedelta(days=n) for n in range((today - first).days)] or [today]
    mean = sum(days.get(day, 0) for day in window) / len(window)
    if left <= 0 or not mean or left / mean > _FURTHEST:
        return None
    return today + timedelta(days=math.ceil(left / mean))


@dataclass(frozen=True)
class _Sources:
    """The plan, the marks and the entrances of all people in a campaign."""

    summary: DatasetSummary
    plan: PlanProgress | None
    report: CampaignReport
    finished: Sequence[FinishedItem]
    entrances: Sequence[Entrance]
    last_active: Mapping[str, datetime]
    read: Mapping[str, int]
    today: date

    def person(self, name: str) -> CampaignPerson:
        """Return the progress, the agreement and the warnings of one person."""
        own_items = self._own_items[name]
        part = (self.plan and self.plan.of(name)) or PersonProgress(name)
        seconds = [item.seconds for item in own_items if item.seconds]
        settings = self.summary.settings
        is_shared = not settings.assigned_to  # what is left to one is left to others, too
        days = Counter(item.at.date() for item in own_items)
        check_marks = self._check_marks(name)
        tests = [entrance for entrance in self.entrances if entrance.reviewer == name]
        has_begun = any(entrance.passed for entrance in tests)
        return CampaignPerson(
            name=name,
            assigned=part.assigned,
            done=self._done(name, part),
            left=None if part.assigned is None else part.left,
            per_hour=3600 * len(seconds) / sum(seconds) if seconds else None,
            last_active=self.last_active.get(name),
            agreement=self.report.mean_ious.get(name),
            until=None if is_shared else done_by(days, part.left, self.today),
            known=check_marks and check_marks.iou,
            test=_in_words(tests),
            has_begun=has_begun,
            read=self.read.get(name, 0),
            away=name in settings.away,
            warning="; ".join(self._warnings(name, seconds)),
        )

    @cached_property
    def _own_items(self) -> Mapping[str, list[FinishedItem]]:
        by_person: dict[str, list[FinishedItem]] = defaultdict(list)
        for item in self.finished:
            by_person[item.annotator].append(item)
        return by_person

    def _check_marks(self, name: str) -> CheckMarks | None:
        """Return how a person marked check items; None where the dataset uses none."""
        return self.report.known.get(name) if self.summary.settings.known else None

    def _done(self, name: str, part: PersonProgress) -> int:
        if self.plan is not None:
            return part.done + part.beyond
        counts = {annotator.name: annotator.counts for annotator in self.summary.annotators}
        return counts.get(name, {}).get(Status.DONE, 0)

    def _warnings(self, name: str, seconds: Sequence[float]) -> Iterable[str]:
        settings, check_marks = self.summary.settings, self._check_marks(name)
        if name in settings.away:
            yield "left"
        if (
            check_marks is not None
            and settings.known is not None
            and check_marks.items >= _ENOUGH
            and check_marks.iou < settings.known.warn_below
        ):
            yield f"check items below {figure(settings.known.warn_below, 2)}"
        if settings.guidelines_now and self.read.get(name, 0) < len(settings.guidelines):
            yield "guidelines not read"
        if len(seconds) >= _ENOUGH and sum(seconds) * _TOO_FAST < 3600 * len(seconds):
            yield f"too fast to read: {sum(seconds) / len(seconds):.1f} s per item"


def _in_words(entrances: Sequence[Entrance]) -> str:
    """Say the result of each qualification attempt, in order, and whether the test was waived."""
    tries = sorted(entrances, key=lambda entrance: entrance.attempt or math.inf)
    return ", then ".join(
        f"{'passed' if test.passed else 'not passed'}: IoU {figure(test.score or 0.0, 2)}"
        if test.attempt
        else "waived"
        for test in tries
    )


def people_table(overview: CampaignOverview) -> ResultTable:
    """Return a row per person: items done and left, pace, agreement, and the day of the end."""
    settings = overview.summary.settings
    has_test = bool(settings.known and settings.known.test_items)
    read = f"Guidelines read (now {len(settings.guidelines)})"
    agreement = "Agreement is the mean IoU with others on items that both have finished."
    if overview.is_blind:
        agreement = "You review blind: people's agreement is shown once you have finished."
    pace = any(person.per_hour for person in overview.people)
    active = "Items per hour count active time in Review. Days and times are UTC. " if pace else ""
    remarks = [f"{active}{agreement}"]
    if overview.plan is not None and not settings.assigned_to:
        remarks.append("Remaining items are shared: one item can count for several people.")
        if overview.plan.surplus:
            remarks.append(f"{counted(overview.plan.surplus, 'review')} {_SURPLUS}")
    remarks.append(blind_in_words(settings))
    head = plan_in_words(settings) or "People"
    done_of_needed = (
        f": {overview.done:,} of {overview.plan.needed:,} annotations done"
        if overview.plan and overview.plan.needed
        else ""
    )
    return table_of(
        "people",
        head + done_of_needed,
        overview.people,
        (_PERSON, lambda person: person.name),
        (column_of("text", "Needs attention", "look"), lambda person: person.warning or None),
        (column_of("count", "Assigned"), lambda person: person.assigned),
        (column_of("count", "Done"), lambda person: person.done),
        (column_of("count", "Remaining"), lambda person: person.left),
        (column_of("count", "Items per hour", "per-hour", digits=1), lambda row: row.per_hour),
        (column_of("text", "Last active"), _last_active),
        *(
            [(column_of("score", "Agreement", digits=2), lambda row: row.agreement)]
            if not overview.is_blind
            else ()
        ),
        (column_of("text", "Expected finish", "until"), lambda row: str(row.until or "") or None),
        *(
            [
                (
                    column_of("score", "Check items", "known", digits=2, about=_CHECKED),
                    lambda row: row.known,
                )
            ]
            if settings.known
            else ()
        ),
        *([(column_of("text", "Test"), lambda row: row.test or None)] if has_test else ()),
        *(
            [(column_of("text", read), lambda row: f"version {row.read}" if row.read else None)]
            if settings.guidelines
            else ()
        ),
        remarks=remarks,
        empty="Nothing has been assigned or annotated yet.",
        tones=["yellow" if person.warning else "" for person in overview.people],
    )


def _last_active(person: CampaignPerson) -> str | None:
    return f"{person.last_active:%Y-%m-%d %H:%M}" if person.last_active else None


def remind_table(overview: CampaignOverview, now: datetime | None = None) -> ResultTable:
    """Return a row per person with items left: how many, and since when they are inactive."""
    now = now or datetime.now(UTC)
    late = sorted(_late(overview), key=lambda person: person.last_active or _NEVER)
    return table_of(
        "remind",
        "People to remind",
        late,
        (_PERSON, lambda person: person.name),
        (column_of("count", "Remaining", "left"), lambda person: person.left),
        (column_of("text", "Inactive since", "since"), _last_active),
        (
            column_of("count", "Days"),
            lambda row: (now - row.last_active).days if row.last_active else None,
        ),
        empty="No one has remaining items under the plan.",
    )


def reminders(overview: CampaignOverview) -> Mapping[str, str]:
    """Return a text to send to each person with items left, by name."""
    url, dataset = Settings.read().url, overview.summary.name
    place = f"\n{url.rstrip('/')}/review?{urlencode({'dataset': dataset})}" if url else ""
    return {
        person.name: f"{person.name}: of “{dataset}”, {counted(person.left or 0, 'item')} "
        f"{'is' if person.left == 1 else 'are'} still waiting for you. What you did is saved; "
        f"open Review in the browser that you used before.{place}"
        for person in _late(overview)
    }


def _late(overview: CampaignOverview) -> list[CampaignPerson]:
    return [person for person in overview.people if person.left and not person.away]
