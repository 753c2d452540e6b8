"""The form of an import: which files, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from spanlab.datasets.columns import FIELDS
from spanlab.datasets.formats.tabular import RecordLayout
from spanlab.datasets.readers import formats
from spanlab.errors import SpanlabError
from spanlab.ui.common import server_files
from spanlab.ui.views.import_files import ImportChoice, layout_of, show_samples

_ROUND = "spanlab.import-round"  # a new number empties the form's widgets


_UPLOAD = "Upload"


_SERVER = "Path on the server"


_STRICT = "Import nothing"


_SKIP = "Leave it out"


_ITEMS = "Items"


_PREDICTIONS = "Predictions"


_KINDS = {
    _ITEMS: "Answers to review, with or without labels.",
    _PREDICTIONS: "What a system marked in items that a dataset has, joined by their id.",
}


_BESIDE = 3  # boxes in a row


_TURNS = {"last": "The last answer", "all": "Each answer"}


_FIELDS = {
    "id": "Id",
    "lang": "Language",
    "question": "Question",
    "answer": "Answer",
    "passages": "Passages",
    "spans": "Gold spans",
    "messages": "Chat messages",
}


FORMAT_NAMES = {
    "auto": "Detect automatically",
    "spanlab": "spanlab JSONL",
    "mushroom": "Mu-SHROOM",
    "ragtruth": "RAGTruth",
    "claims": "Claims with labels (AVeriTeC)",
    "averitec": "AVeriTeC predictions",
    "faithbench": "FaithBench",
    "labelstudio": "Label Studio",
    "graphrag": "GraphRAG's output, with queries.jsonl",
    "summaries": "Hierarchical summaries (BooookScore)",
    "traces": "OpenTelemetry traces",
    "csv": "CSV",
    "parquet": "Parquet",
    "arrow": "Arrow (Hugging Face datasets)",
    "json": "JSON or JSON Lines of other fields",
}


def import_form(datasets: Sequence[str]) -> ImportChoice:
    """Draw the form and return its values.

    Args:
        datasets: the names of those there are, for which predictions may be imported.
    """
    kind = _ITEMS
    if datasets:
        kind = st.radio(
            "Files contain",
            list(_KINDS),
            captions=list(_KINDS.values()),
            horizontal=True,
            key=f"import-kind-{_round()}",
        )
    uploads, paths = _files()
    if kind == _PREDICTIONS:
        return _predictions(uploads, paths, datasets)
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
        ["auto", *formats()],
        format_func=lambda name: FORMAT_NAMES.get(name, name),
        help="Recognised by the content unless you choose one.",
        key=f"import-format-{_round()}",
    )
    chosen = ImportChoice(uploads, paths, name.strip() or stem, format)
    chosen = _with_columns(chosen) if chosen.is_any else chosen
    with st.expander("Passages and invalid records", icon=":material/tune:"):
        contexts = _contexts(server=not uploads and server_files() is not None)
        bad = st.radio(
            "If a record is invalid",
            [_STRICT, _SKIP],
            captions=[
                "The error names file, line and field; the dataset stays as it was.",
                "The others are imported; the invalid ones can be downloaded with their reasons.",
            ],
            key=f"import-bad-{_round()}",
        )
    return replace(chosen, contexts=contexts, skip_bad=bad == _SKIP)


def _predictions(
    uploads: Sequence[UploadedFile], paths: Sequence[str], datasets: Sequence[str]
) -> ImportChoice:
    left, right = st.columns(2)
    dataset = left.selectbox("Dataset", datasets, key=f"import-into-{_round()}")
    stem = _stem(uploads[0].name if uploads else (paths[0] if paths else ""))
    system = right.text_input(
        "System name",
        placeholder=stem or "for example my-system",
        help="The annotator that the predictions become. Earlier predictions under this name are "
        "replaced.",
        key=f"import-system-{_round()}",
    )
    return ImportChoice(uploads, paths, dataset or "", system=system.strip() or stem)


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
            help="JSON Lines, JSON, CSV, parquet or Arrow, packed with gzip or not. For RAGTruth, "
            "take response.jsonl and source_info.jsonl together.",
        )
        return uploads, ()
    path = st.text_input(
        "Path, glob or folder",
        placeholder="/data/answers/*.jsonl",
        key=f"import-path-{_round()}",
        help="As the machine sees it on which the app runs. Nothing is uploaded, so this is the "
        "way for very large files. A folder is read as Hugging Face's datasets saves one: its "
        "Arrow or parquet files.",
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


def _with_columns(chosen: ImportChoice) -> ImportChoice:
    """Draw which records are read and what their columns are, if the first file has columns."""
    layout = _layout(chosen)
    if len(layout.lists) > 1:
        records = st.selectbox(
            "Records",
            layout.lists,
            format_func=lambda path: "the file as one record" if path == "." else path,
            help="The file is one JSON object. Its list that looks most like records is read, or "
            "the one that you choose.",
            key=f"import-records-{_round()}",
        )
        chosen = replace(chosen, records=records)
        layout = _layout(chosen)
    if not layout.columns:
        return chosen
    chosen = replace(chosen, columns=_mapping(layout))
    if "messages" in {**layout.guesses, **(chosen.columns or {})}:
        turns = st.radio(
            "Items of a chat",
            list(_TURNS),
            format_func=_TURNS.__getitem__,
            horizontal=True,
            help="What was said before an answer is its question, what tools found its passages.",
            key=f"import-turns-{_round()}",
        )
        chosen = replace(chosen, turns=turns)
    return chosen


def _layout(chosen: ImportChoice) -> RecordLayout:
    with suppress(SpanlabError):  # which the preview says
        return layout_of(chosen)
    return RecordLayout()


def lacks_answer(chosen: ImportChoice) -> bool:
    """Say whether the first file has columns, and nobody knows yet which is the answer."""
    layout = _layout(chosen)
    known = {*layout.guesses, *(chosen.columns or {})}
    return bool(layout.columns) and not known & {"answer", "messages"}


def _mapping(layout: RecordLayout) -> Mapping[str, str] | None:
    show_samples(layout.samples)
    st.markdown(
        "**Columns**",
        help="Which column of the table, or field of the JSON, holds what. A dot leads inside: "
        "output.text, or documents.content for all of a list.",
    )
    guesses = layout.guesses
    chosen: dict[str, str] = {}
    boxes = st.columns(_BESIDE)
    for index, field in enumerate(FIELDS):
        unsaid = f"{guesses[field]} (by its name)" if field in guesses else "—"
        column = boxes[index % _BESIDE].selectbox(
            _FIELDS.get(field, field),
            [unsaid, *layout.columns],
            key=f"import-column-{field}-{_round()}",
        )
        if column != unsaid:
            chosen[field] = column
    return chosen or None


def _round() -> int:
    return int(st.session_state.get(_ROUND, 0))
