"""Plans, progress, usage and responses in words, the same for pages and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spanlab.output.figures import counted, money, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spanlab.schema import Annotation, DatasetSettings, Responses
    from spanlab.schema.progress import PersonProgress
    from spanlab.schema.usage import Usage


def plan_in_words(settings: DatasetSettings) -> str:
    """Return ``2 people per item, assigned to Ada and Ben``; empty for a dataset without a plan."""
    if not settings.overlap:
        return ""
    people = settings.assigned_to
    how_many = "1 person" if settings.overlap == 1 else f"{settings.overlap} people"
    if not people:
        return f"{how_many} per item, first come, first served"
    named = people[0] if len(people) == 1 else f"{', '.join(people[:-1])} and {people[-1]}"
    return (
        f"{how_many} per item, assigned to {named if len(people) <= 4 else f'{len(people)} people'}"
    )


def unmarked_in_words(annotation: Annotation) -> str:
    """Say of an annotation without spans what it says, as a sentence."""
    if annotation.is_verdict_only and annotation.hallucinated:
        return "Called hallucinated as a whole: no place is marked."
    return "Checked: no spans."


def blind_in_words(settings: DatasetSettings) -> str:
    """Return when reviewers see other people's marks, as a sentence."""
    return _BLIND[settings.blind_rule.value]


_BLIND = {
    "always": "Reviewers do not see other people's marks.",
    "done": "Reviewers see other people's marks once they have finished an item.",
    "ask": "Reviewers see other people's marks if they ask for them under Queue.",
    "never": "Reviewers see other people's marks from the start.",
}


def progress_in_words(person: PersonProgress) -> str:
    """Return ``3 of 8 done · 1 skipped · 4 left``, of what a plan gives to a person."""
    if person.assigned is None:
        return f"{person.beyond:,} done · not in the plan"
    parts = [f"{person.done:,} of {person.assigned:,} done"]
    for count, word in (
        (person.skipped, "skipped"),
        (person.left, "left"),
        (person.beyond, "more done beyond the plan"),
    ):
        if count:
            parts.append(f"{count:,} {word}")
    return " · ".join(parts)


def usage_in_words(usage: Usage) -> str:
    """Return the usage of models and searches in words; empty if there was none."""
    if not (usage.calls or usage.from_cache or usage.failed or usage.searches or usage.tool_calls):
        return ""
    parts = [counted(usage.calls, "model call")]
    if usage.searches:
        parts.append("1 search" if usage.searches == 1 else f"{usage.searches:,} searches")
    if usage.tool_calls:
        parts.append(counted(usage.tool_calls, "tool call"))
    if usage.from_cache:
        parts.append(f"{counted(usage.from_cache, 'answer')} from the cache")
    if usage.failed:
        parts.append(f"{usage.failed:,} without an answer")
    cached = f" ({usage.cached_tokens:,} cached by the provider)" if usage.cached_tokens else ""
    parts.append(f"{usage.input_tokens:,} tokens in{cached}")
    parts.append(f"{usage.output_tokens:,} out")
    if usage.uncounted:
        parts.append(f"counted here for {counted(usage.uncounted, 'call')} without usage")
    parts.append("cost unknown: no price is set" if usage.cost is None else cost_in_words(usage))
    return " · ".join((*parts, *_yield_in_words(usage)))


def _yield_in_words(usage: Usage) -> Iterator[str]:
    """Yield what the calls were for: claims, texts that were read, quotes that were not found."""
    if usage.claims:
        yield counted(usage.claims, "claim")
        if usage.cost:
            yield f"{money(usage.cost / usage.claims)} a claim"
    if usage.texts:
        yield f"{percent(usage.texts_read / usage.texts)} of the texts before them read"
    if usage.quotes_lost:
        yield f"{usage.quotes_lost:,} of {usage.quotes:,} quotes not found in their answer"


def cost_in_words(usage: Usage) -> str:
    """Return what model calls cost, with "about" where tokens were counted here."""
    if usage.cost is None:
        return "unknown"
    return ("about " if usage.uncounted else "") + money(usage.cost)


def responses_in_words(responses: Responses) -> str:
    """Return responses to questions in one line; empty if there are none."""
    return " · ".join(f"{name}: {value}" for name, value in responses.items())
