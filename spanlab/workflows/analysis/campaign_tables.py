"""What is said of a campaign's people: done, left, how fast, how well, and when all is done."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from spanlab.results import (
    ITEMS,
    Cell,
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    ResultViews,
    columns_of,
    figure,
)
from spanlab.schema import AccessToken, DatasetSummary
from spanlab.storage import PlanProgress
from spanlab.storage.campaigns import Entrance, ReadGuidelines
from spanlab.workflows.access import token_table
from spanlab.workflows.analysis.campaign import KnownMarks
from spanlab.workflows.analysis.forecast import WINDOW, Forecast
from spanlab.workflows.analysis.responses import ALPHAS, MATCHED, QuestionAgreement
from spanlab.workflows.wording import plan_in_words

_POINTS: Final = 60  # of a forecast in a picture
_PERSON: Final = Column(key="person", title="Person")
_KNOWN: Final = "Mean IoU with the gold labels of items that have some."


@dataclass(frozen=True)
class CampaignPerson:
    """A person in a campaign.

    ``per_hour`` is items an hour of work, as the browser measured it. ``agreement`` is the mean
    IoU with others on items that both finished. ``until`` is the day on which their share is
    done at the pace of the last days. ``read`` is the newest version of the guidelines that they
    confirmed; ``warning`` is what the lead should look at.
    """

    name: str
    assigned: int | None
    done: int
    left: int | None
    per_hour: float | None
    last_active: datetime | None
    agreement: float | None
    until: date | None
    known: KnownMarks | None
    read: int
    away: bool
    warning: str


@dataclass(frozen=True)
class CampaignOverview(ResultViews):
    """How far a campaign is, by person and in time (days are UTC)."""

    summary: DatasetSummary
    plan: PlanProgress | None
    people: tuple[CampaignPerson, ...]
    days: tuple[tuple[date, int], ...]
    forecast: Forecast | None
    readings: tuple[ReadGuidelines, ...]
    entrances: tuple[Entrance, ...]
    invitations: tuple[AccessToken, ...] = ()
    responses: tuple[QuestionAgreement, ...] = ()

    def tables(self) -> tuple[ResultTable, ...]:
        """Return people, progress, known answers, and who read and tested what."""
        settings = self.summary.settings
        found = [people_table(self), progress_table(self)]
        if settings.known or any(who.known for who in self.people):
            found.append(known_table(self))
        if settings.known and settings.known.test_items:
            found.append(entrance_table(self))
        if settings.guidelines:
            found.append(readings_table(self))
        if self.responses:
            found.append(responses_table(self))
        if self.invitations:
            found.append(token_table(self.invitations, "Invitations that nobody has accepted yet"))
        return tuple(found)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            "dataset": self.summary.name,
            "needed": self.plan and self.plan.needed,
            "done": self.plan and self.plan.done,
            "forecast": self.forecast
            and {
                "early": self.forecast.early.isoformat(),
                "half": self.forecast.half.isoformat(),
                "late": self.forecast.late.isoformat(),
            },
            "people": [
                asdict(who)
                | {
                    "last_active": who.last_active and who.last_active.isoformat(),
                    "until": who.until and who.until.isoformat(),
                }
                for who in self.people
            ],
            "guidelines": [each._asdict() | {"at": each.at.isoformat()} for each in self.readings],
            "entrances": [each._asdict() | {"at": each.at.isoformat()} for each in self.entrances],
        }


def people_table(found: CampaignOverview) -> ResultTable:
    """Return a row per person: what they have done and left, how fast, how well, and until when."""
    plan = found.plan
    head = plan_in_words(found.summary.settings)
    remarks = [
        "Items an hour are of work as the browser measured it; agreement is the mean IoU with "
        "others on items that both have finished. Days and times are UTC."
    ]
    if plan is None:
        remarks.append(
            "This dataset has no plan: its settings say how many people are to finish each item, "
            "and who. Only then is anything left, and is there an end to foresee."
        )
    elif not found.summary.settings.assigned_to:
        remarks.append("What is left to one is left to others, too: whoever comes first has it.")
    done = f": {plan.done:,} of {plan.needed:,} annotations done" if plan else ""
    return ResultTable(
        key="people",
        title=f"{head or 'No plan'}{done}",
        columns=(
            _PERSON,
            *columns_of("count", "Assigned", "Done", "Left"),
            Column(key="per-hour", title="Items an hour", unit="count", digits=1),
            Column(key="last-active", title="Last active"),
            Column(key="agreement", title="Agreement", unit="score", digits=2),
            Column(key="until", title="Done by"),
            Column(key="known", title="Known answers", unit="score", digits=2, about=_KNOWN),
            Column(key="look", title="To look at"),
        ),
        rows=tuple(
            (
                *(who.name, who.assigned, who.done, who.left, who.per_hour),
                who.last_active and f"{who.last_active:%Y-%m-%d %H:%M}",
                *(who.agreement, who.until and who.until.isoformat()),
                *(who.known and who.known.iou, who.warning or None),
            )
            for who in found.people
        ),
        remarks=tuple(remarks),
        empty="Nobody is assigned anything or has annotated anything yet.",
        tones=tuple("yellow" if who.warning else "" for who in found.people),
    )


def progress_table(found: CampaignOverview) -> ResultTable:
    """Return annotations by day: those there are, and those that the last days let expect."""
    rows = list[tuple[Cell, ...]]()
    # What was imported has no day: it was there before the first one.
    done = max((found.plan.done if found.plan else 0) - sum(more for _, more in found.days), 0)
    for day, more in found.days:
        done += more
        rows.append((day.isoformat(), done, "done"))
    remarks: tuple[str, ...] = ()
    if found.forecast is not None:
        step = math.ceil(len(found.forecast.days) / _POINTS)
        last = len(found.forecast.days) - 1
        if found.days:  # the line goes on where the other one ends
            rows.append((found.days[-1][0].isoformat(), done, "expected"))
        for at, (day, expected) in enumerate(found.forecast.days):
            if at % step == 0 or at == last:
                sums = {name: done + value for name, value in expected.model_dump().items()}
                rows.append((day.isoformat(), MeanInterval(**sums), "expected"))
        early, half, late = found.forecast.early, found.forecast.half, found.forecast.late
        between = "" if early == late else f": between {early} and {late} in eight of ten draws"
        remarks = (f"Done by {half} if days go on to be like the last {WINDOW}{between}.",)
    elif found.plan is not None and found.plan.done < found.plan.needed:
        remarks = (f"No end to foresee: too little was finished in the last {WINDOW} days.",)
    return ResultTable(
        key="progress",
        title="Annotations done, and expected",
        columns=(
            Column(key="day", title="Day"),
            Column(key="annotations", title="Annotations", unit="count", digits=0),
            Column(key="which", title="Which"),
        ),
        rows=tuple(rows) if found.days else (),
        remarks=remarks,
        chart=Chart(kind="progress", x="annotations", y="day", group="which"),
        empty="Nobody has pressed Done in Review yet; imported annotations have no day.",
    )


def known_table(found: CampaignOverview) -> ResultTable:
    """Return how people marked the items with gold labels, the worst first."""
    marks = [(who.name, who.known) for who in found.people if who.known is not None]
    marks.sort(key=lambda pair: pair[1].iou)
    settings = found.summary.settings.known
    least = None if settings is None else settings.warn_below
    return ResultTable(
        key="known-answers",
        title="Items with known answers, per character",
        columns=(
            _PERSON,
            ITEMS,
            *columns_of("score", "IoU"),
            *columns_of("share", "Sensitivity", "Specificity"),
        ),
        rows=tuple((name, *known) for name, known in marks),
        remarks=(
            "Sensitivity is the share of hallucinated characters that a person marks, specificity "
            "that of others that they leave."
            + ("" if least is None else f" The lead is warned of an IoU below {figure(least)}."),
        ),
        empty="Nobody has finished an item with gold labels yet.",
        tones=tuple("yellow" if least and known.iou < least else "" for _, known in marks),
    )


def responses_table(found: CampaignOverview) -> ResultTable:
    """Return how far people agree on what the dataset asks, question by question."""
    spans = any(response.of_spans for response in found.responses)
    return ResultTable(
        key="responses",
        title="Agreement on questions",
        columns=(
            Column(key="asked", title="Asked"),
            *columns_of("count", "Answered by two"),
            *columns_of("score", "Alpha"),
        ),
        rows=tuple(
            (response.line, response.persons.n, response.persons.alpha)
            for response in found.responses
        ),
        remarks=(ALPHAS, MATCHED) if spans else (ALPHAS,),
    )


def entrance_table(found: CampaignOverview) -> ResultTable:
    """Return how tests went that people do before they begin, and who was let in."""
    return ResultTable(
        key="tests",
        title="Tests before people begin",
        columns=(
            *(_PERSON, Column(key="test", title="Test")),
            *columns_of("score", "IoU"),
            *columns_of("text", "May begin", "On"),
        ),
        rows=tuple(
            (
                each.reviewer,
                f"{each.attempt}" if each.attempt else "let in",
                each.score,
                "yes" if each.passed else "no",
                f"{each.at:%Y-%m-%d %H:%M}",
            )
            for each in found.entrances
        ),
        empty="Nobody has done the test yet.",
    )


def readings_table(found: CampaignOverview) -> ResultTable:
    """Return who has confirmed having read which version of the guidelines, and when."""
    return ResultTable(
        key="guidelines",
        title=f"Who has read the guidelines (now version {len(found.summary.settings.guidelines)})",
        columns=(
            *(_PERSON, Column(key="version", title="Version", unit="count")),
            Column(key="on", title="Confirmed"),
        ),
        rows=tuple(
            (each.reviewer, each.version, f"{each.at:%Y-%m-%d %H:%M}") for each in found.readings
        ),
        empty="Nobody has confirmed having read them yet.",
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
