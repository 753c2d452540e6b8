"""A certificate as one HTML page, with its pictures drawn in it; nothing is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from spanlab.measure.certificates import Certificate, write_certificate
from spanlab.measure.measurement import (
    Measurement,
    corrected_table,
    history_table,
    reliability_table,
    suggestions_in_words,
)
from spanlab.measure.sample import shown_rate
from spanlab.output.drawing import draw
from spanlab.output.figures import figure, percent
from spanlab.output.html_page import page_head
from spanlab.output.tables import (
    Column,
    MeanInterval,
    ResultTable,
    as_html,
    columns_of,
    fact_table,
    write_cell,
)
from spanlab.scoring.calibration import AnnotatorCalibration, CalibrationReport


def certificate_html(certificate: Certificate) -> str:
    """Return a certificate as a page; every text of the data is escaped."""
    content = certificate.content
    measured, bound = Measurement.read(content["measurement"]), content["binding"]
    parts = [
        page_head(f"Certificate of {bound['annotator']} on {bound['name']}"),
        f"<p><strong>{escape(measured.sentence or '')}</strong></p>\n",
        f"<p>{escape(_headline(measured))}</p>\n",
        *map(as_html, (_facts(content), *measured.tables())),
        "<p class='about'>Intervals are of 95 %. In the pictures, dots have one, and squares are "
        "what the detector marked.</p>\n",
        *(
            f"<h2>{escape(table.title)}</h2>\n{draw(table)}"
            for table in _pictures(measured, content)
            if table.rows
        ),
        as_html(_quality(content)),
        "<p class='about'>Valid only for the detector, model, options, definition and items "
        "listed. The page Measure of spanlab checks whether they have changed.</p>\n",
        "</main></body></html>\n",
    ]
    return "".join(parts)


def save_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate as the file's name says: ``.html`` (or ``.htm``) a page, else JSON."""
    if path.suffix.lower() in {".html", ".htm"}:
        path.write_text(certificate_html(certificate), encoding="utf-8")
    else:
        write_certificate(certificate, path)


def _headline(measured: Measurement) -> str:
    column, rate = Column(key="rate", title="Rate", unit="share"), measured.rate
    return (
        f"Hallucinated {measured.plan.unit}, future answers: "
        f"{write_cell(rate.superpopulation, column)}; these answers, as these people marked "
        f"them: {write_cell(shown_rate(rate.finite), column)}; from {rate.reviews:,} reviews of "
        f"{rate.items:,} items."
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
        "Suggestions in review": suggestions_in_words(
            content["measurement"].get("suggestions", {})
        ),
        "Sample": f"{plan['design']}, seed {plan['seed']}",
        "Estimate": content["measurement"]["method"],
        "Items": bound["dataset"],
        "Marks": bound["marks"],
        "This certificate": content["sha256"],
    }
    return fact_table("certificate", "What was measured", facts)


def _setup(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the detector's models, prompts and options in words, as far as spanlab has run it."""
    bound = content["binding"]
    models = [m for several in bound["models"].values() for model in several for m in model.items()]
    model_names = ", ".join(f"{key} {name}" for key, name in dict.fromkeys(models))
    titles = {"version": "Version of spanlab", "prompts": "Prompts", "options": "Options"}
    hashes = {
        title: ", ".join(dict.fromkeys(text for several in bound[key].values() for text in several))
        for key, title in titles.items()
    }
    checks = "; ".join(_check_in_words(check) for check in content["checks"])
    runs = content["consistency"]
    consistency = _alike(runs, "not run again") + (f", {runs['runs']} runs" if runs else "")
    unknown = "not known: spanlab did not run it here"
    return {
        "Model": "; ".join(filter(None, (bound["model"], model_names))) or "none",
        **({"check-model": checks} if checks else {}),
        **{title: text or unknown for title, text in hashes.items()},
        "Consistency of repeated runs": consistency,
    }


def _check_in_words(model_check: Mapping[str, Any]) -> str:
    if model_check["check"] is None:
        return f"{model_check['model']} was not checked"
    trials = model_check["check"]["trials"]
    works = ", ".join(trial["kind"] for trial in trials if trial["works"])
    fails = ", ".join(trial["kind"] for trial in trials if not trial["works"])
    return f"{model_check['model']} on {model_check['check']['at'][:10]}: {works}" + (
        f"; not {fails}" if fails else ""
    )


def _alike(shares: Mapping[str, float | None] | None, otherwise: str) -> str:
    if shares is None or shares["answers"] is None:
        return otherwise
    iou = shares["iou"]  # None where nobody marked places
    of_marks = "" if iou is None else f", IoU {figure(iou)}"
    return f"{percent(shares['answers'])} of answers alike{of_marks}"


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
                *(content[unit][key] and MeanInterval(**content[unit][key]) for key in keys),
            )
            for unit in ("answers", "characters")
        ),
        remarks=(
            "Estimated for all items, weighted by sampling probability.",
            *(
                (f"Expected calibration error, by characters: {_error_in_words(calibration)}.",)
                if calibration
                else ()
            ),
        ),
    )


def _error_in_words(calibration: Mapping[str, Any]) -> str:
    ends = calibration.get("interval")  # certificates of 1.0 have the sample's error alone
    return figure(calibration["error"]) + (f" [{', '.join(map(figure, ends))}]" if ends else "")


def _pictures(measured: Measurement, content: Mapping[str, Any]) -> tuple[ResultTable, ...]:
    """Return the tables whose charts the page has."""
    plan, calibration = measured.plan, content["calibration"]
    report = calibration and CalibrationReport.model_validate(calibration)
    curves = [AnnotatorCalibration(plan.annotator, measured.rate.reviews, report)] if report else []
    return corrected_table(measured), history_table(measured), reliability_table(plan, curves)
