"""A campaign's people: what each has left, how fast and how well they work, when all is done."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any, Final

from pydantic_core import to_jsonable_python

from spanlab.figures import figure
from spanlab.results import Cell, Column, ResultTable, ResultViews, columns_of
from spanlab.schema import AccessToken, AnnotatorKind, DatasetSummary, Permission, Status
from spanlab.scorers.agreement import agreement
from spanlab.storage import FinishedItem, PersonProgress, PlanProgress, Store
from spanlab.storage.campaigns import Entrance
from spanlab.workflows.access import state_of, token_table
from spanlab.workflows.analysis.campaign import CampaignReport, campaign
from spanlab.workflows.datasets import summary_of
from spanlab.workflows.wording import plan_in_words

_ENOUGH: Final = 3  # known items before anybody is warned of
_WINDOW: Final = 14  # days that tell how much a day may bring
_FURTHEST: Final = 730  # days ahead that anything is foreseen
_PERSON: Final = Column(key="person", title="Person")
_KNOWN: Final = "Mean IoU with the gold labels of items that have some."


@dataclass(frozen=True)
class CampaignPerson:
    """A person in a campaign.

    ``per_hour`` is items an hour of work, as the browser measured it. ``agreement`` is the mean
    IoU with others on items that both finished, ``known`` that with gold labels. ``until`` is the
    day (UTC) on which their share is done at the pace of the last days. ``test`` is how the test
    before they may begin went, in words, ``has_begun`` whether they passed it or were let in;
    ``read`` the newest version of the guidelines that they confirmed, 0 for none. ``warning`` is
    what the lead should look at.
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
    """How far a campaign is, by person; ``until`` is the day (UTC) on which its plan is done."""

    summary: DatasetSummary
    plan: PlanProgress | None
    people: tuple[CampaignPerson, ...]
    done: int
    until: date | None
    invitations: tuple[AccessToken, ...] = ()

    def tables(self) -> tuple[ResultTable, ...]:
        """Return people, and links that nobody has used."""
        found = [people_table(self)]
        if self.invitations:
            found.append(token_table(self.invitations, "Invitations that nobody has accepted yet"))
        return tuple(found)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        figures = {
            "dataset": self.summary.name,
            "needed": self.plan and self.plan.needed,
            "done": self.done,
            "until": self.until,
            "people": self.people,
        }
        return dict(to_jsonable_python(figures))


def oversee(store: Store, dataset: str, report: CampaignReport | None = None) -> CampaignOverview:
    """Return how far a campaign is, for its lead.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        report: what people marked, if it is known already; None reads all items.

    Raises:
        NotFoundError: there is no such dataset.
        AccessError: who asks does not lead it.
    """
    store.require(Permission.MANAGE, dataset)
    summary, today = summary_of(store, dataset), datetime.now(UTC).date()
    report = report or campaign(store, dataset)
    plan = store.plan(dataset) if summary.settings.overlap else None
    finished = store.finished(dataset)
    if summary.settings.known:  # which count for no plan
        finished = tuple(each for each in finished if each.item_id not in report.gold)
    days = Counter(each.at.date() for each in finished)
    readings = store.readings(dataset)
    sources = _Sources(
        *(summary, plan, report, finished, store.entered(dataset)),
        last_active=store.last_active(dataset),
        read={each.reviewer: each.version for each in readings},  # the newest comes last
        today=today,
    )
    people = (who.name for who in summary.annotators if who.kind is AnnotatorKind.PERSON)
    tested = (entrance.reviewer for entrance in sources.entrances)
    names = dict.fromkeys((*summary.settings.assigned_to, *people, *sources.read, *tested))
    return CampaignOverview(
        summary=summary,
        plan=plan,
        people=tuple(map(sources.person, names)),
        done=len(finished) if plan is None else plan.done,
        until=None if plan is None else done_by(days, plan.needed - plan.done, today),
        invitations=tuple(
            token
            for token in store.access.tokens("invitation")
            if token.dataset == dataset and state_of(token) == "open"
        ),
    )


def done_by(days: Mapping[date, int], left: int, today: date) -> date | None:
    """Return when so much is done, if days to come bring what the last fourteen did on average.

    Args:
        days: how much was finished on each day (UTC).
        left: how much is to be done.
        today: no day that counts, unless it is the first.

    Returns:
        The day; None where nothing is left or came in these days, or the end is too far away.
    """
    first = max(min(days, default=today), today - timedelta(days=_WINDOW))
    window = [first + timedelta(days=n) for n in range((today - first).days)] or [today]
    mean = sum(days.get(day, 0) for day in window) / len(window)
    if left <= 0 or not mean or left / mean > _FURTHEST:
        return None
    return today + timedelta(days=math.ceil(left / mean))


