"""The Measure page: how often answers are hallucinated, from a detector's marks and reviews."""

from __future__ import annotations

import json
from typing import Any, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from spanlab.measure.certificate_html import certificate_html
from spanlab.measure.certificates import (
    Certificate,
    certify,
    parse_certificate,
    stale_because,
)
from spanlab.measure.measurement import (
    Measurement,
    corrected_table,
    history_table,
    reliability_of,
    suggestions_in_words,
    without_method,
)
from spanlab.measure.panel import fingerprint_of, measured
from spanlab.measure.rates import LABEL, fields_of
from spanlab.measure.rates_panel import show_rates
from spanlab.measure.sample import measurable, plan_measurement
from spanlab.output.figures import counted, field_in_words
from spanlab.output.tables import ResultTable
from spanlab.schema import AnnotatorKind, DatasetSummary, MeasurementPlan, Permission
from spanlab.storage.store import Store
from spanlab.ui.common import (
    SAMPLE,
    choose_dataset,
    datasets_for,
    link,
    plain,
    store,
    title,
)
from spanlab.ui.messages import errors_shown
from spanlab.ui.session import seen_summary
from spanlab.ui.tables import csv_button, show_chart, show_grid, show_page, show_remarks, show_table

_DESIGNS: Final = {
    "uniform": "Uniform random sample",
    "stratified": "Stratified by group",
    "uncertainty": "Uncertainty sampling",
    "length": "Long answers more often",
}
_REPLACING: Final = "spanlab.measure.replacing"  # the dataset of which a plan is to be replaced
_LARGEST: Final = 1  # MiB of a certificate
_COMPARED: Final = 3  # comparisons of groups that are told above the tables
_POINTS: Final = 100  # of a share


def page() -> None:
    """Draw the page."""
    place = title("Measure")
    summaries = datasets_for("measure", Permission.READ)
    if not summaries:
        return
    summary = choose_dataset(summaries, place)
    plan = summary.settings.measurement
    result = None
    with errors_shown():
        if plan is not None:
            result = measured(summary, plan, store())
            _draw_state(result)
    detectors = list(_measurable_once(summary.name, fingerprint_of(summary, store()), store()))
    if detectors and plan is None:  # first what the page is for
        _draw_plan(summary, detectors, place)
    with errors_shown():
        _draw_rates(summary, result)
        if result is not None and result.rate.finite is not None:
            _draw_details(summary, result)
    if detectors and plan is not None:
        _draw_plan(summary, detectors, place)
    if not detectors:
        st.info(
            "A measurement needs the marks of a detector and a few reviews. No detector has "
            "finished an item of this dataset yet.",
            icon=":material/straighten:",
        )
        link("detect", "Run a detector", icon=":material/manage_search:", dataset=summary.name)


def _draw_plan(summary: DatasetSummary, detectors: list[str], place: DeltaGenerator) -> None:
    """Draw what is asked of a plan; its first one is stored by a button in the head."""
    with errors_shown():
        has_plan = summary.settings.measurement is not None
        st.header("Change the plan" if has_plan else "Plan the measurement", anchor=False)
        _offer_plan(summary, _ask(summary, detectors), place)


@st.cache_resource(max_entries=16, show_spinner=False)
def _measurable_once(
    dataset: str, fingerprint: tuple[object, ...], _store: Store
) -> tuple[str, ...]:
    return measurable(_store, dataset)


def _ask(summary: DatasetSummary, detectors: list[str]) -> MeasurementPlan:
    """Ask how to measure; what is planned already is filled in."""
    name, stored_plan = summary.name, summary.settings.measurement
    plan = stored_plan or MeasurementPlan(annotator=detectors[0])
    fields = [None, *(field for field in fields_of(store(), name) if field != LABEL)]
    first, second, third, fourth = st.columns(4, vertical_alignment="bottom")
    annotator = first.selectbox(
        "Detector",
        detectors,
        index=_index_of(detectors, plan.annotator),
        key=f"measure-detector-{name}",
        help="The detector to correct.",
    )
    units = ["answers", "characters", "claims"]
    unit = second.selectbox("Unit", units, index=units.index(plan.unit), key=f"measure-unit-{name}")
    field = third.selectbox(
        "By group",
        fields,
        index=_index_of(fields, plan.by),
        format_func=lambda field: field_in_words(field or "no groups"),
        key=f"measure-by-{name}",
    )
    points = fourth.number_input(
        "Margin of error (± points)",
        0.5,
        40.0,
        _POINTS * plan.half_width,
        step=0.5,
        format="%g",
        key=f"measure-within-{name}",
        help="Half the width of the 95 % interval, in percentage points.",
    )
    return MeasurementPlan.model_validate(
        {
            **plan.model_dump(),
            "annotator": annotator,
            "unit": unit,
            "by": field,
            "half_width": points / _POINTS,
            **_ask_more(summary, plan, field, unit),
        }
    )


