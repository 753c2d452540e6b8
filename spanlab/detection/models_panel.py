"""A model's endpoint, its key and its test."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import streamlit as st

from spanlab.base.errors import SpanlabError
from spanlab.detection.models import (
    LOCAL_SERVERS,
    ModelEnvironment,
    check_models,
    find_local_servers,
    last_checks,
    list_models,
    model_environment,
    session_model,
)
from spanlab.detection.selection import DetectorSelection
from spanlab.models.choice import BASE_URL, KEY, OPENAI, ModelChoice
from spanlab.models.refusals import ModelCheck
from spanlab.models.secrets import lend, take_back
from spanlab.output.figures import counted
from spanlab.ui.common import actor, kept, plain
from spanlab.ui.messages import awaited, errors_shown, show_error

_ENDPOINT = "model.endpoint"
_TYPED = "spanlab.model.key-typed"
_LISTED = "spanlab.model.listed"  # models by endpoint
_FOUND = "spanlab.model.servers"  # those of local servers, once they were looked for


@dataclass
class _SessionKey:
    """The name under which this session's key was lent; empty for none."""

    name: str = ""

    def use(self, key: str) -> None:
        self.forget()
        self.name = lend(key) if key.strip() else ""

    def forget(self) -> None:
        take_back(self.name)
        self.name = ""


def is_set_up() -> bool:
    """Say whether this session has an endpoint or a key of its own."""
    return bool(_endpoint() or _key().name)


def environment() -> ModelEnvironment:
    """Return what the environment says of models, and what this session has to set up yet."""
    return model_environment(set_up=is_set_up())


def set_up_model(name: str) -> str | ModelChoice:
    """Return a model by its name, at this session's endpoint if it has one.

    Where the endpoint is no address, the page ends with saying so: the environment's endpoint, and
    its key, must not take its place unasked.
    """
    if not is_set_up() or not name.strip():
        return name
    try:
        return session_model(name, _endpoint(), _key().name)
    except SpanlabError as error:
        show_error(error)
        st.stop()


def ask_model_name(label: str, default: str, about: str, name: str) -> str:
    """Ask for a model: by any name, or among those that the endpoint has listed.

    Args:
        label: what the box is called.
        default: the model that an empty box stands for; empty for none.
        about: what the model is for.
        name: what the value is kept under.
    """
    key = kept(name)
    listed = st.session_state.get(_LISTED, {}).get(_endpoint(), ())
    if not listed:
        hint = "for example gpt-4o-mini"
        typed = st.text_input(label, default, placeholder=hint, help=about, **key)
        return (typed or "").strip() or default
    chosen = st.session_state.get(key["key"]) or default or listed[0]
    models = list(dict.fromkeys((chosen, *listed)))
    return st.selectbox(label, models, help=about, accept_new_options=True, **key) or default


def draw_model_problem(here: ModelEnvironment) -> None:
    """Draw what has to be done before any model can be asked, if anything has."""
    if here.problem:
        st.warning(plain(here.problem), icon=":material/key_off:")


def draw_model_setup(here: ModelEnvironment) -> None:
    """Draw where models are asked, and the boxes for an endpoint and a key of this session."""
    key = _key()
    endpoint = _endpoint() or here.endpoint
    if key.name:
        whose = "given for this session"
    elif _endpoint():
        whose = "none"
    else:
        whose = f"{KEY} is {'set' if here.has_key else 'not set'}"
    needed = here.problem is not None
    if not needed:
        by = "" if _endpoint() or endpoint == OPENAI else f" from {BASE_URL}"
        # Not a caption: code in its pale text cannot be read, and an address becomes a link there.
        at = endpoint.replace("`", "")
        st.markdown(f":small[Endpoint: `{at}`{by} · API key: {plain(whose)}]")
    # By its key it stays as it was left: once an address is typed, no more is needed.
    with st.expander(
        "Endpoint and API key for this session", needed, key="endpoint", icon=":material/key:"
    ):
        address, secret = st.columns(2, vertical_alignment="bottom")
        address.text_input(
            "Endpoint",
            placeholder=here.endpoint,
            help="An address of OpenAI's protocol, such as http://localhost:11434/v1. Keys that "
            "are set where the app runs are not sent there.",
            **kept(_ENDPOINT),
        )
        if key.name:
            secret.button("Forget the API key", icon=":material/delete:", on_click=key.forget)
        else:
            secret.text_input("API key", type="password", key=_TYPED, autocomplete="off")
        _offer_models(has_key=bool(key.name))
        st.caption(
            "The app keeps the key in memory until you close this page, and stores it nowhere."
        )


