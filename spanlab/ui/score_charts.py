"""Scores and agreement as charts; Streamlit's theme gives them text and background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from spanlab.workflows.comparing import MeanInterval, Pair, Scored

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.LayerChart | alt.FacetChart

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
_PALETTE = ["#3b8bd1", "#e08214", "#2aa198", "#b8519b", "#7f8c2e", "#8a63d2", "#c44e52"]
_GREY = "#8a8fa3"


def score_chart(scores: Sequence[Scored], metric: str) -> Chart:
    """Return a chart of one metric: a mark with its interval per annotator and language."""
    import altair as alt

    data = pd.DataFrame(_chart_rows(scores, metric))
    names = [scored.name for scored in scores]
    people = [scored.name for scored in scores if scored.kind is not None]
    colours = [_PALETTE[people.index(n) % len(_PALETTE)] if n in people else _GREY for n in names]
    shapes = [
        "circle",
        "square",
        "diamond",
        "triangle-up",
        "triangle-down",
        "cross",
        "triangle-left",
    ]
    languages = [MACRO, *sorted({str(lang) for lang in data["language"]} - {MACRO})]
    base = alt.Chart(data).encode(
        x=alt.X("language:N", sort=languages, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("annotator:N", sort=names),
        color=alt.Color(
            "annotator:N",
            sort=names,
            title=None,
            scale=alt.Scale(domain=names, range=colours),
            legend=alt.Legend(orient="bottom", columns=4, labelLimit=220),
        ),
        tooltip=[
            alt.Tooltip("annotator:N", title="Annotator"),
            alt.Tooltip("language:N", title="Language"),
            alt.Tooltip("score:Q", title=NAMES[metric], format=".3f"),
            alt.Tooltip("low:Q", title="95 % from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
            alt.Tooltip("items:Q", title="Items", format=","),
        ],
    )
    scale = alt.Scale(domain=[min(0.0, float(data["low"].min())), 1.0])
    intervals = base.mark_rule(strokeWidth=1.5).encode(
        y=alt.Y("low:Q", title=NAMES[metric], scale=scale), y2="high:Q"
    )
    marks = base.mark_point(filled=True, size=55, opacity=1).encode(
        y=alt.Y("score:Q", title=NAMES[metric], scale=scale),
        shape=alt.Shape(
            "annotator:N",
            sort=names,
            title=None,
            scale=alt.Scale(domain=names, range=[shapes[i % 7] for i in range(len(names))]),
        ),
    )
    return alt.layer(intervals, marks).properties(height=360)


def pair_chart(pairs: Sequence[Pair], which: str) -> Chart:
    """Return the matrix of all pairs of annotators as a heat map with its figures."""
    import altair as alt

    field = which.lower()
    rows = []
    for pair in pairs:
        value = getattr(pair, field)
        rows += [
            {"a": pair.a, "b": pair.b, "value": value, "items": pair.n},
            {"a": pair.b, "b": pair.a, "value": value, "items": pair.n},
        ]
    names = sorted({str(row["a"]) for row in rows})
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X("a:N", sort=names, title=None, axis=alt.Axis(labelAngle=-30, labelLimit=160)),
        y=alt.Y("b:N", sort=names, title=None, axis=alt.Axis(labelLimit=160)),
        tooltip=[
            alt.Tooltip("a:N", title="Annotator"),
            alt.Tooltip("b:N", title="and"),
            alt.Tooltip("value:Q", title=which, format=".3f"),
            alt.Tooltip("items:Q", title="Items", format=","),
        ],
    )
    cells = base.mark_rect(cornerRadius=3).encode(
        color=alt.Color(
            "value:Q",
            title=which,
            scale=alt.Scale(domain=[0, 1], range=["#f3e9dc", "#8a4300"]),
        )
    )
    figures = base.mark_text(fontSize=13).encode(
        text=alt.Text("value:Q", format=".2f"),
        color=alt.condition(alt.datum["value"] > 0.55, alt.value("#ffffff"), alt.value("#26211b")),
    )
    return alt.layer(cells, figures).properties(
        width=150 + 90 * len(names), height=90 + 40 * len(names)
    )


def _chart_rows(scores: Sequence[Scored], metric: str) -> list[dict[str, Any]]:
    rows = []
    for scored in scores:
        groups = [(MACRO, scored.report.macro)]
        groups += [(means.lang, means) for means in scored.report.languages]
        for language, means in groups:
            estimate: MeanInterval | None = getattr(means, metric)
            if estimate is not None:
                rows.append(
                    {
                        "annotator": scored.name,
                        "language": language,
                        "score": estimate.mean,
                        "low": estimate.low,
                        "high": estimate.high,
                        "items": means.n,
                    }
                )
    return rows