def _ask_more(
    summary: DatasetSummary, plan: MeasurementPlan, field: str | None, unit: str
) -> dict[str, Any]:
    name = summary.name
    is_new = summary.settings.measurement is None
    usual = "length" if is_new and unit == "characters" else plan.design
    with st.expander("Sample, reviewers, definition", icon=":material/tune:"):
        left, right = st.columns(2)
        designs = [design for design in _DESIGNS if field or design != "stratified"]
        design = left.selectbox(
            "Sample",
            designs,
            index=_index_of(designs, usual),
            format_func=_DESIGNS.__getitem__,
            key=f"measure-design-{name}-{unit}",
            help="How items are drawn. Sampling probabilities are saved.",
        )
        seed = left.number_input("Seed", 0, None, plan.seed, key=f"measure-seed-{name}")
        kinds = AnnotatorKind.PERSON, AnnotatorKind.VOTE, AnnotatorKind.GOLD
        reviewers = right.multiselect(
            "Reviewers counted",
            list(dict.fromkeys((*summary.names_of(*kinds), *plan.reviewers))),
            plan.reviewers,
            accept_new_options=True,
            placeholder="Everybody who reviews",
            key=f"measure-reviewers-{name}",
        )
        model = right.text_input(
            "Detector's model (for the certificate)",
            plan.model,
            max_chars=200,
            key=f"measure-model-{name}",
        )
        definition = st.text_input(
            "What counts as hallucinated",
            plan.definition,
            max_chars=2_000,
            key=f"measure-definition-{name}",
        )
        shown = st.checkbox(
            "Reviewers see the detector's suggestions",
            plan.show_suggestions,
            key=f"measure-shown-{name}",
            help="Suggestions bias reviewers, so they are hidden by default.",
        )
    return {
        "design": design,
        "seed": int(seed),
        "reviewers": tuple(reviewers),
        "model": model,
        "definition": definition,
        "show_suggestions": shown,
    }


def _offer_plan(summary: DatasetSummary, plan: MeasurementPlan, place: DeltaGenerator) -> None:
    """Say how many reviews a plan takes, and store it on request; another one is asked about."""
    stored_plan = summary.settings.measurement
    measurement = measured(summary, plan, store())
    needed, items = measurement.more + measurement.rate.reviews, measurement.rate.items
    guess = (
        "from the reviews so far" if measurement.rate.finite else "rough, from the detector's marks"
    )
    st.markdown(
        f"**About {needed:,}** of {counted(items, 'item')} must be reviewed for "
        f"± {_POINTS * plan.half_width:g} points ({guess}); to detect a 5-point difference of "
        f"future answers, {measurement.for_difference:,} on each side"
        + (" (more than these)." if measurement.for_difference > items else "."),
    )
    is_same = plan == stored_plan
    if stored_plan is None:
        if place.button("Plan this measurement", type="primary", key="measure-plan"):
            _store(summary.name, plan)
    elif is_same or st.session_state.get(_REPLACING) != summary.name:
        if st.button("Replace the plan…", key="measure-replace", disabled=is_same):
            st.session_state[_REPLACING] = summary.name
            st.rerun()
    else:
        st.warning(
            f"Replace the plan? Only {counted(measurement.rate.reviews, 'existing review')} would "
            "count in the new order. Certificates may become out of date, and reviewers' queues "
            "change.",
            icon=":material/warning:",
        )
        with st.container(horizontal=True):
            if st.button("Replace it", type="primary", key="measure-replace-now"):
                _store(summary.name, plan)
            if st.button("Keep the old plan", key="measure-keep"):
                st.session_state.pop(_REPLACING)
                st.rerun()


def _store(dataset: str, plan: MeasurementPlan) -> None:
    plan_measurement(store(), dataset, plan)
    st.session_state.pop(_REPLACING, None)
    st.rerun()


def _draw_state(result: Measurement) -> None:
    """Draw what the stored plan has come to: who is worse, by how much, and how sure that is."""
    if result.sentence:
        st.header(plain(result.sentence), anchor=False)
    for sentence in result.comparisons[:_COMPARED]:
        st.markdown(f"- {plain(sentence)}")
    if (n_more := len(result.comparisons) - _COMPARED) > 0:
        st.caption(f"{counted(n_more, 'more comparison')} under “How it was measured”.")
    left, right = st.columns([1, 1.6], gap="medium")
    with left:
        st.markdown(f"{plain(result.line)}  \n{plain(_describe_plan(result))}")
        icon = ":material/edit_note:"
        link("review", "Review the sample", icon=icon, dataset=result.dataset, queue=SAMPLE)
    if result.rate.finite is not None:
        with right:  # the table below has its figures, and the file
            picture = corrected_table(result)
            st.markdown(f"**{plain(picture.title)}**")
            show_chart(picture, picture.title)


