"""The form of an import: which files, and how to read them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from spanlab.ui.common import server_files
from spanlab.ui.messages import errors_shown
from spanlab.workflows.importing import (
    FIELDS,
    FORMATS,
    ReadOptions,
    guess_columns,
    table_columns,
)
from spanlab.workflows.sources import save_upload

_ROUND = "spanlab.import-round"  # a new number empties the form's widgets

_UPLOAD = "Upload"
_SERVER = "Path on the server"
_STRICT = "Import nothing"
_SKIP = "Leave it out"
_TABLE_FORMATS = ("csv", "parquet")
_TABLES = (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz")

_FIELDS = {
    "id": "Id",
    "lang": "Language",
    "question": "Question",
    "answer": "Answer",
    "passages": "Passages",
    "spans": "Gold spans",
}
_FORMATS = {
    "auto": "Recognise it",
    "spanlab": "spanlab JSONL",
    "mushroom": "Mu-SHROOM",
    "ragtruth": "RAGTruth",
    "claims": "Claims with labels (AVeriTeC)",
    "faithbench": "FaithBench",
    "labelstudio": "Label Studio",
    "csv": "CSV",
    "parquet": "Parquet",
}


@dataclass(frozen=True)
class Chosen:
    """The form's values: uploads or paths, and how to read them."""

    uploads: Sequence[UploadedFile]
    paths: Sequence[str]
    dataset: str
    format: str
    contexts: UploadedFile | str | None
    columns: Mapping[str, str] | None
    skip_bad: bool


def import_form() -> Chosen:
    """Draw the form and return its values."""
    uploads, paths = _files()
    stem = _stem(uploads[0].name if uploads else (paths[0] if paths else ""))
    left, right = st.columns(2)
    name = left.text_input(
        "Dataset",
        placeholder=stem or "named after the first file",
        help="A new name makes a dataset; the name of an existing one adds the items to it.",
        key=f"import-name-{_round()}",
    )
    format = right.selectbox(
        "Format",
        ["auto", *FORMATS],
        format_func=lambda name: _FORMATS.get(name, name),
        help="Told from the content unless you choose one.",
        key=f"import-format-{_round()}",
    )
    columns = _columns(uploads, paths, format)
    with st.expander("Passages and bad records", icon=":material/tune:"):
        contexts = _contexts(server=not uploads and server_files() is not None)
        bad = st.radio(
            "If a record is wrong",
            [_STRICT, _SKIP],
            captions=[
                "The error names file, line and field; the dataset stays as it was.",
                "The others are imported; the bad ones are offered with their reasons.",
            ],
            key=f"import-bad-{_round()}",
        )
    return Chosen(
        uploads=uploads,
        paths=paths,
        dataset=name.strip() or stem,
        format=format,
        contexts=contexts,
        columns=columns,
        skip_bad=bad == _SKIP,
    )


def files_on_server(named: Sequence[str]) -> list[Path]:
    """Return the files that paths and globs name.

    Raises:
        InputError: there is no such file, or it may not be named.
    """
    offered = server_files()
    return [] if offered is None else offered.named(named)


def clear_form() -> None:
    """Empty the form after its import."""
    st.session_state[_ROUND] = _round() + 1


def _stem(first: str) -> str:
    """Return the name that a dataset gets from a file, or for a glob from its directory."""
    path = Path(first)
    return (path.parent if any(mark in path.name for mark in "*?[") else path).name.partition(".")[
        0
    ]


def _files() -> tuple[Sequence[UploadedFile], Sequence[str]]:
    place = _UPLOAD
    if server_files() is not None:
        place = st.segmented_control(
            "Where the files are",
            [_UPLOAD, _SERVER],
            default=_UPLOAD,
            required=True,
            key="import-place",
            label_visibility="collapsed",
        )
    if place == _UPLOAD:
        uploads = st.file_uploader(
            "Files",
            accept_multiple_files=True,
            key=f"import-files-{_round()}",
            help="JSON Lines, JSON, CSV or parquet, packed with gzip or not. For RAGTruth, take "
            "response.jsonl and source_info.jsonl together.",
        )
        return uploads, ()
    path = st.text_input(
        "Path or glob",
        placeholder="/data/answers/*.jsonl",
        key=f"import-path-{_round()}",
        help="As the machine sees it on which the app runs. Nothing is uploaded, so this is the "
        "way for very large files.",
    )
    return (), [path.strip()] if path.strip() else []


def _contexts(*, server: bool) -> UploadedFile | str | None:
    if server:
        path = st.text_input(
            "Passages",
            placeholder="/data/contexts",
            key=f"import-context-path-{_round()}",
            help="A directory of <id>.context.txt files, or a JSONL with id and passages.",
        )
        return path.strip() or None
    return st.file_uploader(
        "Passages",
        type=["jsonl", "zip"],
        key=f"import-contexts-{_round()}",
        help="A JSONL with id and passages, or a zip of <id>.context.txt files.",
    )


def _columns(
    uploads: Sequence[UploadedFile], paths: Sequence[str], format: str
) -> Mapping[str, str] | None:
    """Draw a box per field if the first file is a table, and return the field → column mapping."""
    first = uploads[0].name if uploads else (paths[0] if paths else "")
    is_table = first.lower().endswith(_TABLES) if format == "auto" else format in _TABLE_FORMATS
    if not first or not is_table:
        return None
    with errors_shown():
        return _mapping(_header(uploads[0] if uploads else first, format))
    return None


def _header(table: UploadedFile | str, format: str) -> Sequence[str]:
    options = ReadOptions(format=format)
    if isinstance(table, str):
        return table_columns(files_on_server([table])[0], options)
    with tempfile.TemporaryDirectory(prefix="spanlab-import-") as folder:
        path = save_upload(table.name, table, Path(folder))
        table.seek(0)
        return table_columns(path, replace(options, name=table.name))


def _mapping(there: Sequence[str]) -> Mapping[str, str]:
    st.markdown("**Columns**", help="Which column of the table holds what.")
    guesses = guess_columns(there)
    chosen: dict[str, str] = {}
    boxes = st.columns(3)
    for index, field in enumerate(FIELDS):
        unsaid = f"{guesses[field]} (by its name)" if field in guesses else "—"
        column = boxes[index % 3].selectbox(
            _FIELDS.get(field, field), [unsaid, *there], key=f"import-column-{field}-{_round()}"
        )
        if column != unsaid:
            chosen[field] = column
    return chosen


def _round() -> int:
    return int(st.session_state.get(_ROUND, 0))
