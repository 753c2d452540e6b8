"""Traces by address and key, in the import form."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from uuid import uuid4

import streamlit as st
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

from spanlab.data.pulling import KEYS, Program, TraceSource, pull_traces
from spanlab.output.figures import counted
from spanlab.schema import Actor
from spanlab.ui.common import actor
from spanlab.ui.messages import awaited, errors_shown


def ask_traces(key: str) -> list[UploadedFile]:
    """Draw what fetches traces from Langfuse or Phoenix; returns them once they are fetched.

    Args:
        key: what the widgets' keys begin with; another one is an empty form.
    """
    programs: list[Program] = ["langfuse", "phoenix"]
    program: Program = st.radio(
        "From", programs, format_func=str.capitalize, horizontal=True, key=f"{key}-of"
    )
    usual = "https://cloud.langfuse.com" if program == "langfuse" else "http://localhost:6006"
    project, fetched = "default", f"{key}-fetched"
    with st.form(f"{key}-{program}", border=False):  # what is typed comes with the click
        left, right = st.columns([3, 1])
        url = left.text_input("Address", placeholder=usual, key=f"{key}-url").strip() or usual
        limit = right.number_input("Traces at most", 1, 10_000, 100, key=f"{key}-limit")
        columns = st.columns(2)
        typed = {
            name: column.text_input(
                f"{name.split('_')[1].capitalize()} key".replace("Api", "API"),
                type="password",
                placeholder="as set on the server" if os.environ.get(name) else "",
                key=f"{key}-{name}",
            )
            for name, column in zip(KEYS[program], columns, strict=False)
        }
        if program == "phoenix":
            typed_project = columns[1].text_input("Project", placeholder=project, key=f"{key}-p")
            project = typed_project or project
        is_pressed = st.form_submit_button(
            "Fetch traces", icon=":material/cloud_download:", key=f"{key}-fetch"
        )
    if is_pressed:
        source = TraceSource(program, url, project.strip(), int(limit))
        keys = {name: value or os.environ.get(name, "") for name, value in typed.items()}
        st.session_state.pop(fetched, None)
        with errors_shown("Nothing was fetched."):
            number, lines = awaited("Fetching …", partial(_fetch, source, keys, actor()))
            content = (f"{program}.jsonl", "application/x-ndjson", lines)
            record = UploadedFileRec(str(uuid4()), *content)
            st.session_state[fetched] = (UploadedFile(record, FileURLs()), number)
    if fetched not in st.session_state:
        return []
    file, number = st.session_state[fetched]
    st.caption(f"{counted(number, 'trace')} fetched.")
    return [file]


def _fetch(source: TraceSource, keys: Mapping[str, str], actor: Actor) -> tuple[int, bytes]:
    """Return how many traces were fetched, and their lines."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "traces.jsonl")
        return pull_traces(source, target, keys, actor=actor), target.read_bytes()
