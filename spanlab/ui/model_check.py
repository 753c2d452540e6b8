"""The button that tests the models of detectors, and what the last test found."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from spanlab.errors import SpanlabError
from spanlab.lm.refusals import ModelCheck
from spanlab.ui.common import plain
from spanlab.ui.messages import errors_shown
from spanlab.workflows.detection.models import check_models, last_checks
from spanlab.workflows.detection.selection import DetectorSelection

CHECKED = {True: ":material/check_circle:", False: ":material/cancel:"}


def model_check(choice: DetectorSelection) -> None:
    """Draw the button, and for each model that a choice asks what the last test found."""
    clicked = st.button(
        "Test",
        icon=":material/network_check:",
        key="test-model",
        help="One call of each kind: what the endpoint can do, what it costs and how fast it is. "
        "Later runs go by what it finds.",
    )
    checks: tuple[ModelCheck, ...] = ()
    if clicked:
        with errors_shown("Nothing was asked."), st.spinner("Asking …"):
            checks = check_models(choice)
    else:
        with suppress(SpanlabError):  # what is wrong is said where the run is started
            checks = last_checks(choice)
    for check in checks:
        _show(check, opened=clicked)


def _show(check: ModelCheck, *, opened: bool) -> None:
    with st.expander(plain(f"{check.model}, tested {check.at[:16]} UTC"), opened):
        told = ((trial, f": {trial.note}" if trial.note else "") for trial in check.trials)
        lines = (f"{CHECKED[trial.works]} {plain(trial.kind + note)}" for trial, note in told)
        st.markdown("  \n".join(lines))
        if check.works("chat"):
            st.caption(plain(check.figures))
