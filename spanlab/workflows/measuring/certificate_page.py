"""A certificate as one HTML page, with its pictures drawn in it; nothing is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from spanlab.results import (
    Column,
    MeanInterval,
    ResultTable,
    as_html,
    columns_of,
    fact_table,
    figure,
    percent,
    write_cell,
)
from spanlab.workflows.measuring.certificates import Certificate, write_certificate
from spanlab.workflows.report import page_head

_WIDTH: Final = 640
_LEFT: Final = 190  # pixels for names
_EDGE: Final = 30
_ROW: Final = 44
_HEIGHT: Final = 260
_STYLE: Final = """<style>
svg { max-width: 100%; height: auto; display: block; margin: .5rem 0 1.5rem; }
svg text { font: 13px system-ui, sans-serif; fill: currentColor; }
svg line, svg path { stroke: currentColor; fill: none; }
svg .grid { opacity: .2; } svg .raw { fill: rgb(var(--mark)); stroke: none; }
svg .rate { fill: currentColor; stroke: none; } svg .wide { stroke-width: 2; }
</style>
"""


class DrawnShare(NamedTuple):
    """A share with its interval, where it has one, at a place of a picture's other axis."""

    at: float
    mean: float
    low: float
    high: float


def certificate_html(certificate: Certificate) -> str:
    """Return a certificate as a page; every text of the data is escaped."""
    content = certificate.content
    measured, bound = content["measurement"], content["binding"]
    title = f"Certificate of {bound['annotator']} on {bound['name']}"
    history = [
        DrawnShare(point["reviews"], point["mean"], point["low"], point["high"])
        for point in measured["history"]
    ]
    reliability = [
        DrawnShare(point["prob"], *3 * (point["share"],))
        for point in (content["calibration"] or {"bins": ()})["bins"]
    ]
    parts = [
        page_head(title),
        _STYLE,
        f"<p>{escape(_headline(measured))}</p>\n",
        as_html(_facts(content)),
        as_html(_rates(measured)),
        "<h2>What the detector marked (squares), and the corrected rate with its interval</h2>\n",
        _groups_svg(measured["groups"]),
        "<h2>The interval after each review</h2>\n" + _line_svg(history) if history else "",
        "<h2>Reliability: probability, and share of people who mark as much</h2>\n"
        + _line_svg(reliability, diagonal=True)
        if reliability
        else "",
        as_html(_quality(content)),
        *(f"<p class='about'>{escape(remark)}</p>\n" for remark in measured["remarks"]),
        "<p class='about'>It holds for the detector, model, options, definition and items that it "
        "was made of: the page Measure of spanlab says whether they still are these.</p>\n",
        "</main></body></html>\n",
    ]
    return "".join(parts)


def save_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate as the file's name says: ``.html`` (or ``.htm``) a page, else JSON."""
    if path.suffix.lower() in {".html", ".htm"}:
        path.write_text(certificate_html(certificate), encoding="utf-8")
    else:
        write_certificate(certificate, path)


def _headline(measured: Mapping[str, Any]) -> str:
    rate, plan = MeanInterval.model_validate(measured["groups"][0]["finite"]), measured["plan"]
    column = Column(key="rate", title="Rate", unit="share")
    return (
        f"Hallucinated {plan['unit']}: {write_cell(rate, column)}, from "
        f"{measured['groups'][0]['reviews']:,} reviews of {measured['groups'][0]['items']:,} items."
    )


def _facts(content: Mapping[str, Any]) -> ResultTable:
    bound, plan = content["binding"], content["measurement"]["plan"]
    people = ", ".join(f"{name} ({count:,})" for name, count in content["reviewers"].items())
    facts = {
        "Made": content["date"],
        "Detector": bound["annotator"],
        **_setup(content),
        "Counts as hallucinated": bound["definition"],
        "Unit": bound["unit"],
        "Reviewed by": people,
        "Agreement of reviewers": _alike(content["agreement"], "one reviewer each"),
        "Suggestions in review": "shown" if plan["show_suggestions"] else "hidden",
        "Sample": f"{plan['design']}, seed {plan['seed']}",
        "Estimate": content["measurement"]["method"],
        "Items": bound["dataset"],
        "Marks": bound["marks"],
        "This certificate": content["sha256"],
    }
    return fact_table("certificate", "What was measured", facts)


def _setup(content: Mapping[str, Any]) -> dict[str, str]:
    """Return how the detector was set up, as far as spanlab has run it."""
    bound = content["binding"]
    models = [m for several in bound["models"].values() for model in several for m in model.items()]
    asked = ", ".join(f"{key} {name}" for key, name in dict.fromkeys(models))
    titles = {"version": "Version of spanlab", "prompts": "Prompts", "options": "Options"}
    hashes = {
        title: ", ".join(dict.fromkeys(text for several in bound[key].values() for text in several))
        for key, title in titles.items()
    }
    checks = "; ".join(_checked(one) for one in content["checks"])
    runs = content["consistency"]
    again = _alike(runs, "not run again") + (f", {runs['runs']} runs" if runs else "")
    unknown = "not known: spanlab did not run it here"
    return {
        "Model": "; ".join(filter(None, (bound["model"], asked))) or "none",
        **({"check-model": checks} if checks else {}),
        **{title: text or unknown for title, text in hashes.items()},
        "Consistency of repeated runs": again,
    }


def _checked(one: Mapping[str, Any]) -> str:
    if one["check"] is None:
        return f"{one['model']} was not checked"
    trials = one["check"]["trials"]
    works = ", ".join(trial["kind"] for trial in trials if trial["works"])
    fails = ", ".join(trial["kind"] for trial in trials if not trial["works"])
    return f"{one['model']} on {one['check']['at'][:10]}: {works}" + (
        f"; not {fails}" if fails else ""
    )


