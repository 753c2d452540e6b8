"""What all charts share: the app's colours, in light and in dark, and axes with few ticks.

Charts name no colours of their own: those of groups come from the theme, which has them from here.
Any two of a palette are told apart with normal sight and without red, green or blue; each stands
out from its background by 3 : 1 (WCAG 2.2, 1.4.11).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import altair as alt

Chart: TypeAlias = "alt.Chart | alt.LayerChart | alt.FacetChart"
LIGHT: Final = ("#0065a8", "#cb8316", "#23a2a0", "#b10071", "#826601", "#905ef4", "#772d24")
DARK: Final = ("#2f8fd3", "#f9a822", "#32d0d5", "#e97196", "#c7b98a", "#9fa2ff", "#e5463e")
# On both backgrounds:
NEUTRAL: Final = "#8a8fa3"
DONE: Final = "#3b8bd1"
FAILED: Final = "#e5484d"
HEAT: Final = ("#f3e9dc", "#8a4300")  # little to much; both themes draw cells alike
INK: Final = ("#26211b", "#ffffff")  # on little, on much
_TICKS = 5
_ROOM = 0.02  # of an axis, at either end, so that no mark is cut


def scale_of(values: Iterable[float]) -> alt.Scale:
    """Return a scale that begins at 0, or below, and leaves room around the values."""
    import altair as alt

    ends = [0.0, *values]
    low, high = min(ends), max(ends)
    high = high if high > low else 1.0
    room = _ROOM * (high - low)
    return alt.Scale(domain=[low - room, high + room], nice=False, zero=False)


def axis_of(*, is_share: bool = False) -> alt.Axis:
    """Return an axis with about five ticks, in per cent for shares."""
    import altair as alt

    return alt.Axis(tickCount=_TICKS, format="~%" if is_share else alt.Undefined)


def names_axis(room: int = 220) -> alt.Axis:
    """Return an axis that has a name for every row, in ``room`` pixels."""
    import altair as alt

    return alt.Axis(labelLimit=room, labelOverlap=False, labelFlush=False)


def colour_of(field: str) -> alt.Color:
    """Return the colours of groups, named above the chart."""
    import altair as alt

    return alt.Color(f"{field}:N", legend=alt.Legend(orient="top", title=None, columns=4))
