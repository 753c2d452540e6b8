"""Commands of measurements: rates that reviews correct, gates, how well and how far people mark."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spanlab.errors import UsageError


class MeasuredUnit(StrEnum):
    """What is counted."""

    ANSWERS = "answers"
    CHARACTERS = "characters"
    CLAIMS = "claims"


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
        str | None, typer.Option(help="Also by group: lang, or a path such as meta.model.")
    ] = None,
    design: Annotated[
        SampleDesign | None,
        typer.Option(
            help="Uniform random sample (default), stratified by group, by the detector's "
            "uncertainty, or by length (default for characters)."
        ),
    ] = None,
    within: Annotated[float, typer.Option(help="Margin of error: .03 for ± 3 points.")] = 0.03,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the order of review.")] = 0,
    reviewers: Annotated[
        str | None,
        typer.Option(help="Whose reviews count, separated by commas (default: all people)."),
    ] = None,
    show_suggestions: Annotated[
        bool, typer.Option("--show-suggestions", help="Reviewers see the detector's marks.")
    ] = False,
    definition: Annotated[str | None, typer.Option(help="What counts as hallucinated.")] = None,
    model: Annotated[str | None, typer.Option(help="The model behind the detector.")] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Write the certificate to this file: .html a page, else JSON."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            help="Say whether this certificate (JSON) still holds for the dataset; exit 1 if not."
        ),
    ] = None,
    queue: Annotated[
        bool, typer.Option("--queue", help="Print only the ids of the items, in order of review.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Measure how often answers are hallucinated, from a detector's marks and a few reviews.

    With --annotator it is planned and stored with the dataset; without, its state is shown. Items
    are reviewed in one fixed order, and every beginning of it is a valid sample.

    \b
    spanlab measure mine --annotator offline --by lang --within .03
    spanlab measure mine --certificate certificate.json
    spanlab measure mine --check certificate.json
    """
    from spanlab.cli import console
    from spanlab.schema import MeasurementPlan
    from spanlab.storage import Store
    from spanlab.workflows.measuring import measurement, sample
    from spanlab.workflows.measuring.certificate_page import save_certificate
    from spanlab.workflows.measuring.certificates import (
        certify,
        read_certificate,
        stale_because,
    )

    with Store.open() as store:
        if annotator is not None:
            optional = {"definition": definition, "model": model}
            plan = MeasurementPlan(
                annotator=annotator,
                unit=unit.value,
                by=by,
                design=(design or _usual_design(unit)).value,
                seed=seed,
                half_width=within,
                show_suggestions=show_suggestions,
                reviewers=_names(reviewers),
                **{key: value for key, value in optional.items() if value is not None},
            )
            sample.plan_measurement(store, dataset, plan)
        if queue:
            typer.echo("\n".join(sample.measurement_queue(store, dataset)))
            return
        if check is not None:
            reasons = stale_because(store, dataset, read_certificate(check))
            typer.echo(f"out of date: {'; '.join(reasons)}" if reasons else "still valid")
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
        typer.Option(help="The detector whose marks the reviews correct; by default the plan's."),
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML to this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Fail (exit 1) if a dataset's corrected rate is shown to be too high.

    \b
    spanlab gate mine --annotator offline --max-rate .75
    spanlab gate mine --against last-week --junit gate.xml
    spanlab gate mine --group en --against fr
    """
    from spanlab.cli import console
    from spanlab.storage import Store
    from spanlab.workflows.measuring import gating

    with Store.open() as store:
        gate_check = gating.check_gate(
            store,
            gating.GateSubject(dataset, annotator, group),
            max_rate=max_rate,
            require_proof=require_proof,
            against=against,
        )
    gating.write_reports(gate_check, junit)
    console.write_result(gate_check, json=as_json)
    if not gate_check.passed:
        raise typer.Exit(1)


def raters(
    dataset: Annotated[str, typer.Argument(help="A dataset that several people annotated.")],
    annotators: Annotated[
        str | None, typer.Option(help="Whom, with commas between; by default all people.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Estimate how reliable each person is: sensitivity and specificity.

    Estimated from agreement (Dawid and Skene's model) and from items with gold labels, which people
    who review blind do not see. `spanlab vote --weighted` goes by it.
    """
    from spanlab.cli import console
    from spanlab.storage import Store
    from spanlab.workflows.measuring.raters import rate_raters

    with Store.open() as store:
        ratings = rate_raters(store.records(dataset), _names(annotators))
    console.write_result(ratings, json=as_json)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name for name in (text or "").split(",") if name)


def campaign(
    dataset: Annotated[str, typer.Argument(help="A dataset that people review.")],
    remind: Annotated[
        bool,
        typer.Option(
            "--remind",
            help="Write who has items left, and for how long they were inactive, as CSV.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
    known: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="How items whose answer is known tell how well people mark: labels=gold says "
            "whose labels the known answers are (separate names by commas), share=.1 hides one in "
            "ten among others, warn_below=.5 is an IoU, test_items=5 are a test before people "
            "begin, passed at pass_at=.5, again with retry=yes; none for not at all. Repeatable.",
        ),
    ] = None,
    take_back: Annotated[
        str | None, typer.Option(help="Give the unfinished items of this person to others.")
    ] = None,
    give_back: Annotated[str | None, typer.Option(help="Undo --take-back for this person.")] = None,
    let_in: Annotated[
        str | None, typer.Option(help="Let this person begin without having passed the test.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm --take-back.")] = False,
) -> None:
    """Report what people have done, what is left, how well they work, and when they finish.

    Items with known answers tell how well people mark: hidden among the others in Review, in a
    dataset where reviewers never see what others marked, or as a short test before they begin.
    Known are the gold labels that came with the dataset, unless labels=NAME says otherwise; what
    your team decides under Adjudicate never becomes a known answer.

    \b
    spanlab campaign mine
    spanlab campaign mine --remind > remind.csv
    spanlab campaign mine --known share=.1 --known test_items=5 --known pass_at=.6
    spanlab campaign mine --take-back Ben --yes
    """
    from spanlab.cli import console
    from spanlab.datasets.read_options import mapping_in
    from spanlab.results import as_csv
    from spanlab.workflows.analysis.people import oversee, remind_table
    from spanlab.workflows.campaigns import change_known, describe_leaving, known_in_words
    from spanlab.workflows.campaigns import let_in as let_person_in
    from spanlab.workflows.datasets import open_store

    rules = None if known == ["none"] else mapping_in(known or (), "--known must be NAME=VALUE")
    with open_store() as store:
        if known:
            change_known(store, dataset, rules)
            if rules is not None:
                console.say(known_in_words(store, dataset))
        if take_back is not None:
            announcement = describe_leaving(store, dataset, take_back)
            if not yes:
                raise UsageError(f"{announcement} Add --yes to do it.")
            console.say(announcement)
            store.take_back(dataset, take_back)
        if give_back is not None:
            store.give_back(dataset, give_back)
        if let_in is not None:
            let_person_in(store, dataset, let_in)
        oversight = oversee(store, dataset)
    if remind:
        typer.echo(as_csv(remind_table(oversight)), nl=False)
    else:
        console.write_result(oversight, json=as_json)