def _alike(shares: Mapping[str, float] | None, otherwise: str) -> str:
    if shares is None:
        return otherwise
    return f"{percent(shares['answers'])} of answers alike, IoU {figure(shares['iou'])}"


def _rates(measured: Mapping[str, Any]) -> ResultTable:
    plan = measured["plan"]
    return ResultTable(
        key="rates",
        title=f"Hallucinated {plan['unit']}, with 95 % intervals",
        columns=(
            Column(key="value", title=plan["by"] or "Items"),
            *columns_of("count", "Items", "Reviews"),
            *columns_of("share", f"Marked by {plan['annotator']}", "Rate", "Answers like these"),
        ),
        rows=tuple(
            (
                group["value"],
                group["items"],
                group["reviews"],
                group["marked"],
                _interval(group["finite"]),
                _interval(group["superpopulation"]),
            )
            for group in measured["groups"]
        ),
    )


def _quality(content: Mapping[str, Any]) -> ResultTable:
    calibration, keys = content["calibration"], ("sensitivity", "specificity", "iou")
    return ResultTable(
        key="quality",
        title="How the detector's marks agree with people's, with 95 % intervals",
        columns=(
            *columns_of("text", "Per"),
            *columns_of("share", "Sensitivity", "Specificity", "IoU"),
        ),
        rows=tuple(
            (
                unit,
                *(_interval(content[unit][key]) for key in keys),
            )
            for unit in ("answers", "characters")
        ),
        remarks=(
            "Of the reviewed sample with its odds, for all items.",
            *(
                (f"Expected calibration error, by characters: {figure(calibration['error'])}.",)
                if calibration
                else ()
            ),
        ),
    )


def _interval(figures: Mapping[str, float] | None) -> MeanInterval | None:
    return None if figures is None else MeanInterval.model_validate(figures)


def _groups_svg(groups: Sequence[Mapping[str, Any]]) -> str:
    """Return a row per group: a square for what was marked, a dot for the rate."""
    intervals = [group["finite"] or {} for group in groups]
    most = max(
        [group["marked"] for group in groups] + [rate.get("high", 0.0) for rate in intervals]
    )
    most = _round_up(most or 1)
    x = _scale(0, most, _LEFT, _WIDTH - _EDGE)
    rows = []
    for row, (group, rate) in enumerate(zip(groups, intervals, strict=True)):
        y = _EDGE + _ROW * row
        rows.append(f"<text x='0' y='{y + 4}'>{escape(_short(group['value']))}</text>")
        rows.append(
            f"<rect class='raw' x='{x(group['marked']) - 4:.1f}' y='{y + 6}' width='8' height='8'/>"
        )
        if rate:
            rows.append(_path([(x(rate["low"]), y), (x(rate["high"]), y)], "wide"))
            rows.append(f"<circle class='rate' cx='{x(rate['mean']):.1f}' cy='{y}' r='5'/>")
    bottom = _ROW * len(groups) + _EDGE
    ticks = [
        _path([(x(most * part / 4), 8), (x(most * part / 4), bottom - 16)], "grid")
        + f"<text text-anchor='middle' x='{x(most * part / 4):.1f}' y='{bottom}'>"
        f"{_percent(most * part / 4)}</text>"
        for part in range(5)
    ]
    return _svg(
        "Marked and corrected by group; the table has the figures", bottom + 8, rows + ticks
    )


def _line_svg(points: Sequence[DrawnShare], *, diagonal: bool = False) -> str:
    """Return shares as dots on a line, with their intervals."""
    most = 1.0 if diagonal else _round_up(max(point.high for point in points) or 1)
    right = 1.0 if diagonal else max(point.at for point in points)
    x = _scale(0, right, 60, _WIDTH - _EDGE)
    y = _scale(0, most, _HEIGHT - 40, 12)
    parts = [
        _path([(60, y(most * part / 4)), (_WIDTH - _EDGE, y(most * part / 4))], "grid")
        + f"<text x='0' y='{y(most * part / 4) + 4:.1f}'>{_percent(most * part / 4)}</text>"
        for part in range(5)
    ]
    for part in range(5):
        at = right * part / 4
        text = f"{at:.0%}" if diagonal else f"{at:,.0f}"
        parts.append(f"<text text-anchor='middle' x='{x(at):.1f}' y='{_HEIGHT - 16}'>{text}</text>")
    if diagonal:
        parts.append(_path([(x(0), y(0)), (x(1), y(1))], "grid"))
    parts.append(_path([(x(point.at), y(point.mean)) for point in points], "wide"))
    for point in points:
        parts.append(_path([(x(point.at), y(point.low)), (x(point.at), y(point.high))], ""))
        parts.append(
            f"<circle class='rate' cx='{x(point.at):.1f}' cy='{y(point.mean):.1f}' r='4'/>"
        )
    about = "Reliability diagram" if diagonal else "The rate and its interval by reviews"
    return _svg(about, _HEIGHT, parts)


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _round_up(share: float) -> float:
    """Return the next share that has round quarters."""
    return next((end for end in (0.004, 0.02, 0.04, 0.08, 0.2, 0.4, 0.8) if end >= share), 1.0)


def _percent(share: float) -> str:
    return f"{round(100 * share, 2):g} %"


def _path(points: Sequence[tuple[float, float]], css: str) -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f"<path class='{css}' d='M{steps}'/>"


def _svg(about: str, height: float, parts: Sequence[str]) -> str:
    return (
        f"<svg role='img' aria-label='{escape(about)}' viewBox='0 0 {_WIDTH} {height:.0f}' "
        f"width='{_WIDTH}' height='{height:.0f}'>{''.join(parts)}</svg>\n"
    )


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


_NAME: Final = 24  # characters that have room
