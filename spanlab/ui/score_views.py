"""Scores against a reference as tables and charts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from spanlab.results import ONE_ITEM, MeanInterval, counted, figure
from spanlab.schema import Kind
from spanlab.ui.common import plain
from spanlab.ui.counts import kind_in_words
from spanlab.ui.downloads import show_chart
from spanlab.ui.score_charts import (
    BASELINE,
    Dot,
    Wording,
    best,
    calibration_chart,
    calibration_rows,
    confusion_chart,
    dot_plot,
    places,
    ranked,
)
from spanlab.workflows.comparing import METRICS, Confusion, DatasetComparison, Means
from spanlab.workflows.comparison_tables import Scored
from spanlab.workflows.wording import unsigned_zero

MACRO = "all languages"
NAMES = {
    "iou": "IoU",
    "corr": "Corr",
    "max_iou": "MaxIoU",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "span_f1": "Span F1",
}

MEANING = {
    "iou": "Intersection over union of the characters taken for hallucinated. 1 is the same "
    "characters, 0 none in common.",
    "corr": "Spearman correlation of the probabilities over all characters. 1 is the same order, "
    "0 no relation.",
    "max_iou": "The best IoU with any single person; for a person, with any other person.",
    "precision": "Share of the marked characters that the reference marks too.",
    "recall": "Share of the reference's characters that are marked.",
    "f1": "Harmonic mean of precision and recall, in characters.",
    "span_f1": "F1 of whole spans with both edges exactly right.",
}
_MAIN = ("iou", "corr", "max_iou", "f1")
_MOST = 20  # people, and others, in a chart
_MOST_PER_LANGUAGE = 5  # in each of its small charts
_MOST_CURVES = 7  # that can be told apart


def score_table(scores: Sequence[Scored]) -> pd.DataFrame:
    """Return the macro scores, a row per annotator: each score and its 95 % interval.

    Args:
        scores: in the order of the rows.

    Returns:
        Columns "Annotator", "Kind", "Items", then a number and an interval per metric; a metric
        that an annotator lacks is empty.
    """
    rows = []
    for scored in scores:
        macro = scored.report.macro
        row: dict[str, object] = {
            "Annotator": scored.name,
            "Kind": BASELINE if scored.kind is None else kind_in_words(scored.kind),
            "Items": macro.n,
        }
        for metric in _MAIN:
            estimate: MeanInterval | None = getattr(macro, metric)
            row[NAMES[metric]] = _mean(estimate)
            row[f"{NAMES[metric]} 95 %"] = _interval(estimate, scored)
        rows.append(row)
    return pd.DataFrame(rows)


def language_table(scores: Sequence[Scored], metric: str) -> pd.DataFrame:
    """Return one metric with a row per annotator and a column per language, macro first."""
    rows = []
    for scored in scores:
        macro: MeanInterval | None = getattr(scored.report.macro, metric)
        row: dict[str, object] = {
            "Annotator": scored.name,
            MACRO: _mean(macro),
        }
        for means in scored.report.languages:
            estimate: MeanInterval | None = getattr(means, metric)
            row[means.lang] = _mean(estimate)
        rows.append(row)
    return pd.DataFrame(rows)


def show_scores(comparison: DatasetComparison, chosen: Collection[str]) -> None:
    """Draw the macro scores of the annotators chosen, the best first, and one metric as a chart."""
    scores = [one for one in comparison.scores if one.kind is None or one.name in chosen]
    if not any(one.kind for one in scores):
        st.info(
            "There is nobody to score: none of the others chosen under Annotators has finished an "
            f"item that {plain(comparison.reference or '')} has finished.",
            icon=":material/group:",
        )
        return
    metric, per_language = _asked(scores)
    st.caption(MEANING[metric])
    place = places([dot for dot in _dots(scores, metric) if dot.group == MACRO])
    scores.sort(key=lambda one: place.get(one.name, len(place)))  # those without it come last
    st.dataframe(
        score_table(scores),
        hide_index=True,
        column_config={
            "Annotator": st.column_config.TextColumn(pinned=True),
            **{NAMES[m]: number(NAMES[m], MEANING[m]) for m in _MAIN},
            **{
                f"{NAMES[m]} 95 %": st.column_config.TextColumn("95 %", width="small")
                for m in _MAIN
            },
        },
        placeholder="–",
        alt="Mean scores per annotator over all languages, with 95 % intervals",
    )
    if not all(_has_interval(one) for one in scores):
        st.caption(ONE_ITEM)
    _chart(scores, metric, per_language=per_language)
    if comparison.calibrations and _opened("Calibration of detectors", ":material/show_chart:"):
        _calibration(comparison, chosen)
    labels = {name: found for name, found in comparison.labels.items() if name in chosen}
    if labels and _opened("Labels against the reference", ":material/label:"):
        _labels(comparison.reference or "", labels)


def _asked(scores: Sequence[Scored]) -> tuple[str, bool]:
    """Ask for the metric, and whether its chart is divided by language."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        metric = st.segmented_control(
            "Score",
            METRICS,
            default="iou",
            required=True,
            format_func=NAMES.__getitem__,
            key="spanlab.metric",
        )
        per_language = len({dot.group for dot in _dots(scores, metric)}) > 2 and st.toggle(
            "Per language", key="spanlab.per-language"
        )
    return metric, per_language


