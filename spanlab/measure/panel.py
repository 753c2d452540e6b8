"""Measurements that several pages look at: read and measured once for all sessions."""

from __future__ import annotations

import streamlit as st

from spanlab.measure.measurement import Measurement, measure_items
from spanlab.measure.sample import MeasuredItems, check_plan, read_measured
from spanlab.schema import DatasetSummary, MeasurementPlan
from spanlab.storage.store import Store
from spanlab.ui.messages import progress


def measured_items(summary: DatasetSummary, plan: MeasurementPlan, store: Store) -> MeasuredItems:
    """Return the items of a measurement in the order of their review; see ``read_measured``."""
    return _read(summary.name, plan, fingerprint_of(summary, store), store)


def measured(summary: DatasetSummary, plan: MeasurementPlan, store: Store) -> Measurement:
    """Return what a plan has come to; see ``measure``."""
    return _measure(summary.name, plan, fingerprint_of(summary, store), store)


def fingerprint_of(summary: DatasetSummary, store: Store) -> tuple[object, ...]:
    """Return what tells that a dataset has changed, or is seen by somebody else."""
    return *summary.fingerprint, store.sight(summary.name), store.n_operations(summary.name)


@st.cache_resource(max_entries=16, show_spinner="Drawing the sample …")
def _read(
    dataset: str, plan: MeasurementPlan, fingerprint: tuple[object, ...], _store: Store
) -> MeasuredItems:
    return read_measured(_store, dataset, plan)


@st.cache_resource(max_entries=16, show_spinner=False)
def _measure(
    dataset: str, plan: MeasurementPlan, fingerprint: tuple[object, ...], _store: Store
) -> Measurement:
    with progress("Measuring", None):
        check_plan(_store, dataset, plan)
        return measure_items(_store, dataset, _read(dataset, plan, fingerprint, _store))
