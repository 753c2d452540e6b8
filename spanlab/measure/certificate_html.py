"""A certificate as one HTML page, with its pictures drawn in it; nothing is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from spanlab.measure.certificates import Certificate, write_certificate
from spanlab.measure.measurement import (
    Measurement,
    corrected_table,
    history_table,
    reliability_table,
    without_method,
)
from spanlab.measure.sample import shown_rate
from spanlab.output.drawing import draw
from spanlab.output.figures import counted, figure, percent
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

_COMPARED: Final = 5  # comparisons that its verdict names


def certificate_html(certificate: Certificate) -> str:
    """Return a certificate as a page; every text of the data is escaped."""
    content = certificate.content
    measured, bound = Measurement.read(content["measurement"]), content["binding"]
    rates, *pairs = (without_method(table)[0] for table in measured.tables())
    parts = [
        page_head(f"Certificate of {bound['annotator']} on {bound['name']}"),
        f"<p class='headline'>{escape(measured.sentence or '')}</p>\n",
        *(f"<p>{escape(sentence)}</p>\n" for sentence in _verdict(measured, content)),
        *map(as_html, (rates.model_copy(update={"title": "Rates"}), *pairs)),
        "<p class='about'>Intervals are of 95 %. In the pictures, dots have one, and squares are "
        "what the detector marked.</p>\n",
        *(
            f"<h2>{escape(table.title)}</h2>\n{draw(table)}"
            for table in _pictures(measured, content)
            if table.rows
        ),
        as_html(_quality(content)),
        as_html(fact_table("certificate", "How it was measured", _facts(content))),
        as_html(fact_table("binding", "What it is bound to", _binding(content))),
        "</main></body></html>\n",
    ]
    return "".join(parts)


def save_certificate(certificate: Certificate, path: Path) -> None:
    """Write a certificate as the file's name says: ``.html`` (or ``.htm``) a page, else JSON."""
    if path.suffix.lower() in {".html", ".htm"}:
        path.write_text(certificate_html(certificate), encoding="utf-8")
    else:
        write_certificate(certificate, path)


def _verdict(measured: Measurement, content: Mapping[str, Any]) -> Iterator[str]:
    """Say what a manager wants to know: who is worse, how often, how good the detector is."""
    column, rate = Column(key="rate", title="Rate", unit="share"), measured.rate
    yield from measured.comparisons[:_COMPARED]
    people = ", ".join(f"{name} ({count:,})" for name, count in content["reviewers"].items())
    yield (
        f"In these {rate.items:,} items, {write_cell(shown_rate(rate.finite), column)} of the "
        f"{measured.plan.unit} are hallucinated, going by {counted(rate.reviews, 'review')} of "
        f"{people}. {_suggestions(content['measurement'].get('suggestions', {}))}"
    )
    found, right = (content["answers"][key] for key in ("sensitivity", "specificity"))
    if found and right:
        found = MeanInterval(**found)
        ends = {"mean": right["mean"], "low": right["high"], "high": right["low"]}
        wrong = MeanInterval(**{name: 1 - share for name, share in ends.items()})
        yield (
            f"The detector {measured.plan.annotator} marks {write_cell(found, column)} of the "
            f"hallucinated answers, and {write_cell(wrong, column)} of the others."
        )
    yield (
        f"This holds for the detector, model, options, definition and items named below, as of "
        f"{content['date'][:10]}. The page Measure of spanlab says whether any of them has changed."
    )


def _suggestions(suggestions: Mapping[str, int]) -> str:
    shown, total = suggestions.get("shown", 0), sum(suggestions.values())
    unknown = suggestions.get("unknown")
    if unknown == total:
        return "Whether reviewers saw the detector's suggestions is not recorded."
    return f"Reviewers saw the detector's suggestions in {shown:,} of {total:,} reviews" + (
        f" (unknown for {unknown:,})." if unknown else "."
    )


def _facts(content: Mapping[str, Any]) -> dict[str, str]:
    bound, plan = content["binding"], content["measurement"]["plan"]
    return {
        "Detector": bound["annotator"],
        **_models(content),
        "Counts as hallucinated": bound["definition"],
        "Unit": bound["unit"],
        "Agreement of reviewers": _alike(content["agreement"], "one reviewer each"),
        "Sample": f"{plan['design']}, seed {plan['seed']}",
        "Estimate": content["measurement"]["method"],
        "Made": f"{content['date'][:16].replace('T', ' ')} UTC",
    }


def _binding(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes, by what they are of."""
    bound = content["binding"]
    titles = {"version": "Version of spanlab", "prompts": "Prompts", "options": "Options"}
    hashes = {
        title: ", ".join(dict.fromkeys(text for several in bound[key].values() for text in several))
        for key, title in titles.items()
    }
    unknown = "not known: spanlab did not run it here"
    return {
        **{title: text or unknown for title, text in hashes.items()},
        "Items": bound["dataset"],
        "Marks": bound["marks"],
        "This certificate": content["sha256"],
    }


def _models(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the detector's models in words, as far as spanlab has run it."""
    bound = content["binding"]
    models = [m for several in bound["models"].values() for model in several for m in model.items()]
    model_names = ", ".join(f"{key} {name}" for key, name in dict.fromkeys(models))
    checks = "; ".join(_check_in_words(check) for check in content["checks"])
    runs = content["consistency"]
    consistency = _alike(runs, "not run again") + (f", {runs['runs']} runs" if runs else "")
    return {
        "Model": "; ".join(filter(None, (bound["model"], model_names))) or "none",
        **({"check-model": checks} if checks else {}),
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
    return figure(calibration["error"]) + (
        f" [{', '.join(map(figure, ends))}]" if ends and figure(ends[0]) != figure(ends[1]) else ""
    )


def _pictures(measured: Measurement, content: Mapping[str, Any]) -> tuple[ResultTable, ...]:
    """Return the tables whose charts the page has."""
    plan, calibration = measured.plan, content["calibration"]
    report = calibration and CalibrationReport.model_validate(calibration)
    curves = [AnnotatorCalibration(plan.annotator, measured.rate.reviews, report)] if report else []
    return corrected_table(measured), history_table(measured), reliability_table(plan, curves)
