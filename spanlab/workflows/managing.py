"""The annotation database and the datasets in it, as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from spanlab.errors import UsageError
from spanlab.results import ITEMS, Column, ResultTable, columns_of
from spanlab.schema import (
    COLOUR_NAMES,
    LABEL_SETS,
    AnnotatorSummary,
    DatasetSettings,
    DatasetSummary,
    SpanLabel,
    Status,
    UndecidedRule,
)
from spanlab.storage import PersonProgress, PlanProgress, Store
from spanlab.workflows.wording import plan_in_words

__all__ = [
    "LABEL_SETS",
    "AnnotatorSummary",
    "DatasetSettings",
    "DatasetSummary",
    "PersonProgress",
    "PlanProgress",
    "SpanLabel",
    "Store",
    "UndecidedRule",
    "colour_of",
    "dataset_tables",
    "label_set",
    "open_store",
    "plan_of",
    "plan_table",
]

_DATASET = Column(key="dataset", title="Dataset")


def open_store() -> Store:
    """Open the annotation database that the environment names, brought up to date first.

    Returns:
        The store, for any number of threads; the caller closes it.
    """
    return Store.open()


def plan_of(store: Store, summary: DatasetSummary) -> PlanProgress | None:
    """Return how far a dataset's plan is; None for a dataset without one.

    Raises:
        NotFoundError: there is no such dataset any more.
    """
    return store.plan(summary.name) if summary.settings.overlap else None


def label_set(name: str) -> tuple[SpanLabel, ...]:
    """Return a label set that ships with spanlab.

    Raises:
        UsageError: there is none of this name; names those that there are.
    """
    for known, labels in LABEL_SETS.items():
        if known.casefold() == name.casefold():
            return labels
    raise UsageError(f"there is no label set {name!r}; there are: {', '.join(LABEL_SETS)}")


def colour_of(text: str) -> str | None:
    """Return a colour that somebody typed as ``#rrggbb``, None for an empty text.

    Args:
        text: as ``#rrggbb``, ``#rgb`` or a name that web pages know, in any case.

    Raises:
        UsageError: it is none of these; says what would be right.
    """
    typed = text.strip().lower()
    if not typed:
        return None
    digits = COLOUR_NAMES.get(typed, typed.removeprefix("#") if typed.startswith("#") else "")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    if len(digits) != 6 or not set(digits) <= set("0123456789abcdef"):
        raise UsageError(
            f"“{text}” is no colour: type #rrggbb, such as #008080, or a name such as teal"
        )
    return f"#{digits}"


def plan_table(summary: DatasetSummary, plan: PlanProgress) -> ResultTable:
    """Return how far each person is with a dataset's plan."""
    head = plan_in_words(summary.settings)
    return ResultTable(
        key="plan",
        title=f"{head}: {plan.done:,} of {plan.needed:,} annotations done",
        columns=(
            *columns_of("text", "Person"),
            *columns_of("count", "Assigned", "Done", "Skipped", "Left", "Done beyond"),
        ),
        rows=tuple(
            (who.annotator, who.assigned, who.done, who.skipped, who.left, who.beyond)
            for who in plan.people
        ),
    )


def dataset_tables(summaries: Sequence[DatasetSummary]) -> tuple[ResultTable, ...]:
    """Return the datasets with their settings, and how far each annotator is with them."""
    states = (Status.DONE, Status.SKIPPED, Status.FAILED, Status.NOT_ANNOTATED)
    datasets = ResultTable(
        key="datasets",
        title="Datasets",
        columns=(
            _DATASET,
            ITEMS,
            *columns_of("text", "Languages", "Settings"),
        ),
        rows=tuple(
            (
                summary.name,
                summary.n_items,
                " ".join(f"{lang}:{count}" for lang, count in summary.languages.items()),
                _settings_in_words(summary.settings),
            )
            for summary in summaries
        ),
        empty="no datasets yet: spanlab import FILE --dataset NAME",
    )
    annotators = ResultTable(
        key="annotators",
        title="Annotators, with the number of items in each state",
        columns=(
            _DATASET,
            *columns_of("text", "Annotator", "Kind"),
            *(
                Column(
                    key=state.value, title=state.value.replace("-", " ").capitalize(), unit="count"
                )
                for state in states
            ),
        ),
        rows=tuple(
            (summary.name, who.name, who.kind.value, *(who.counts.get(s, 0) for s in states))
            for summary in summaries
            for who in summary.annotators
        ),
    )
    return (datasets, annotators) if annotators.rows else (datasets,)


def _settings_in_words(settings: DatasetSettings) -> str:
    parts = [
        f"undecided suggestions: {settings.undecided}",
        f"labels: {len(settings.labels)}",
        f"people per item: {settings.overlap or 'any number'}",
    ]
    if settings.assigned_to:
        parts.append(f"assigned to: {', '.join(settings.assigned_to)}")
    if settings.guidelines_now:
        parts.append(f"guidelines: version {len(settings.guidelines)}")
    return "; ".join(parts)
