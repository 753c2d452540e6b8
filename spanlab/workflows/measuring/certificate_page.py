"""A certificate as one HTML page, with its pictures drawn in it; nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from spanlab.figures import figure, percent
from spanlab.results import (
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    as_html,
    columns_of,
    fact_table,
    write_cell,
)
from spanlab.workflows.drawing import draw
from spanlab.workflows.measuring.certificates import Certificate, write_certificate
from spanlab.workflows.report import page_head


def certificate_html(certificate: Certificate) -> str:
    """Return a certificate as a page; every text of the data is escaped."""
    content = certificate.content
    measured, bound = content["measurement"], content["binding"]
    title = f"Certificate of {bound['annotator']} on {bound['name']}"
    parts = [
        page_head(title),
        f"<p>{escape(_headline(measured))}</p>\n",
        as_html(_facts(content)),
        as_html(_rates(measured)),
        *(
            f"<h2>{escape(table.title)}</h2>\n{draw(table)}"
            for table in _drawn(content)
            if table.rows
        ),
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
    return (
        None
        if figures is None
        else MeanInterval.model_validate({key: figures[key] for key in MeanInterval.model_fields})
    )


def _drawn(content: Mapping[str, Any]) -> Iterator[ResultTable]:
    """Yield what the page has as pictures: figures of the tables, and what has no table."""
    measured, bins = content["measurement"], (content["calibration"] or {"bins": ()})["bins"]
    names, share = columns_of("text", "Group"), columns_of("share", "Share")
    yield ResultTable(
        key="drawn",
        title="What the detector marked (squares), and the corrected rate with its interval",
        columns=(*names, *share),
        rows=tuple(
            (group["value"], cell)
            for group in measured["groups"]
            for cell in (group["marked"], _interval(group["finite"]))
        ),
        chart=Chart(kind="dots", x="share", y="group"),
    )
    yield ResultTable(
        key="history",
        title="The interval after each review",
        columns=(*columns_of("count", "Reviews"), *share),
        rows=tuple((point["reviews"], _interval(point)) for point in measured["history"]),
        chart=Chart(kind="line", x="share", y="reviews"),
    )
    yield ResultTable(
        key="reliability",
        title="Reliability: probability, and share of people who mark as much",
        columns=(*columns_of("share", "Probability"), *share),
        rows=tuple((point["prob"], point["share"]) for point in bins),
        chart=Chart(kind="calibration", x="probability", y="share"),
    )
