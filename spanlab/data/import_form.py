"""The form of an import: which files, and how to read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from spanlab.base.errors import SpanlabError, UsageError
from spanlab.data.import_files_panel import ImportChoice, layout_of, show_samples
from spanlab.data.importing import ImportOptions
from spanlab.detection.options_form import ask
from spanlab.formats.columns import BATCH_ID, FIELDS
from spanlab.formats.known.tabular import RecordLayout
from spanlab.formats.read_options import checked_recipe
from spanlab.formats.registry import formats
from spanlab.formats.threads import speakers_in
from spanlab.schema import AnnotatorKind
from spanlab.ui.common import plain, server_files
from spanlab.ui.messages import errors_shown

_ROUND = "spanlab.import-round"  # a new number empties the form's widgets
_UPLOAD = "Upload"
_SERVER = "Path on the server"
_ITEMS = "Items"
_PREDICTIONS = "Predictions"
_ANNOTATIONS = "Annotations"
_KINDS = {
    _ITEMS: "Answers to review, with or without labels.",
    _PREDICTIONS: "A system's spans, matched to existing items by ID.",
    _ANNOTATIONS: "What people and detectors marked in items that a dataset has, by their names.",
}
_BESIDE = 3  # boxes in a row
_RECIPE = ".toml"
_UNSAID = {name: field.default for name, field in ImportOptions.model_fields.items()}
_FIELDS = {
    "id": "Id",
    "lang": "Language",
    "question": "Question",
    "answer": "Answer",
    "passages": "Passages",
    "spans": "Gold spans",
    "messages": "Chat messages",
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
    uploads, paths = _ask_files()
    if kind == _PREDICTIONS:
        return _ask_predictions(uploads, paths, datasets)
    if kind == _ANNOTATIONS:
        into = st.selectbox("Dataset", datasets, key=f"import-into-{_round()}")
        return ImportChoice(uploads, paths, into or "", ImportOptions(), joins=True)
    recipes = [upload for upload in uploads if upload.name.endswith(_RECIPE)]
    uploads = [upload for upload in uploads if upload not in recipes]
    stem = _stem(uploads[0].name if uploads else (paths[0] if paths else ""))
    left, right = st.columns(2)
    name = left.text_input(
        "Dataset",
        placeholder=stem or "named after the first file",
        help="A new name makes a dataset; the name of an existing one adds the items to it.",
        key=f"import-name-{_round()}",
    )
    with right:
        reading = _ask("format", format={"kind": "choice", "choices": ("auto", *formats())})
    with left:
        reading |= _ask("model")
    options = None
    with right:
        reading |= _ask("lang")
        with errors_shown():
            options = ImportOptions.checked(_by_recipe(recipes, reading))
    if options is None:
        return ImportChoice((), (), name, ImportOptions())
    choice = ImportChoice(uploads, paths, name.strip() or stem, options)
    if recipes:
        st.info(plain(f"Read by the recipe {recipes[0].name}."), icon=":material/menu_book:")
    elif choice.is_any:
        choice = _with_columns(choice)
    beside = ["contexts"]
    if choice.is_any and BATCH_ID in _read_layout(choice).columns:
        beside.append("requests")
    on_server = not uploads and server_files() is not None
    with st.expander("Passages and invalid records", icon=":material/tune:"):
        reading = _ask(*beside, **{name: {"kind": "text"} for name in beside}) if on_server else {}
        uploaded = {} if on_server else {name: _ask_beside(name) for name in beside}
        invalid = _ask("skip_bad")
    named = {name: Path(str(path)) if path else None for name, path in reading.items()}
    return replace(choice.with_options(**named, **invalid), beside=uploaded)


def _by_recipe(recipes: Sequence[UploadedFile], reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return how files are read by the recipe that was dropped with them, where there is one.

    Raises:
        InputError: it is wrong.
        UsageError: there are several.
    """
    if len(recipes) > 1:
        raise UsageError("files are read by one recipe: take the others out")
    says = [checked_recipe(recipe.getvalue(), recipe.name) for recipe in recipes]
    chosen = {name: value for name, value in reading.items() if value != _UNSAID.get(name)}
    return {**(says[0] if says else {}), **chosen}


