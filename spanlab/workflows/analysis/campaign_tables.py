"""What is said of a campaign's people: done, left, how fast, how well, and when all is done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final

from pydantic_core import to_jsonable_python

from spanlab.results import Cell, Column, ResultTable, ResultViews, columns_of
from spanlab.schema import AccessToken, DatasetSummary
from spanlab.storage import PlanProgress
from spanlab.workflows.access import token_table
from spanlab.workflows.wording import plan_in_words

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
