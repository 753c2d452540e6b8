"""Commands of measurements: rates that reviews correct, gates, how well and how far people mark."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spanlab.cli import console
from spanlab.cli.inputs import split_names
from spanlab.measure import gating, measurement, sample
from spanlab.measure.certificate_html import save_certificate
from spanlab.measure.certificates import (
    certify,
    method_change,
    read_certificate,
    stale_because,
)
from spanlab.measure.citation_gate import check_citations
from spanlab.measure.rate_tally import rates as count_rates
from spanlab.schema import MeasurementPlan
from spanlab.storage import Store


class MeasuredUnit(StrEnum):
    """What is counted."""

    ANSWERS = "answers"
    CHARACTERS = "characters"
    CLAIMS = "claims"


Cluster = Annotated[
    str | None,
    typer.Option(
        help="Field of answers that are not independent, such as meta.session, or none (default: "
        "those with one question, answer or document)."
    ),
]


_CitationFloor = Annotated[
    float | None,
    typer.Option(
        help="Fail if the whole 95 % interval is below, by the marks that count for rates.",
        min=0,
        max=1,
    ),
]


class SampleDesign(StrEnum):
    """How likely each item is to be reviewed."""

    UNIFORM = "uniform"
    STRATIFIED = "stratified"
    UNCERTAINTY = "uncertainty"
    LENGTH = "length"


def _usual_design(unit: MeasuredUnit) -> SampleDesign:
    """Return the design for a unit: long answers carry a rate of characters."""
    return SampleDesign.LENGTH if unit is MeasuredUnit.CHARACTERS else SampleDesign.UNIFORM


def measure(
    dataset: Annotated[str, typer.Argument(help="A dataset that the detector has annotated.")],
    annotator: Annotated[
        str | None,
        typer.Option(help="The detector whose marks are corrected: plans the measurement."),
    ] = None,
    unit: Annotated[MeasuredUnit, typer.Option(help="What is counted.")] = MeasuredUnit.ANSWERS,
    by: Annotated[
        str | None, typer.Option(help="Also by group: lang, model, or a path such as meta.topic.")
    ] = None,
    design: Annotated[
        SampleDesign | None,
        typer.Option(
            help="Uniform random sample (default), stratified by group, by the detector's "
            "uncertainty, or by length (default for characters)."
        ),
    ] = None,
    cluster: Cluster = None,
    within: Annotated[
        float, typer.Option(min=0.001, max=0.499, help="Margin of error: .03 for ± 3 points.")
    ] = 0.03,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of review.")] = 0,
    reviewers: Annotated[
        str | None,
        typer.Option(help="Whose reviews count, separated by commas (default: all people)."),
    ] = None,
    show_suggestions: Annotated[
        bool, typer.Option("--show-suggestions", help="Reviewers see the detector's marks.")
    ] = False,
    definition: Annotated[str | None, typer.Option(help="What counts as hallucinated.")] = None,
    model: Annotated[
        str | None, typer.Option(help="The detector's model, for the certificate.")
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write the certificate to this file: .html a page, else JSON."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Say whether this certificate (JSON) is still valid here; exit 1 if not."
        ),
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="Print only the ids of the items, in order of review.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Measure how often answers are hallucinated, from a detector's marks and a few reviews.

    With --annotator it is planned and stored with the dataset; without, its state is shown. Items
    are reviewed in one fixed order: what has been reviewed so far is always a valid sample.

    \b
    spanlab measure mine --annotator offline --by lang --within .03
    spanlab measure mine --certificate certificate.json
    spanlab measure mine --check certificate.json
    """
    with Store.open() as store:
        if annotator is not None:
            optional = {"definition": definition, "model": model}
            plan = MeasurementPlan(
                annotator=annotator,
                unit=unit.value,
                by=by,
                cluster=cluster,
                design=(design or _usual_design(unit)).value,
                seed=seed,
                half_width=within,
                show_suggestions=show_suggestions,
                reviewers=split_names(reviewers),
                **{key: value for key, value in optional.items() if value is not None},
            )
            sample.plan_measurement(store, dataset, plan)
        if queue:
            typer.echo("\n".join(sample.measurement_queue(store, dataset)))
            return
        if check is not None:
            held = read_certificate(check)
            reasons = stale_because(store, dataset, held)
            state = f"out of date: {'; '.join(reasons)}" if reasons else "still valid"
            typer.echo("; ".join(filter(None, (state, method_change(held)))))
            raise typer.Exit(bool(reasons))
        measured = measurement.measure(store, dataset)
        if certificate is not None:
            save_certificate(certify(store, dataset), certificate)
    console.write_result(measured, json=as_json)


