"""What a campaign's lead does next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spanlab.output.figures import counted
from spanlab.output.wording import plan_in_words
from spanlab.schema import ADJUDICATED, AccessToken, AnnotatorKind, DatasetSummary, Status
from spanlab.schema.progress import PlanProgress

INVITE = "Invite people"  # the part of the set-up where links are made


@dataclass(frozen=True)
class NextStep:
    """A step of a campaign, with why it comes now.

    ``page`` is the page that it is done on, in small letters; ``part`` the part of the set-up on
    the page Campaign itself.
    """

    title: str
    why: str
    page: str = ""
    part: str = ""


class ChecklistEntry(NamedTuple):
    """Something that a campaign has, or lacks."""

    is_there: bool
    text: str


def checklist(
    summary: DatasetSummary, links: Sequence[AccessToken] | None
) -> Iterator[ChecklistEntry]:
    """Yield what a campaign has and lacks.

    Args:
        summary: the dataset.
        links: the invitations that were not revoked; None where people do not come by them.
    """
    settings, gold = summary.settings, summary.names_of(AnnotatorKind.GOLD)
    version = len(settings.guidelines)
    has_guidelines = bool(settings.guidelines_now)
    yield ChecklistEntry(
        has_guidelines, f"guidelines (version {version})" if has_guidelines else "no guidelines"
    )
    yield _number(len(settings.labels), "label")
    if links is not None:
        yield ChecklistEntry(bool(links), f"{len(links):,} invited")
        n_came = sum(link.used is not None for link in links)
        yield ChecklistEntry(bool(n_came), f"{n_came:,} came")
    yield ChecklistEntry(bool(settings.overlap), plan_in_words(settings) or "no review plan")
    right = settings.check_labels(gold) if settings.known else frozenset()
    done = [one.counts.get(Status.DONE, 0) for one in summary.annotators if one.name in right]
    yield _number(max(done, default=0), "check item")
    n_people = len(summary.names_of(AnnotatorKind.PERSON))
    people = "1 person has" if n_people == 1 else f"{n_people:,} people have"
    yield ChecklistEntry(bool(n_people), f"{people} annotated")
    for kind in (AnnotatorKind.DETECTOR, AnnotatorKind.VOTE):
        if n_others := len(summary.names_of(kind)):
            yield _number(n_others, kind.value)
    if gold:
        yield ChecklistEntry(True, f"gold labels ({', '.join(gold)})")


def _number(number: int, noun: str) -> ChecklistEntry:
    return ChecklistEntry(bool(number), counted(number, noun))


def next_step(
    summary: DatasetSummary,
    plan: PlanProgress | None,
    versions: int,
    links: Sequence[AccessToken] | None = None,
) -> NextStep:
    """Return the step that a campaign is at.

    Args:
        summary: the dataset.
        plan: how far people are with the review plan; None without one.
        versions: how many versions of the dataset were saved.
        links: as for ``checklist``.
    """
    settings = summary.settings
    has_begun = bool(here := len(summary.names_of(AnnotatorKind.PERSON)))
    if not settings.guidelines_now and not has_begun:
        return NextStep("write guidelines", "Say what counts as hallucinated.", part="Guidelines")
    if links == [] and not has_begun and not settings.overlap:
        why = "Each gets a link of their own. Afterwards, share the items among them."
        return NextStep("invite people", why, part=INVITE)
    if not settings.overlap:
        why = "Say how many people finish each item, and who."
        return NextStep("set the review plan", why, part="Review plan")
    if not has_begun:
        why = "Nobody has reviewed an item yet."
        return NextStep("start the review", why, page="review")
    if links == [] and plan and plan.done < plan.needed and here < settings.overlap:
        why = f"{here} came, and the plan asks for {settings.overlap} people per item."
        return NextStep("invite people", why, part=INVITE)
    return _after_start(summary, plan, versions)


def _after_start(summary: DatasetSummary, plan: PlanProgress | None, versions: int) -> NextStep:
    if plan is not None and not plan.needed:
        why = "Every item is a check item, so the plan leaves nothing to review."
        return NextStep("choose other check items", why, part="Check items")
    if plan is not None and plan.done < plan.needed:
        remaining = plan.needed - plan.done
        why = f"{counted(remaining, 'annotation')} of {plan.needed:,} remaining."
        return NextStep("review", why, page="review")
    several = len(summary.names_of(AnnotatorKind.PERSON)) > 1
    if several and ADJUDICATED not in summary.names_of(AnnotatorKind.GOLD):
        why = "The plan is done. Decide the items on which people differ."
        return NextStep("adjudicate", why, page="adjudicate")
    if summary.settings.measurement is None:
        why = "Estimate how often the answers are hallucinated."
        return NextStep("measure the rate", why, page="measure")
    if not versions:
        return NextStep("save a version", "It never changes, whatever is edited later.")
    return NextStep("export", "All labels, for training, evaluation or a paper.", page="export")
