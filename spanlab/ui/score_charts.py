"""Scores, rates, agreement and calibration as charts; the theme gives them text and background."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, TypeAlias

import pandas as pd

from spanlab.workflows.comparing import Calibrated, Confusion, MeanInterval, Pair

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart

_GREY = "#8a8fa3"
_LOOKS = {  # kind in words → shape and colour: told apart without colour, too
    "person": ("circle", "#3b8bd1"),
    "detector": ("diamond", "#e08214"),
    "vote": ("square", "#2aa198"),
    "gold labels": ("triangle-up", "#b8519b"),
    "baseline": ("cross", _GREY),
    "model": ("circle", "#3b8bd1"),
}
_ROW = 20  # pixels, the height of a dot's row
_AXES = 110  # pixels that Streamlit takes off for axes and legends
_HEAT = ["#f3e9dc", "#8a4300"]


@dataclass(frozen=True)
class Dot:
    """A mean with its 95 % interval: whose it is, of which kind, and of which language or group."""

    name: str
    kind: str
    estimate: MeanInterval
    items: int
    group: str = ""

    @property
    def mean(self) -> float:
        """The mean."""
        return self.estimate.mean


@dataclass(frozen=True)
class Wording:
    """What a chart calls its rows and its figures."""

    rows: str
    value: str


def best(dots: Sequence[Dot], most: int) -> list[Dot]:
    """Return the best ``most`` people, and as many others, the best first."""
    ranked = sorted(dots, key=lambda dot: (-dot.mean, dot.name))
    people = [dot for dot in ranked if dot.kind == "person"][:most]
    others = [dot for dot in ranked if dot.kind != "person"][:most]
    kept = {dot.name for dot in (*people, *others)}
    return [dot for dot in ranked if dot.name in kept]


def dot_plot(
    dots: Sequence[Dot], wording: Wording, *, order: Sequence[str], columns: int = 0
) -> Chart:
    """Return means as dots with their intervals, a row per name.

    Args:
        dots: what to draw, at least one; several kinds are told apart by shape and colour.
        wording: the names of rows and values.
        order: the names from top to bottom.
        columns: 0 for one plot; else how many stand beside each other, each group in its own.
    """
    import altair as alt

    kinds = [kind for kind in _LOOKS if any(dot.kind == kind for dot in dots)]
    shapes, colours = zip(*(_LOOKS[kind] for kind in kinds), strict=True)
    legend = alt.Legend(orient="top", title=None) if len(kinds) > 1 else None
    rows = [{**asdict(dot), **dot.estimate.model_dump()} for dot in dots]
    base = alt.Chart(pd.DataFrame(rows).drop(columns="estimate")).encode(
        y=alt.Y(
            "name:N",
            sort=list(order),
            title=None,
            axis=alt.Axis(labelLimit=130 if columns else 220, labelOverlap=False, labelFlush=False),
        ),
        color=alt.Color(
            "kind:N", scale=alt.Scale(domain=kinds, range=list(colours)), legend=legend
        ),
        tooltip=[
            alt.Tooltip("name:N", title=wording.rows),
            *([alt.Tooltip("group:N", title="Language")] if columns else []),
            alt.Tooltip("mean:Q", title=wording.value, format=".3f"),
            alt.Tooltip("low:Q", title="95 % from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
            alt.Tooltip("items:Q", title="Items", format=","),
        ],
    )
    scale = alt.Scale(domainMin=min(0.0, *(dot.estimate.low for dot in dots)))
    axis = alt.Axis(tickCount=5)
    intervals = base.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("low:Q", title=wording.value, scale=scale, axis=axis), x2="high:Q"
    )
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("mean:Q", title=wording.value, scale=scale, axis=axis),
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=list(shapes)), legend=legend),
    )
    layers = alt.layer(intervals, marks)
    if not columns:
        return layers.properties(height=_AXES + _ROW * len(order))
    most = max(Counter(dot.group for dot in dots).values())
    small = layers.properties(width=190, height=_ROW * most)
    small_multiples = small.facet(facet=alt.Facet("group:N", title=None), columns=columns)
    own_names: Chart = small_multiples.resolve_scale(y="independent")
    return own_names


def pair_chart(pairs: Sequence[Pair], which: str, order: Sequence[str]) -> Chart:
    """Return the matrix of pairs as a heat map: the figure, and below it the common items.

    Args:
        pairs: at least one.
        which: "IoU" or "F1".
        order: the annotators from left to right and from top to bottom.
    """
    import altair as alt

    rows = [
        {"a": a, "b": b, "value": getattr(pair, which.lower()), "items": pair.n}
        for pair in pairs
        for a, b in ((pair.a, pair.b), (pair.b, pair.a))
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X(
            "a:N",
            sort=list(order),
            title=None,
            axis=alt.Axis(labelAngle=-60, labelLimit=160, labelOverlap=False, orient="top"),
        ),
        y=alt.Y(
            "b:N", sort=list(order), title=None, axis=alt.Axis(labelLimit=160, labelOverlap=False)
        ),
        tooltip=[
            alt.Tooltip("a:N", title="Annotator"),
            alt.Tooltip("b:N", title="and"),
            alt.Tooltip("value:Q", title=which, format=".3f"),
            alt.Tooltip("items:Q", title="Common items", format=","),
        ],
    )
    ink = alt.condition(alt.datum["value"] > 0.55, alt.value("#ffffff"), alt.value("#26211b"))
    cells = base.mark_rect().encode(
        color=alt.Color("value:Q", title=which, scale=alt.Scale(domain=[0, 1], range=_HEAT))
    )
    figures = base.mark_text(fontSize=12, dy=-6).encode(
        text=alt.Text("value:Q", format=".2f"), color=ink
    )
    counts = base.mark_text(fontSize=9, dy=8).encode(
        text=alt.Text("items:Q", format=","), color=ink
    )
    return alt.layer(cells, figures, counts).properties(
        width=2 * _AXES + 46 * len(order), height=_AXES + 36 * len(order)
    )


def confusion_chart(counts: Confusion, reference: str) -> Chart:
    """Return characters by the reference's label and that of others, shaded by share of a row."""
    import altair as alt

    whole: dict[str, int] = {}
    for (label, _), count in counts.items():
        whole[label] = whole.get(label, 0) + count
    rows = [
        {"right": right, "said": said, "characters": count, "share": count / whole[right]}
        for (right, said), count in counts.items()
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X(
            "said:N",
            title="Annotators",
            axis=alt.Axis(labelAngle=-30, labelLimit=160, labelOverlap=False),
        ),
        y=alt.Y("right:N", title=reference, axis=alt.Axis(labelLimit=160, labelOverlap=False)),
        tooltip=[
            alt.Tooltip("right:N", title=reference),
            alt.Tooltip("said:N", title="Annotators"),
            alt.Tooltip("characters:Q", title="Characters", format=","),
            alt.Tooltip("share:Q", title="Share of the row", format=".1%"),
        ],
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "share:Q", title="Share of the row", scale=alt.Scale(domain=[0, 1], range=_HEAT)
        )
    )
    figures = base.mark_text(fontSize=12).encode(
        text=alt.Text("share:Q", format=".0%"),
        color=alt.condition(alt.datum["share"] > 0.55, alt.value("#ffffff"), alt.value("#26211b")),
    )
    columns, lines = ({row[side] for row in rows} for side in ("said", "right"))
    return alt.layer(cells, figures).properties(
        width=2 * _AXES + 80 * len(columns), height=_AXES + 36 * len(lines)
    )


