"""Scores, rates, agreement and calibration as charts; the theme gives them text and background."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from spanlab.results import MeanInterval, counted, figure, percent
from spanlab.ui.chart_style import HEAT, INK, NEUTRAL, axis_of, colour_of, names_axis, scale_of
from spanlab.workflows.comparing import Calibrated, Confusion, Pair

if TYPE_CHECKING:
    from spanlab.ui.chart_style import Chart

PERSON = "person"
BASELINE = "baseline"
_SHAPES = {  # by kind in words, in the order of the palette: told apart without colour, too
    PERSON: "circle",
    "detector": "diamond",
    "vote": "square",
    "gold labels": "triangle-up",
    BASELINE: "cross",
}
_ROW = 20  # pixels, the height of a dot's row
_AXES = 110  # pixels that Streamlit takes off for axes and legends


@dataclass(frozen=True)
class Dot:
    """A mean with its interval: whose it is, of which kind, and of which language or group.

    ``languages`` is the number of languages from which the ``items`` come: where each has one
    item alone, there is nothing to draw an interval from.
    """

    name: str
    kind: str
    estimate: MeanInterval
    items: int
    group: str = ""
    languages: int = 1

    @property
    def mean(self) -> float:
        """The mean."""
        return self.estimate.mean

    @property
    def has_interval(self) -> bool:
        """Whether the interval says anything."""
        return self.items > self.languages

    @property
    def label(self) -> str:
        """The name, and beside it how few items there are where the interval says nothing."""
        return self.name if self.has_interval else f"{self.name} · {counted(self.items, 'item')}"

    @property
    def ends(self) -> tuple[float, ...]:
        """What a chart must have room for."""
        estimate = self.estimate
        return (estimate.low, estimate.high) if self.has_interval else (estimate.mean,)


@dataclass(frozen=True)
class Wording:
    """What a chart calls its rows, its figures and their intervals."""

    rows: str
    value: str
    interval: str = "95 %"
    is_share: bool = False

    def shown(self, value: float) -> str:
        """Return a figure as the chart writes it."""
        return percent(value) if self.is_share else figure(value)


def ranked(dots: Sequence[Dot]) -> list[Dot]:
    """Return detectors and votes before people, in both the best first.

    Baselines are ranked with detectors and votes or, where there are none, with people.
    """
    last = {PERSON}
    if all(dot.kind in {PERSON, BASELINE} for dot in dots):
        last.add(BASELINE)
    return sorted(dots, key=lambda dot: (dot.kind in last, -dot.mean, dot.name))


def places(dots: Sequence[Dot]) -> Mapping[str, int]:
    """Return where each name stands among all when they are ranked, from 0."""
    names = dict.fromkeys(dot.name for dot in ranked(dots))
    return {name: place for place, name in enumerate(names)}


def best(dots: Sequence[Dot], most: int) -> list[Dot]:
    """Return the best ``most`` people, and as many others, as ``ranked`` has them."""
    groups: dict[bool, list[Dot]] = {True: [], False: []}
    for dot in ranked(dots):
        groups[dot.kind == PERSON].append(dot)
    return ranked([*groups[False][:most], *groups[True][:most]])


def dot_plot(dots: Sequence[Dot], wording: Wording, *, columns: int = 0) -> Chart:
    """Return means as dots with their intervals, a row per name.

    Args:
        dots: what to draw, from top to bottom, at least one; several kinds are told apart by shape
            and colour.
        wording: the names of rows and values.
        columns: 0 for one plot; else how many stand beside each other, each group in its own.
    """
    import altair as alt

    kinds = [kind for kind in _SHAPES if any(dot.kind == kind for dot in dots)]
    legend = alt.Legend(orient="top", title=None, values=kinds) if len(kinds) > 1 else None
    order = list(dict.fromkeys(dot.label for dot in dots))
    base = alt.Chart(pd.DataFrame(_row(dot, wording) for dot in dots)).encode(
        y=alt.Y("label:N", sort=order, title=None, axis=names_axis(150 if columns else 260)),
        color=alt.Color("kind:N", scale=alt.Scale(domain=list(_SHAPES)), legend=legend),
        tooltip=[
            alt.Tooltip("name:N", title=wording.rows),
            *([alt.Tooltip("group:N", title="Language")] if columns else []),
            alt.Tooltip("shown:N", title=wording.value),
            alt.Tooltip("interval:N", title=wording.interval),
            alt.Tooltip("items:Q", title="Items", format=","),
        ],
    )
    scale = scale_of(end for dot in dots for end in dot.ends)
    axis = axis_of(is_share=wording.is_share)
    intervals = (
        base.transform_filter(alt.datum["has_interval"])
        .mark_rule(strokeWidth=1.5)
        .encode(x=alt.X("low:Q", title=wording.value, scale=scale, axis=axis), x2="high:Q")
    )
    shapes = alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values()))
    marks = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("mean:Q", title=wording.value, scale=scale, axis=axis),
        shape=alt.Shape("kind:N", scale=shapes, legend=legend),
    )
    layers = alt.layer(intervals, marks)
    if not columns:
        return layers.properties(height=_AXES + _ROW * len(order))
    most = max(Counter(dot.group for dot in dots).values())
    small = layers.properties(width=190, height=_ROW * most)
    small_multiples = small.facet(facet=alt.Facet("group:N", title=None), columns=columns)
    own_names: Chart = small_multiples.resolve_scale(y="independent")
    return own_names


def _row(dot: Dot, wording: Wording) -> dict[str, object]:
    low, high = dot.estimate.low, dot.estimate.high
    interval = f"{wording.shown(low)} to {wording.shown(high)}" if dot.has_interval else "none"
    return {
        "name": dot.name,
        "label": dot.label,
        "kind": dot.kind,
        "group": dot.group,
        "mean": dot.mean,
        "low": low,
        "high": high,
        "has_interval": dot.has_interval,
        "shown": wording.shown(dot.mean),
        "interval": interval,
        "items": dot.items,
    }


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
    ink = _ink("value")
    cells = base.mark_rect().encode(
        color=alt.Color("value:Q", title=which, scale=alt.Scale(domain=[0, 1], range=list(HEAT)))
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
            "share:Q",
            title="Share of the row",
            scale=alt.Scale(domain=[0, 1], range=list(HEAT)),
            legend=alt.Legend(format=".0%"),
        )
    )
    figures = base.mark_text(fontSize=12).encode(
        text=alt.Text("share:Q", format=".0%"),
        color=_ink("share"),
    )
    columns, lines = ({row[side] for row in rows} for side in ("said", "right"))
    return alt.layer(cells, figures).properties(
        width=2 * _AXES + 80 * len(columns), height=_AXES + 36 * len(lines)
    )


def _ink(field: str) -> Any:
    """Return the colour of the figures in cells that ``field`` shades."""
    import altair as alt

    little, much = map(alt.value, INK)
    return alt.condition(alt.datum[field] > 0.55, much, little)


def calibration_chart(found: Sequence[Calibrated]) -> Chart:
    """Return a curve per detector: its probability against the share of people that mark it."""
    import altair as alt

    lines = alt.Chart(pd.DataFrame(calibration_rows(found))).encode(
        x=alt.X("Probability:Q", scale=scale_of([1]), axis=axis_of(is_share=True)),
        y=alt.Y("Share of people:Q", scale=scale_of([1]), axis=axis_of(is_share=True)),
        color=colour_of("Detector"),
        tooltip=[
            "Detector:N",
            alt.Tooltip("Probability:Q", format=".1%"),
            alt.Tooltip("Share of people:Q", format=".1%"),
            alt.Tooltip("Characters:Q", format=","),
        ],
    )
    perfect = pd.DataFrame({"Probability": [0.0, 1.0], "Share of people": [0.0, 1.0]})
    diagonal = (
        alt.Chart(perfect)
        .mark_line(strokeDash=[4, 4], color=NEUTRAL)
        .encode(x="Probability:Q", y="Share of people:Q")
    )
    shaped = lines.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("Detector:N", legend=alt.Legend(orient="top", title=None, columns=4))
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
