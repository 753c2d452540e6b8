"""Widgets made from option models: one for each option that may be set on a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from pydantic import BaseModel, JsonValue

from spanlab import doors
from spanlab.base.errors import UsageError
from spanlab.base.options import Option, options_in
from spanlab.detection.entry import options_of
from spanlab.detection.models import ask_servers, server_names
from spanlab.detection.models_panel import CHECKED
from spanlab.detection.specifications import model_fields
from spanlab.tools.mcp_servers import ServerState
from spanlab.ui.common import WidgetKey, kept, plain, server_files
from spanlab.ui.messages import awaited, errors_shown

_ALL = "all models"
_SWITCH = {True: "on", False: "off"}


def ask(
    model: type[BaseModel], page: str, /, *keywords: str, **changes: Mapping[str, Any]
) -> dict[str, JsonValue]:
    """Draw the widgets of some options of a model, below each other.

    Args:
        model: whose options.
        page: the name that the widgets' keys begin with; the option's keyword follows.
        keywords: which options, in this order.
        **changes: by keyword, what is different here of an option, such as its ``placeholder``.

    Returns:
        What is filled in, by keyword.
    """
    options = {option.keyword: option for option in options_in(model)}
    return ask_options(
        (replace(options[keyword], **changes.get(keyword, {})) for keyword in keywords), page
    )


def ask_options(options: Iterable[Option], page: str) -> dict[str, JsonValue]:
    """Draw the widgets of options as ``ask`` does."""
    return {
        option.keyword: _WIDGETS[option.kind](option, kept(widget_name(page, option.keyword)))
        for option in options
    }


def widget_name(page: str, keyword: str) -> str:
    """Return what the widget of an option is called on a page."""
    return f"{page}.{keyword.replace('_', '-')}"


def options_form(detector: str, page: str) -> dict[str, JsonValue]:
    """Ask for a detector's options.

    Args:
        detector: its name.
        page: the name that the page's widgets begin with.

    Returns:
        Those that differ from their defaults, each as "detector.name".
    """
    fields = options_of(detector)
    if not fields:
        return {}
    heading = f"Options of {plain(detector)}"
    with st.expander(heading, key=f"{page}-options-{detector}", icon=":material/tune:"):
        values = {
            field.name: _WIDGETS[field.kind](field, kept(f"{page}.{detector}.{field.name}"))
            for field in fields
        }
    return {
        f"{detector}.{field.name}": values[field.name]
        for field in fields
        if values[field.name] != field.default
    }


def model_options_form(detectors: Sequence[str], page: str) -> dict[str, JsonValue]:
    """Ask how the models of detectors are asked: all of them, or those of one detector or role.

    Args:
        detectors: names of detectors that ask models.
        page: the name that the page's widgets begin with.

    Returns:
        What was chosen, also while another detector or role is shown, by "name" or "owner.name".
    """
    fields = model_fields(detectors)
    with st.expander("Model options", key=f"{page}-model-options", icon=":material/tune:"):
        owner = st.selectbox(
            "Applies to",
            list(fields),
            format_func=lambda name: name or _ALL,
            help="A choice for one detector or role takes precedence over that for all models.",
            **kept(f"{page}.asked.for"),
        )
        columns = st.columns(2)
        for number, field in enumerate(fields[owner or ""]):
            with columns[number % 2]:
                _WIDGETS[field.kind](field, kept(f"{page}.asked.{owner}.{field.name}"))
        values: dict[str, JsonValue] = {
            f"{owner_name}.{field.name}".strip("."): value
            for owner_name, options in fields.items()
            for field in options
            if (value := _kept_value(f"{page}.asked.{owner_name}.{field.name}")) not in {None, ""}
            and value != field.default
        }
        shown = ", ".join(f"{name}={value}" for name, value in values.items())
        st.caption(plain(shown) if shown else "Every option is the detectors' default.")
    return values


def _kept_value(name: str) -> JsonValue:
    value: JsonValue = st.session_state.get(kept(name)["key"])
    return value.strip() if isinstance(value, str) else value


def _ask_flag(option: Option, key: WidgetKey) -> JsonValue:
    if option.titles is None:
        return st.checkbox(option.label, bool(option.default), help=option.about, **key)
    titles = option.titles
    return st.radio(
        option.label,
        [False, True],
        int(bool(option.default)),
        format_func=lambda value: titles[str(value).lower()],
        horizontal=True,
        help=option.about,
        **key,
    )


def _ask_choice(option: Option, key: WidgetKey) -> JsonValue:
    choices, titles = list(option.choices), option.titles or {}
    index = choices.index(option.default) if option.default in choices else None
    choice: JsonValue = st.selectbox(
        option.label,
        choices,
        index,
        format_func=lambda value: (
            _SWITCH[value] if isinstance(value, bool) else titles.get(str(value), str(value))
        ),
        placeholder=option.placeholder,
        help=option.about,
        **key,
    )
    return choice


def _ask_number(option: Option, key: WidgetKey) -> JsonValue:
    is_integer = option.kind == "integer"
    read: Callable[[float], float] = int if is_integer else float
    low, high, default = (
        read(value) if isinstance(value, int | float) else None
        for value in (option.low, option.high, option.default)
    )
    return st.number_input(
        option.label,
        low,
        high,
        default,
        step=1 if is_integer else 0.05 if (high or 1) <= 2 else 10.0,
        placeholder=option.placeholder,
        help=option.about,
        **key,
    )


def _ask_text(option: Option, key: WidgetKey) -> JsonValue:
    default = None if option.default is None else str(option.default)
    hint = None if option.placeholder == "default" else option.placeholder
    text = st.text_input(option.label, default, placeholder=hint, help=option.about, **key)
    return option.default if text in {None, "", default} else text.strip()


def _ask_list(option: Option, key: WidgetKey) -> JsonValue:
    titles = option.titles or {}
    return st.multiselect(
        option.label,
        option.choices,
        format_func=lambda value: titles.get(str(value), str(value)),
        placeholder=option.placeholder,
        help=option.about,
        **key,
    )


def _ask_path(option: Option, key: WidgetKey) -> JsonValue:
    """Ask for a file or folder on the server, among those that people may name there."""
    text, files = _ask_text(option, key), server_files()
    named = (offer.load()() for offer in doors.offers("path-names"))
    if text == option.default or any(str(text) in names for names in named):
        return text
    with errors_shown():
        if files is None:
            raise UsageError(
                "other machines reach this app, so files of its machine cannot be named here "
                "(SPANLAB_FILES_ROOT says which can)"
            )
        return str(files.path(str(text)))
    return option.default


def _ask_servers(field: Option, key: WidgetKey) -> JsonValue:
    """Ask which tool servers may be asked, and show what those that were tested offer."""
    with errors_shown():
        names = server_names()
        st.session_state[key["key"]] = [
            name for name in st.session_state.get(key["key"], ()) if name in names
        ]
        chosen_names = st.multiselect(
            field.label,
            names,
            placeholder="none",
            help=f"{field.about} Yours are named in tools.json.",
            **key,
        )
        if chosen_names and st.button(
            "Test the tool servers",
            icon=":material/network_check:",
            key=f"{key['key']}.test",
            help="Starts each of them and lists the tools that may be called.",
        ):
            for state in awaited("Asking …", partial(ask_servers, chosen_names)):
                _show_server(state)
        return ",".join(chosen_names)
    return field.default


def _show_server(state: ServerState) -> None:
    works = state.problem is None
    problem = state.problem or "answers"
    lines = [
        f"{CHECKED[works]} {plain(f'{state.name}: {problem}')}",
        *(f"- {plain(f'{tool.name}: {tool.description}')}" for tool in state.tools),
    ]
    st.markdown("\n".join(lines))


_WIDGETS: dict[str, Callable[[Option, WidgetKey], JsonValue]] = {
    "flag": _ask_flag,
    "choice": _ask_choice,
    "number": _ask_number,
    "integer": _ask_number,
    "path": _ask_path,
    "servers": _ask_servers,
    "list": _ask_list,
    "text": _ask_text,
}