def calibration_chart(found: Sequence[Calibrated]) -> Chart:
    """Return a curve per detector: its probability against the share of people that mark it."""
    import altair as alt

    lines = alt.Chart(pd.DataFrame(calibration_rows(found))).encode(
        x=alt.X("Probability:Q", scale=alt.Scale(domain=[0, 1])),
        y=alt.Y("Share of people:Q", scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("Detector:N", legend=alt.Legend(orient="top", title=None)),
        tooltip=[
            "Detector:N",
            alt.Tooltip("Probability:Q", format=".2f"),
            alt.Tooltip("Share of people:Q", format=".2f"),
            alt.Tooltip("Characters:Q", format=","),
        ],
    )
    perfect = pd.DataFrame({"Probability": [0.0, 1.0], "Share of people": [0.0, 1.0]})
    diagonal = (
        alt.Chart(perfect)
        .mark_line(strokeDash=[4, 4], color=_GREY)
        .encode(x="Probability:Q", y="Share of people:Q")
    )
    shaped = lines.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("Detector:N", legend=alt.Legend(orient="top", title=None))
    )
    return alt.layer(diagonal, lines.mark_line(), shaped).properties(width=420, height=320)


def calibration_rows(found: Sequence[Calibrated]) -> list[Mapping[str, object]]:
    """Return a row per detector and bin of probability."""
    return [
        {
            "Detector": each.name,
            "Probability": one.prob,
            "Share of people": one.share,
            "Characters": one.characters,
            "From": one.low,
            "To": one.high,
        }
        for each in found
        for one in each.calibration.bins
    ]