def gate(
    dataset: Annotated[str, typer.Argument(help="A dataset with a measurement.")],
    max_rate: Annotated[
        float | None,
        typer.Option(
            help="Fail if the whole 95 % interval is above this rate, such as .05.", min=0, max=1
        ),
    ] = None,
    require_proof: Annotated[
        bool,
        typer.Option(
            "--require-proof", help="Also fail unless the whole interval is below --max-rate."
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            help="Fail if the rate is significantly higher than in another measured dataset, or "
            "in a value of the plan's --by, such as a model. Common questions are paired."
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Only the items of this value of the plan's --by, such as a model."),
    ] = None,
    annotator: Annotated[
        str | None,
        typer.Option(help="The detector to correct; by default the plan's."),
    ] = None,
    min_citation_recall: _CitationFloor = None,
    min_citation_precision: _CitationFloor = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Fail (exit 1) if a dataset's corrected rate is shown to be too high, or its citations bad.

    \b
    spanlab gate mine --annotator offline --max-rate .75
    spanlab gate mine --against last-week --junit gate.xml
    spanlab gate mine --group en --against fr
    spanlab gate mine --annotator citations --min-citation-precision .8
    """
    floors = {"recall": min_citation_recall, "precision": min_citation_precision}
    limits = {name: limit for name, limit in floors.items() if limit is not None}
    subject = gating.GateSubject(dataset, annotator, group)
    results: list[gating.GateResult] = []
    with gating.errors_reported(dataset, junit), Store.open() as store:
        if limits:
            results.append(check_citations(store, subject, limits))
        if not limits or require_proof or max_rate is not None or against is not None:
            rate_gate = gating.check_gate(
                store, subject, max_rate=max_rate, require_proof=require_proof, against=against
            )
            results.append(rate_gate)
    checks = tuple(check for result in results for check in result.checks)
    state = " ".join(result.state for result in results)
    gate_check = gating.GateResult(results[-1].dataset, checks, state)
    gating.write_reports(gate_check, junit)
    console.write_result(gate_check, json=as_json)
    if not gate_check.passed:
        raise typer.Exit(1)


def rates(
    dataset: Annotated[str, typer.Argument(help="A dataset with finished annotations.")],
    by: Annotated[
        str, typer.Option(help="lang, model, label, or a path into the items' meta: meta.topic.")
    ],
    annotators: Annotated[
        str | None,
        typer.Option(
            help="Annotators whose labels are counted, separated by commas. By default gold "
            "labels, and people where an item has none; else the only vote or detector."
        ),
    ] = None,
    cluster: Cluster = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Say how often answers are hallucinated, by model or any other field of the items.

    For each value: the share of answers with a hallucination, of characters and of claims, and
    spans per 1,000 characters, with 95 % intervals; values that answered the same questions are
    compared pair by pair.

    \b
    spanlab rates mine --by meta.topic
    spanlab rates mine --by lang --annotators offline
    """
    names = [name for name in (annotators or "").split(",") if name]
    with Store.open() as store, console.bar("reading", unit="items") as advance:
        report = count_rates(store, dataset, by, names, cluster, on_progress=advance)
    console.write_result(report, json=as_json)