def _offer_models(*, has_key: bool) -> None:
    """Draw the buttons that take a key, and ask for the endpoint's models and local servers."""
    listed: dict[str, tuple[str, ...]] = st.session_state.setdefault(_LISTED, {})
    with st.container(horizontal=True):
        if not has_key:
            st.button(
                "Use this API key",
                icon=":material/key:",
                on_click=_use_typed_key,
                key="use-key",
                help="A run that has begun keeps it until it ends. If the app stops, give the key "
                "again and start again: what is finished is not done again.",
            )
        if st.button("List its models", icon=":material/list:", key="list-models"):
            listed.pop(_endpoint(), None)
            with errors_shown():
                work = partial(list_models, _endpoint(), _key().name)
                listed[_endpoint()] = awaited("Asking …", work)
                st.rerun()
        if st.button(
            "Find local servers",
            icon=":material/search:",
            key="find-servers",
            help=f"Asks the usual ports of {', '.join(LOCAL_SERVERS)} on the app's machine.",
        ):
            st.session_state[_FOUND] = awaited("Asking …", find_local_servers)
            listed.update(st.session_state[_FOUND])
    if _endpoint() in listed:
        st.caption(f"It answered: {counted(len(listed[_endpoint()]), 'model')}, listed above.")
    found: dict[str, tuple[str, ...]] | None = st.session_state.get(_FOUND)
    if found is not None and not found:
        st.caption(f"No server answers on the usual ports of {', '.join(LOCAL_SERVERS)}.")
    for name, address in LOCAL_SERVERS.items():
        if address in (found or {}) and address != _endpoint():
            label = f"Use {name}: {counted(len((found or {})[address]), 'model')}"
            st.button(label, key=f"use-{address}", on_click=_use_endpoint, args=(address,))


def _use_endpoint(address: str) -> None:
    st.session_state[kept(_ENDPOINT)["key"]] = address


def _use_typed_key() -> None:
    _key().use(st.session_state.pop(_TYPED, ""))


def _endpoint() -> str:
    return str(st.session_state.get(kept(_ENDPOINT)["key"]) or "").strip()


@st.cache_resource(scope="session", show_spinner=False, on_release=_SessionKey.forget)
def _key() -> _SessionKey:
    return _SessionKey()


CHECKED = {True: ":material/check_circle:", False: ":material/cancel:"}


def draw_model_check(choice: DetectorSelection) -> None:
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
        with errors_shown("Nothing was asked."):
            checks = awaited("Asking …", partial(check_models, choice, actor=actor()))
    else:
        with suppress(SpanlabError):  # what is wrong is said where the run is started
            checks = last_checks(choice)
    for check in checks:
        _show_check(check, opened=clicked)


def _show_check(check: ModelCheck, *, opened: bool) -> None:
    heading = plain(f"{check.model}, tested {check.at[:16]} UTC")
    with st.expander(heading, opened, key=f"checked-{check.model}-{check.at}"):
        trials = ((trial, f": {trial.note}" if trial.note else "") for trial in check.trials)
        lines = (f"{CHECKED[trial.works]} {plain(trial.kind + note)}" for trial, note in trials)
        st.markdown("  \n".join(lines))
        if check.works("chat"):
            st.caption(plain(check.figures))
