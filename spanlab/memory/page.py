"""The Memory page: the evidence that is kept under entities, and what people decide about it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from functools import partial

import streamlit as st

from spanlab.memory.store import MemoryStore
from spanlab.memory.workflow import (
    entities_like,
    export_lines,
    import_lines,
    open_memory,
    scopes,
)
from spanlab.output.figures import counted
from spanlab.schema import Permission
from spanlab.schema.memory import MemoryEntry, StoredEntry
from spanlab.ui.common import actor, kept, page_buttons, page_link, plain, title
from spanlab.ui.messages import errors_shown, show_news, tell_after_rerun

_PER_PAGE = 10
_SEEN = "spanlab.memory.seen"  # number of the last entry of each page before this one
_NAME = "spanlab.memory.name"


def page() -> None:
    """Draw the page."""
    place = title("Memory")
    show_news()
    with errors_shown():
        sizes = dict(scopes(_memory()))
        if not sizes:
            st.info(
                "No evidence is stored yet. Detectors with a memory, such as `mermaid`, store here "
                "what they find about the entities of claims; later claims need no new search.",
                icon=":material/psychology:",
            )
            page_link("detect", "Go to Detect", icon=":material/manage_search:")
            with place:
                _import("")
            return
        with st.container(horizontal=True, vertical_alignment="bottom"):
            scope = _ask_scope(sizes)
            name = st.text_input(
                "Search entities",
                key=_NAME,
                placeholder="such as Eiffel Tower",
                on_change=_forget_page,
                icon=":material/search:",
            )
        with place:
            _import(scope)
            _export(scope)
            _clear(scope, sizes[scope])
        _draw_entries(scope, name.strip())


def _ask_scope(sizes: Mapping[str, int]) -> str:
    def format_scope(name: str) -> str:
        return f"{name or 'Shared memory'} ({counted(sizes[name], 'passage')})"

    if len(sizes) == 1:
        (scope,) = sizes
        st.caption(plain(f"Scope: {format_scope(scope)}"))
        return scope
    return str(
        st.selectbox(
            "Scope",
            list(sizes),
            format_func=format_scope,
            on_change=_forget_page,
            help="Runs with the same option memory_scope share one memory.",
            **kept("memory.scope"),
        )
    )


def _draw_entries(scope: str, name: str) -> None:
    """Draw a page of entries: all, or those of the entity that is meant by a name."""
    entity = None
    if name:
        matching_entities = entities_like(_memory(), scope, name)
        if not matching_entities:
            st.info(f"No evidence is stored under “{plain(name)}”.", icon=":material/search_off:")
            return
        entity = matching_entities[0]
        if len(matching_entities) > 1:
            entity = st.selectbox(
                "Entity",
                matching_entities,
                on_change=_forget_page,
                key=f"memory-entity-{scope}-{name}",
            )
    page_ends: list[int] = st.session_state.setdefault(_SEEN, [])
    place = {"before": page_ends[-1]} if page_ends else {}
    entries = _memory().page(scope, entity, limit=_PER_PAGE + 1, **place)
    for stored in entries[:_PER_PAGE]:
        _draw_entry(stored)
    is_last = len(entries) <= _PER_PAGE
    page_buttons(
        _turn_page if page_ends else None,
        None if is_last else partial(_turn_page, entries[_PER_PAGE - 1].id),
        key="memory",
    )


def _turn_page(entry_id: int | None = None) -> None:
    """Turn to what is older than an entry; for None back to the page before."""
    page_ends: list[int] = st.session_state.setdefault(_SEEN, [])
    if entry_id is None:
        del page_ends[-1:]  # of two clicks in quick succession the second may find none
    else:
        page_ends.append(entry_id)


def _draw_entry(stored: StoredEntry) -> None:
    entry = stored.entry
    acts = (
        ("Unpin" if stored.pinned else "Pin", ":material/keep:", _pin),
        ("Unblock" if stored.blocked else "Block", ":material/block:", _block),
        ("Delete", ":material/delete:", _delete),
    )
    with st.container(border=True, gap="small"):
        st.markdown(plain(entry.text))
        st.markdown(f":small[{plain(_describe_source(entry))}]")  # a caption is too pale for links
        with st.container(horizontal=True, vertical_alignment="center"):
            for entity in entry.entities:
                st.badge(plain(entity), color="gray")
            if stored.pinned:
                st.badge("Pinned", icon=":material/keep:", color="green")
            if stored.blocked:
                st.badge("Blocked", icon=":material/block:", color="red")
            if entry.expires is not None and entry.expires < time.time():
                st.badge("Expired", icon=":material/hourglass_disabled:", color="orange")
            for label, icon, act in acts:
                st.button(
                    label,
                    icon=icon,
                    key=f"{act.__name__}-{stored.id}",
                    type="tertiary",
                    help=_HELP.get(label),
                    on_click=act,
                    args=(stored,),
                )


_HELP = {
    "Pin": "Recalled before other evidence on its entities.",
    "Block": "Never recalled, even if it is found again.",
    "Delete": "Stored again if it is found again; use Block to prevent that.",
}


def _describe_source(entry: MemoryEntry) -> str:
    """Say where an entry is from, how it was found, and when it expires."""
    source = ", ".join(filter(None, (entry.title, entry.url, entry.date))) or "Unknown source"
    origin = f"Found by {entry.tool}" if entry.tool else "Added by hand"
    for_query = f" for “{entry.query}”" if entry.query else ""
    model = f" (model {entry.model})" if entry.model else ""
    expiry = f", expires on {_day(entry.expires)}" if entry.expires is not None else ""
    return f"{source}. {origin}{for_query}{model} on {_day(entry.at)}{expiry}."


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%-d %B %Y}"


def _pin(stored: StoredEntry) -> None:
    with errors_shown():
        _memory().pin(stored.id, pinned=not stored.pinned)


def _block(stored: StoredEntry) -> None:
    with errors_shown():
        _memory().block(stored.id, blocked=not stored.blocked)


def _delete(stored: StoredEntry) -> None:
    with errors_shown():
        _memory().delete(stored.id)


def _import(scope: str) -> None:
    with st.popover("Import…", icon=":material/upload_file:", width="content"):
        upload = st.file_uploader("JSONL file exported from a memory", type="jsonl")
        into = st.text_input("Scope", scope, help="Leave empty for the shared memory.").strip()
        if st.button("Import", type="primary", disabled=upload is None) and upload is not None:
            with errors_shown("The lines before it are imported."):
                number = import_lines(_memory(), into, upload, upload.name)
                tell_after_rerun(f"{counted(number, 'passage')} imported.")
                st.rerun()


def _export(scope: str) -> None:
    st.download_button(
        "Export",
        lambda: b"".join(export_lines(_memory(), scope)),
        file_name=f"memory{'-' if scope else ''}{scope}.jsonl",
        mime="application/jsonl",
        icon=":material/download:",
        on_click="ignore",
    )


def _clear(scope: str, size: int) -> None:
    with st.popover("Clear…", icon=":material/delete:", width="content"):
        whose = f"scope {scope}" if scope else "shared memory"
        st.warning(
            f"Deletes the {counted(size, 'passage')} in the {plain(whose)} and the tools' answers "
            "that are stored there. This cannot be undone.",
            icon=":material/warning:",
        )
        if st.button("Delete all", type="primary"):
            with errors_shown():
                number = _memory().clear(scope)
                tell_after_rerun(f"{counted(number, 'passage')} deleted.")
                _forget_page()
                st.rerun()


def _forget_page() -> None:
    st.session_state.pop(_SEEN, None)


@st.cache_resource(show_spinner="Opening the memory …", on_release=MemoryStore.close)
def _open_memory() -> MemoryStore:
    return open_memory(actor())


def _memory() -> MemoryStore:
    actor().require(Permission.ADMINISTER)
    return _open_memory()
