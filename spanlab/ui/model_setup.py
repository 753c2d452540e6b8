"""Which endpoint models are asked at, and its key: for this session alone, never shown again."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from spanlab.errors import SpanlabError
from spanlab.lm.choice import ModelChoice
from spanlab.lm.secrets import lend, take_back
from spanlab.ui.common import kept, plain
from spanlab.ui.messages import show_error
from spanlab.workflows.detection.models import ModelEnvironment, session_model

_ENDPOINT = "model.endpoint"
_TYPED = "spanlab.model.key-typed"
_ABOUT = (
    "The key stays in the memory of the app's process until you close this page or forget it. It "
    "is not stored, and not shown again. A run that has begun keeps it until it ends. If the app "
    "stops, give the key again and start again: what is finished is not done again."
)


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


def model_problem(here: ModelEnvironment) -> None:
    """Draw what has to be done before any model can be asked, if anything has."""
    if here.problem:
        or_here = " Or give an endpoint or a key for this session below."
        st.warning(plain(here.problem + or_here), icon=":material/key_off:")


def model_setup(here: ModelEnvironment) -> None:
    """Draw where models are asked, and the boxes for an endpoint and a key of this session."""
    key = _key()
    endpoint = _endpoint() or here.endpoint
    if key.name:
        whose = "given for this session"
    elif _endpoint():
        whose = "none"
    else:
        whose = f"{here.key_name} is {'set' if here.has_key else 'not set'}"
    # Not a caption: code in its pale text cannot be read well, and an address becomes a link there.
    st.markdown(f":small[Endpoint: `{endpoint.replace('`', '')}` · API key: {plain(whose)}]")
    needed = here.problem is not None
    with st.expander("Endpoint and API key for this session", needed, icon=":material/key:"):
        st.text_input(
            "Endpoint",
            placeholder=here.endpoint,
            help="An address of OpenAI's protocol, such as http://localhost:11434/v1. Keys that "
            "are set where the app runs are not sent there.",
            **kept(_ENDPOINT),
        )
        if key.name:
            st.button("Forget the API key", icon=":material/delete:", on_click=key.forget)
        else:
            st.text_input("API key", type="password", key=_TYPED, autocomplete="off")
            st.button("Use this API key", icon=":material/key:", on_click=_use, key="use-key")
        st.caption(_ABOUT)


def _use() -> None:
    _key().use(st.session_state.pop(_TYPED, ""))


def _endpoint() -> str:
    return str(st.session_state.get(kept(_ENDPOINT)["key"]) or "").strip()


@st.cache_resource(scope="session", show_spinner=False, on_release=_SessionKey.forget)
def _key() -> _SessionKey:
    return _SessionKey()