def _draw_rates(summary: DatasetSummary, result: Measurement | None) -> None:
    """Draw the table of the plan's rates, and that of rates by any field."""
    if result is None or result.rate.finite is None:
        if summary.annotators:
            st.header("Rates by model or another field", anchor=False)
            show_rates(seen_summary(summary), None)
        return
    of_plan, other = st.tabs(["Rates of the plan", "Other rates"], on_change="rerun", key="rates")
    with of_plan:
        table, _ = without_method(result.tables()[0])
        show_grid(table.without("alone"), table.title)
        csv_button(table)
        show_remarks(table)
    if other.open:
        with other:
            show_rates(seen_summary(summary), result)


def _draw_details(summary: DatasetSummary, result: Measurement) -> None:
    """Draw how the rate came about, and the certificate; each is worked out when it is opened."""
    how = st.expander(
        "How it was measured", icon=":material/science:", on_change="rerun", key="measure-how"
    )
    fingerprint = fingerprint_of(summary, store())
    if how.open:
        with how:
            rates, *pairs = result.tables()
            for remark in without_method(rates)[1]:
                st.markdown(plain(remark))
            show_grid(rates.without("items", "marked", "like-these", "rate"), "By reviews only")
            left, right = st.columns(2)
            with left:
                _draw_picture(_read_reliability(summary.name, result.plan, fingerprint, store()))
            with right:
                _draw_picture(history_table(result))
            for table in pairs:
                show_table(table)
    _draw_certificate(summary.name, result.plan, fingerprint)


def _draw_certificate(dataset: str, plan: MeasurementPlan, fingerprint: tuple[object, ...]) -> None:
    """Show the certificate as it is written, and say of one that somebody has if it still holds."""
    drawer = st.expander(
        "Certificate", icon=":material/verified:", on_change="rerun", key="measure-certificate"
    )
    if not drawer.open:
        return
    with drawer:
        certificate = _certify_once(dataset, plan, fingerprint, store())
        page = certificate_html(certificate)
        text = json.dumps(certificate.figures(), ensure_ascii=False)
        files = {"html": ("Page", "text/html", page), "json": ("JSON", "application/json", text)}
        with st.container(horizontal=True):
            for ending, (label, mime, content) in files.items():
                st.download_button(
                    label,
                    content.encode(),
                    file_name=f"certificate.{ending}",
                    mime=mime,
                    icon=":material/download:",
                    on_click="ignore",
                    key=f"certificate-{ending}",
                )
        show_page(page, f"The certificate of {dataset}")
        file = st.file_uploader(
            "Check a certificate",
            type="json",
            max_upload_size=_LARGEST,
            key="certificate",
        )
        if file is not None:
            reasons = stale_because(store(), dataset, parse_certificate(file.getvalue(), file.name))
            if reasons:
                st.warning(f"Out of date: {plain('; '.join(reasons))}.", icon=":material/history:")
            else:
                st.success("Still valid for this dataset as it is now.", icon=":material/verified:")


@st.cache_resource(max_entries=16, show_spinner=False)
def _certify_once(
    dataset: str, plan: MeasurementPlan, fingerprint: tuple[object, ...], _store: Store
) -> Certificate:
    return certify(_store, dataset)


def _describe_plan(measurement: Measurement) -> str:
    plan, rate = measurement.plan, measurement.rate
    reviews = f"{rate.reviews:,} of {counted(rate.items, 'item')} reviewed"
    seen = suggestions_in_words(measurement.suggestions) if rate.reviews else "no reviews yet"
    return f"{plan.annotator} · {reviews} · suggestions in review: {seen}"


def _draw_picture(table: ResultTable) -> None:
    """Draw a table's chart alone; the file has its figures."""
    st.markdown(f"**{plain(table.title)}**")
    if not table.rows:
        st.caption(table.empty)
        return
    show_chart(table, table.title)
    csv_button(table, " ".join(table.remarks))


def _index_of(options: list[Any], value: object) -> int:
    return options.index(value) if value in options else 0


@st.cache_resource(max_entries=16, show_spinner=False)
def _read_reliability(
    dataset: str, plan: MeasurementPlan, fingerprint: tuple[object, ...], _store: Store
) -> ResultTable:
    return reliability_of(_store, dataset, plan)