def _opened(label: str, icon: str) -> bool:
    """Say whether people want to see a part of the page that is not drawn unless they do."""
    return st.toggle(f"{icon} {label}", key=f"spanlab.scores.{label}")


def _chart(scores: Sequence[Scored], metric: str, *, per_language: bool) -> None:
    """Draw the best people and all machines, never more rows than can be read."""
    most = _MOST_PER_LANGUAGE if per_language else _MOST
    groups: dict[str, list[Dot]] = defaultdict(list)
    for dot in _dots(scores, metric):
        if per_language == (dot.group != MACRO):
            groups[dot.group].append(dot)
    shown = ranked([dot for group in groups.values() for dot in best(group, most)])
    if not shown:
        st.caption("None of those chosen under Annotators has this score.")
        return
    n_people = sum(one.kind is Kind.PERSON for one in scores)
    if n_people > most:
        st.caption(
            "Drawn are the detectors and votes, then the best "
            f"{most} of {n_people:,} people{' in each language' if per_language else ''}; the "
            "download has everybody. Annotators, above, says who takes part."
        )
    show_chart(
        dot_plot(
            shown,
            Wording("Annotator", NAMES[metric]),
            columns=3 if per_language else 0,
        ),
        language_table(scores, metric) if per_language else score_table(scores),
        f"{metric}-{'languages' if per_language else 'scores'}",
        alt=f"{NAMES[metric]} per annotator{' and language' if per_language else ''} with 95 % "
        "intervals; the download has the figures",
        width="content" if per_language else "stretch",
    )


def _calibration(comparison: DatasetComparison, chosen: Collection[str]) -> None:
    found = [each for each in comparison.calibrations if each.name in chosen][:_MOST_CURVES]
    if not found:
        st.caption("No detector is among those chosen under Annotators.")
        return
    st.caption(
        "Each detector's probability against the share of people (or, where there are none, the "
        "gold labels' probability) that mark the same characters. On the dashed line both are "
        "the same; below it the detector is too sure. "
        + "; ".join(
            f"{plain(each.name)}: expected calibration error {figure(each.calibration.error)}"
            for each in found
        )
        + "."
    )
    rows = pd.DataFrame(calibration_rows(found))
    show_chart(
        calibration_chart(found),
        rows,
        "calibration",
        alt="Probability against share of people, per detector; the download has the figures",
        width="content",
    )


def _labels(reference: str, labels: Mapping[str, Confusion]) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for found in labels.values():
        counts.update(found)
    st.caption(
        f"Characters by the label of {plain(reference)} (rows) and of those chosen under "
        f"Annotators (columns), {counted(len(labels), 'annotator')} together."
    )
    table = pd.DataFrame(
        [
            {"Annotator": name, reference: right, "Label": said, "Characters": count}
            for name, found in labels.items()
            for (right, said), count in sorted(found.items())
        ]
    )
    show_chart(
        confusion_chart(counts, reference),
        table,
        "labels",
        alt="Share of the reference's characters by the label that others gave them",
        width="content",
    )


def _dots(scores: Sequence[Scored], metric: str) -> list[Dot]:
    found: list[Dot] = []
    for scored in scores:
        kind = BASELINE if scored.kind is None else kind_in_words(scored.kind)
        languages = scored.report.languages
        groups: list[tuple[str, Means, int]] = [(MACRO, scored.report.macro, len(languages))]
        groups += [(means.lang, means, 1) for means in languages]
        for group, means, n_languages in groups:
            estimate: MeanInterval | None = getattr(means, metric)
            if estimate is not None:
                found.append(Dot(scored.name, kind, estimate, means.n, group, n_languages))
    return found


def _mean(estimate: MeanInterval | None) -> float | None:
    return None if estimate is None else unsigned_zero(estimate.mean)


def _has_interval(scored: Scored) -> bool:
    """Say whether there is more than one item of any language."""
    return scored.report.macro.n > len(scored.report.languages)


def _interval(estimate: MeanInterval | None, scored: Scored) -> str | None:
    if estimate is None or not _has_interval(scored):
        return None
    return f"{figure(estimate.low, 2)} – {figure(estimate.high, 2)}"


def number(label: str, meaning: str | None = None) -> Any:
    """Return how a column of figures is shown."""
    return st.column_config.NumberColumn(label, format="%.3f", help=meaning)
