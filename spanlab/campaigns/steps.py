"""What a campaign's lead does next."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.output.figures import counted
from spanlab.people.overview import CampaignOverview
from spanlab.schema import ADJUDICATED, AnnotatorKind, DatasetSummary


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


def next_step(
    summary: DatasetSummary, overview: CampaignOverview | None, versions: int
) -> NextStep:
    """Return the step that a campaign is at.

    Args:
        summary: the dataset.
        overview: how far people are; None where it was not worked out, as in large datasets.
        versions: how many versions of the dataset were saved.
    """
    settings = summary.settings
    has_begun = bool(summary.names_of(AnnotatorKind.PERSON))
    if not settings.guidelines_now and not has_begun:
        return NextStep("write guidelines", "Say what counts as hallucinated.", part="Guidelines")
    if not settings.overlap:
        why = "Say how many people finish each item, and who."
        return NextStep("set the review plan", why, part="Review plan")
    if not has_begun:
        why = "Nobody has reviewed an item yet. Invite people, or begin yourself."
        return NextStep("start the review", why, page="review", part="Invite people")
    return _after_start(summary, overview, versions)


def _after_start(
    summary: DatasetSummary, overview: CampaignOverview | None, versions: int
) -> NextStep:
    plan = overview.plan if overview else None
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
