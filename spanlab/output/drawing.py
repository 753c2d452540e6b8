"""The charts of result tables as SVG, for pages that are files: nothing is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final

from spanlab.output.tables import Cell, MeanInterval, ResultTable, Unit

_WIDTH: Final = 680  # pixels, as all that follow
_LEFT: Final = 240  # for names
_EDGE: Final = 40
_ROW: Final = 28
_HEIGHT: Final = 260
_NAME: Final = 32  # characters that have room
_ENDS: Final = (0.004, 0.02, 0.04, 0.08, 0.2, 0.4, 0.8)  # shares that have round quarters
_Scale = Callable[[float], float]


def draw(table: ResultTable) -> str:
    """Return the chart that a table names, as SVG; "" where it names none or has no figure.

    Of ``dots`` every name of column ``y`` has a line, with a dot and its interval for a
    ``MeanInterval`` in column ``x`` and a square for a plain figure. A ``line`` goes from left to
    right by column ``y``, a ``calibration`` by ``x``.
    """
    if table.chart is None:
        return ""
    keys = [column.key for column in table.columns]
    at, other_at = keys.index(table.chart.x), keys.index(table.chart.y)
    points = [(row[at], row[other_at]) for row in table.rows if row[at] is not None]
    unit, other_unit = table.columns[at].unit, table.columns[other_at].unit
    if not points:
        return ""
    if table.chart.kind == "dots":
        return _dots(table.title, points, unit)
    if table.chart.kind == "line":
        turned = [(y, x) for x, y in points]
        return _line(table.title, turned, _round_end(points), (other_unit, unit))
    return _line(table.title, points, 1.0, (unit, other_unit))


def _dots(title: str, points: Sequence[tuple[Cell, Cell]], unit: Unit) -> str:
    ends = [end for share, _ in points for end in _interval(share)]
    low, high = min(0.0, *ends), _round_end(points)
    names = list(dict.fromkeys(str(name) for _, name in points))
    x = _scale(low, high, _LEFT, _WIDTH - _EDGE)
    bottom = _ROW * len(names) + 8
    parts = [_line_of([(at, 4), (at, bottom)], 0.2) for at in map(x, _quarters(low, high))]
    parts += _ticks(x, (low, high), bottom + 16, unit)
    for row, name in enumerate(names):
        short = name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"
        parts.append(f"<text x='0' y='{_ROW * row + 22}'>{escape(short)}</text>")
    for share, label in points:
        mean, below, above = _interval(share)
        y = _ROW * names.index(str(label)) + 18
        if isinstance(share, MeanInterval):
            parts.append(_line_of([(x(below), y), (x(above), y)]))
            parts.append(f"<circle cx='{x(mean):.1f}' cy='{y}' r='4'/>")
        else:
            place = f"x='{x(mean) - 4:.1f}' y='{y + 3}' width='8' height='8'"
            parts.append(f"<rect {place} fill='#b85500'/>")
    return _svg(title, bottom + 24, parts)


def _line(
    title: str, points: Sequence[tuple[Cell, Cell]], high: float, units: tuple[Unit, Unit]
) -> str:
    """Draw shares (the second of each) over numbers, or over shares with the diagonal."""
    is_square = units[0] == units[1]
    right = 1.0 if is_square else max(_interval(at)[0] for at, _ in points)
    x = _scale(0, right, 60, _WIDTH - _EDGE)
    y = _scale(0, high, _HEIGHT - 40, 12)
    parts = list(_ticks(x, (0, right), _HEIGHT - 16, units[0]))
    for tick in _quarters(0, high):
        parts.append(_line_of([(60, y(tick)), (_WIDTH - _EDGE, y(tick))], 0.2))
        parts.append(f"<text x='0' y='{y(tick) + 4:.1f}'>{_written(tick, units[1])}</text>")
    if is_square:
        parts.append(_line_of([(x(0), y(0)), (x(1), y(1))], 0.4))
    places = [(x(_interval(at)[0]), _interval(share)) for at, share in points]
    parts.append(_line_of([(at, y(mean)) for at, (mean, _, _) in places]))
    for at, (mean, below, above) in places:
        parts.append(_line_of([(at, y(below)), (at, y(above))]))
        parts.append(f"<circle cx='{at:.1f}' cy='{y(mean):.1f}' r='4'/>")
    return _svg(title, _HEIGHT, parts)


def _interval(cell: Cell) -> tuple[float, float, float]:
    if isinstance(cell, MeanInterval):
        return cell.mean, cell.low, cell.high
    assert isinstance(cell, int | float)
    return cell, cell, cell


def _round_end(points: Sequence[tuple[Cell, Cell]]) -> float:
    high = max(_interval(share)[2] for share, _ in points)
    return next((end for end in _ENDS if end >= high > 0), 1.0)


def _scale(low: float, high: float, start: float, end: float) -> _Scale:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _quarters(low: float, high: float) -> list[float]:
    return [low + (high - low) * part / 4 for part in range(5)]


def _ticks(x: _Scale, ends: tuple[float, float], y: float, unit: Unit) -> Iterator[str]:
    for tick in _quarters(*ends):
        text = _written(tick, unit)
        yield f"<text text-anchor='middle' x='{x(tick):.1f}' y='{y}'>{text}</text>"


def _written(tick: float, unit: Unit) -> str:
    if unit == "share":
        return f"{round(100 * tick, 2):g} %"
    return f"{tick:,.0f}" if unit == "count" else f"{round(tick, 3):g}"


def _line_of(places: Sequence[tuple[float, float]], opacity: float = 1.0) -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return f"<path d='M{steps}' fill='none' stroke='currentColor' opacity='{opacity}'/>"


def _svg(about: str, height: float, parts: Sequence[str]) -> str:
    return (
        f"<svg role='img' aria-label='{escape(about, quote=True)}' viewBox='0 0 {_WIDTH} {height}' "
        f"width='{_WIDTH}' height='{height}' font-size='13' fill='currentColor' "
        f"style='max-width:100%;height:auto;display:block;margin:1rem 0'>{''.join(parts)}</svg>\n"
    )