@dataclass(frozen=True)
class _Sources:
    """What is known of all people together."""

    summary: DatasetSummary
    plan: PlanProgress | None
    report: CampaignReport
    finished: Sequence[FinishedItem]
    entrances: Sequence[Entrance]
    last_active: Mapping[str, datetime]
    read: Mapping[str, int]
    today: date

    def person(self, name: str) -> CampaignPerson:
        """Return what all this says of one person."""
        mine = [each for each in self.finished if each.annotator == name]
        part = (self.plan and self.plan.of(name)) or PersonProgress(name)
        seconds = [each.seconds for each in mine if each.seconds]
        settings = self.summary.settings
        is_shared = not settings.assigned_to  # what is left to one is left to others, too
        days = Counter(each.at.date() for each in mine)
        known = self.report.known.get(name)
        tests = [entrance for entrance in self.entrances if entrance.reviewer == name]
        has_begun = any(entrance.passed for entrance in tests)
        return CampaignPerson(
            name=name,
            assigned=part.assigned,
            done=self._done(name, part),
            left=None if part.assigned is None else part.left,
            per_hour=3600 * len(seconds) / sum(seconds) if seconds else None,
            last_active=self.last_active.get(name),
            agreement=self._agreement.get(name),
            until=None if is_shared else done_by(days, part.left, self.today),
            known=known and known.iou,
            test=next(
                (_in_words(test) for test in reversed(tests) if test.passed is has_begun), ""
            ),
            has_begun=has_begun,
            read=self.read.get(name, 0),
            away=name in settings.away,
            warning="; ".join(self._warnings(name)),
        )

    def _done(self, name: str, part: PersonProgress) -> int:
        if self.plan is not None:
            return part.done + part.beyond
        counts = (who.counts for who in self.summary.annotators if who.name == name)
        return next(counts, {}).get(Status.DONE, 0)

    def _warnings(self, name: str) -> Iterable[str]:
        settings, known = self.summary.settings, self.report.known.get(name)
        least = 0.5 if settings.known is None else settings.known.warn_below
        if name in settings.away:
            yield "left"
        if known is not None and known.items >= _ENOUGH and known.iou < least:
            yield f"known answers below {figure(least, 2)}"
        if settings.guidelines_now and self.read.get(name, 0) < len(settings.guidelines):
            yield "guidelines not read"

    @cached_property
    def _agreement(self) -> Mapping[str, float]:
        """The mean IoU with others, over all items that two finished, by name."""
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for pair in agreement(self.report.marks.values()).pairs:
            for name in (pair.a, pair.b):
                sums[name][0] += pair.n * pair.iou
                sums[name][1] += pair.n
        return {name: total / n for name, (total, n) in sums.items()}


def _in_words(test: Entrance) -> str:
    if not test.attempt:
        return "let in"
    return f"{'passed' if test.passed else 'not passed'}: IoU {figure(test.score or 0.0, 2)}"


def people_table(found: CampaignOverview) -> ResultTable:
    """Return a row per person: what they have done and left, how fast, how well, and until when."""
    settings = found.summary.settings
    has_test = bool(settings.known and settings.known.test_items)
    read = f"Guidelines read (now {len(settings.guidelines)})"
    remarks = [
        "Items an hour are of work as the browser measured it; agreement is the mean IoU with "
        "others on items that both have finished. Days and times are UTC."
    ]
    if found.plan is None:
        remarks.append(
            "This dataset has no plan: its settings say how many people are to finish each item, "
            "and who. Only then is anything left, and is there an end to foresee."
        )
    elif not settings.assigned_to:
        remarks.append("What is left to one is left to others, too: whoever comes first has it.")
    head = plan_in_words(settings) or "No plan"
    done = f": {found.done:,} of {found.plan.needed:,} annotations done" if found.plan else ""

    def row(who: CampaignPerson) -> tuple[Cell, ...]:
        return (
            *(who.name, who.warning or None),
            *(who.assigned, who.done, who.left, who.per_hour),
            who.last_active and f"{who.last_active:%Y-%m-%d %H:%M}",
            *(who.agreement, who.until and who.until.isoformat(), who.known),
            *((who.test or None,) if has_test else ()),
            *((f"version {who.read}" if who.read else None,) if settings.guidelines else ()),
        )

    return ResultTable(
        key="people",
        title=head + done,
        columns=(
            *(_PERSON, Column(key="look", title="To look at")),
            *columns_of("count", "Assigned", "Done", "Left"),
            Column(key="per-hour", title="Items an hour", unit="count", digits=1),
            Column(key="last-active", title="Last active"),
            Column(key="agreement", title="Agreement", unit="score", digits=2),
            Column(key="until", title="Done by"),
            Column(key="known", title="Known answers", unit="score", digits=2, about=_KNOWN),
            *(columns_of("text", "Test") if has_test else ()),
            *(columns_of("text", read) if settings.guidelines else ()),
        ),
        rows=tuple(map(row, found.people)),
        remarks=tuple(remarks),
        empty="Nobody is assigned anything or has annotated anything yet.",
        tones=tuple("yellow" if who.warning else "" for who in found.people),
    )


def remind_table(found: CampaignOverview, now: datetime | None = None) -> ResultTable:
    """Return who has items left, how many, and since when they are inactive, longest first."""
    now = now or datetime.now(UTC)
    late = [who for who in found.people if who.left and not who.away]
    late.sort(key=lambda who: (who.last_active is not None, who.last_active or now))
    return ResultTable(
        key="remind",
        title="Whom to remind",
        columns=(
            *(_PERSON, Column(key="left", title="Left", unit="count")),
            Column(key="since", title="Inactive since"),
            Column(key="days", title="Days", unit="count"),
        ),
        rows=tuple(
            (
                *(who.name, who.left),
                who.last_active and f"{who.last_active:%Y-%m-%d %H:%M}",
                who.last_active and (now - who.last_active).days,
            )
            for who in late
        ),
        empty="Nobody has anything left that the plan gives them.",
    )