def _ask_predictions(
    uploads: Sequence[UploadedFile], paths: Sequence[str], datasets: Sequence[str]
) -> ImportChoice:
    left, right = st.columns(2)
    dataset = left.selectbox("Dataset", datasets, key=f"import-into-{_round()}")
    stem = _stem(uploads[0].name if uploads else (paths[0] if paths else ""))
    with right:
        named = {"placeholder": stem} if stem else {}
        system = _ask("system", system=named)["system"]
    kind = st.segmented_control(
        "The system is a",
        (AnnotatorKind.DETECTOR, AnnotatorKind.PERSON),
        default=AnnotatorKind.DETECTOR,
        required=True,
        key=f"import-annotator-kind-{_round()}",
    )
    options = ImportOptions(system=str(system or stem))
    return ImportChoice(uploads, paths, dataset or "", options, kind=AnnotatorKind(kind))


def _ask(*keywords: str, **changes: Mapping[str, Any]) -> dict[str, Any]:
    return ask(ImportOptions, f"import-{_round()}", *keywords, **changes)


def clear_form() -> None:
    """Empty the form after its import."""
    st.session_state[_ROUND] = _round() + 1


def _stem(file_name: str) -> str:
    """Return the name that a dataset gets from a file, or for a glob from its directory."""
    path = Path(file_name)
    return (path.parent if any(mark in path.name for mark in "*?[") else path).name.partition(".")[
        0
    ]


def _ask_files() -> tuple[Sequence[UploadedFile], Sequence[str]]:
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
            "take response.jsonl and source_info.jsonl together. A recipe (.toml), which the "
            "preview offers, says how the files beside it are read.",
        )
        return uploads, ()
    path = st.text_input(
        "Path, glob or folder",
        placeholder="/data/answers/*.jsonl",
        key=f"import-path-{_round()}",
        help="The path on the server. Nothing is uploaded, so this is the "
        "way for very large files. A folder is read as Hugging Face's datasets saves one: its "
        "Arrow or parquet files.",
    )
    return (), [path.strip()] if path.strip() else []


_BESIDE_HELP = {
    "contexts": "A JSONL with id and passages, or a zip of <id>.context.txt files.",
    "requests": "The JSONL that the batch was made from: it has the questions.",
}


def _ask_beside(name: str) -> UploadedFile | None:
    title = ImportOptions.model_fields[name].title or name
    kinds = ["jsonl", "zip"] if name == "contexts" else ["jsonl"]
    key = f"import-{name}-{_round()}"
    return st.file_uploader(title, type=kinds, key=key, help=_BESIDE_HELP[name])


def _with_columns(choice: ImportChoice) -> ImportChoice:
    """Draw which records are read and what their columns are, if the first file has columns."""
    layout = _read_layout(choice)
    if speakers_in(layout.samples).names:
        choice = choice.with_options(**_ask("speaker"))
        layout = _read_layout(choice)
    if len(layout.lists) > 1:
        records_option = {"kind": "choice", "choices": layout.lists, "default": layout.lists[0]}
        choice = choice.with_options(**_ask("records", records=records_option))
        layout = _read_layout(choice)
    if not layout.columns:
        return choice
    choice = choice.with_options(columns=_ask_columns(layout))
    if "messages" in {**layout.guesses, **(choice.options.columns or {})}:
        choice = choice.with_options(**_ask("turns"))
    return choice


def _read_layout(choice: ImportChoice) -> RecordLayout:
    with suppress(SpanlabError):  # which the preview says
        return layout_of(choice)
    return RecordLayout()


def lacks_answer(choice: ImportChoice) -> bool:
    """Say whether the first file has columns, and nobody knows yet which is the answer."""
    layout = _read_layout(choice)
    known_fields = {*layout.guesses, *(choice.options.columns or {})}
    return bool(layout.columns) and not known_fields & {"answer", "messages"}


def _ask_columns(layout: RecordLayout) -> Mapping[str, str] | None:
    show_samples(layout.samples)
    st.markdown(
        "**Columns**",
        help="Which column of the table, or field of the JSON, holds what. Use dots for "
        "nested fields: output.text, or documents.content for all of a list.",
    )
    guesses = layout.guesses
    columns: dict[str, str] = {}
    boxes = st.columns(_BESIDE)
    for index, field in enumerate(FIELDS):
        unsaid = f"{guesses[field]} (by its name)" if field in guesses else "—"
        column = boxes[index % _BESIDE].selectbox(
            _FIELDS.get(field, field),
            [unsaid, *layout.columns],
            key=f"import-column-{field}-{_round()}",
        )
        if column != unsaid:
            columns[field] = column
    return columns or None


def _round() -> int:
    return int(st.session_state.get(_ROUND, 0))
