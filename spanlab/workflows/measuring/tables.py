"""What a measurement's pictures show: raw beside corrected rates, the interval, reliability."""

from __future__ import annotations

from spanlab.results import Chart, Column, ResultTable, columns_of
from spanlab.schema import AnnotatorKind, MeasurementPlan, Status
from spanlab.storage import Store
from spanlab.workflows.analysis.calibration import CalibrationTally
from spanlab.workflows.analysis.comparison_tables import calibration_table
from spanlab.workflows.measuring.measurement import Measurement
from spanlab.workflows.measuring.sample import is_reviewer


def corrected_table(measured: Measurement) -> ResultTable:
    """Return what the detector marked beside the corrected rate, for all items and each group."""
    plan = measured.plan
    return ResultTable(
        key="raw-and-corrected",
        title=f"What {plan.annotator} marked, and the corrected rate",
        columns=(
            Column(key="value", title=plan.by or "Items"),
            Column(key="which", title="Which"),
            Column(key="share", title=f"Share of {plan.unit}", unit="share"),
        ),
        rows=tuple(
            (group.value, which, share)
            for group in measured.groups
            for which, share in (
                (f"marked by {plan.annotator}", group.marked),
                ("corrected", group.finite),
            )
            if share is not None
        ),
        chart=Chart(kind="dots", x="share", y="value", group="which"),
    )


def history_table(measured: Measurement) -> ResultTable:
    """Return the corrected rate after so many reviews: how the interval shrinks."""
    return ResultTable(
        key="measurement-history",
        title="The interval after each review",
        columns=(
            *columns_of("count", "Reviews"),
            Column(key="rate", title="Rate", unit="share"),
        ),
        rows=measured.history,
        chart=Chart(kind="line", x="rate", y="reviews"),
        empty="The picture of the shrinking interval begins with the second review.",
    )


def reliability_table(store: Store, dataset: str, plan: MeasurementPlan) -> ResultTable:
    """Return the detector's probabilities against the share of reviewers that marked as much.

    Raises:
        NotFoundError: there is no such dataset.
    """
    tally = CalibrationTally({plan.annotator: AnnotatorKind.DETECTOR})
    for record in store.records(dataset):
        people = [annotation for annotation in record.annotations if is_reviewer(annotation, plan)]
        detector = record.by(plan.annotator)
        if detector is not None and any(person.status is Status.DONE for person in people):
            as_detector = detector.model_copy(update={"kind": AnnotatorKind.DETECTOR})
            kept = {"annotations": (as_detector, *people)}
            tally.add(record.model_copy(update=kept))
    return calibration_table(tally.result()).model_copy(
        update={
            "key": "reliability",
            "title": f"Reliability of {plan.annotator}, by characters of what is reviewed",
            "empty": "A reliability diagram needs a reviewed item.",
            "remarks": ("On the dashed line, seven in ten characters marked .7 are hallucinated.",),
        }
    )
