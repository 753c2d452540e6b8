"""The form of an import: which files, and how to read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.uploaded_file_manager import UploadedFile

from spanlab.base.errors import SpanlabError, UsageError
from spanlab.base.options import Option, options_in
from spanlab.data.import_files_panel import RECIPE, ImportChoice, layout_of, show_samples
from spanlab.data.importing import ImportOptions
from spanlab.data.pull_panel import ask_traces
from spanlab.detection.options_form import ask, ask_options
from spanlab.formats.guess import FIELDS
from spanlab.formats.known.tabular import RecordLayout
from spanlab.formats.read_options import checked_recipe
from spanlab.formats.registry import formats
from spanlab.formats.threads import speakers_in
from spanlab.schema import AnnotatorKind
from spanlab.ui.common import plain, server_files
from spanlab.ui.messages import errors_shown
from spanlab.ui.server_files import is_local

_ROUND = "spanlab.import-round"  # a new number empties the form's widgets
_UPLOAD = "Upload"
_SERVER = "Path on the server"
_TRACES = "Langfuse or Phoenix"
_ITEMS = "Items"
_PREDICTIONS = "Predictions"
_ANNOTATIONS = "Annotations"
_KINDS = {
    _ITEMS: "Answers to review, with or without labels.",
    _PREDICTIONS: "A system's spans, matched to existing items by ID.",
    _ANNOTATIONS: "What people and detectors marked in items that a dataset has, by their names.",
}
_CONTEXTS = "A JSONL with id and passages, or a zip of <id>.context.txt files."
_BESIDE = 3  # boxes in a row
_ENCODINGS = ("utf-8", "windows-1252", "latin-1", "utf-16")
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


@dataclass(frozen=True)
class ImportForm:
    """What the form says, and places in it: for the button, for a preview, for what is folded."""

    choice: ImportChoice
    button: DeltaGenerator
    preview: DeltaGenerator
    fold: DeltaGenerator


def import_form(datasets: Sequence[str], explained: object = None) -> ImportForm:
    """Draw the form: files first, then a line with the button, and all else below the preview.

    Args:
        datasets: the names of those there are, for which predictions may be imported.
        explained: the ``source`` of files that people are asked how to read: nothing is folded.
    """
    kind = _ITEMS
    if datasets:
        kind = st.radio(
            "Files contain",
            list(_KINDS),
            horizontal=True,
            key=f"import-kind-{import_round()}",
            help="  \n".join(f"**{name}**: {about}" for name, about in _KINDS.items()),
        )
    uploads, paths = _ask_files()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        line = st.container(horizontal=True, vertical_alignment="bottom")
        button = st.container(width="content")
    preview = st.container()
    files = ImportChoice(uploads, paths, "", ImportOptions())
    with line:
        if not files.is_any:
            return ImportForm(files, button, preview, preview)
        if kind == _PREDICTIONS:
            return ImportForm(_ask_predictions(files, datasets), button, preview, preview)
        if kind == _ANNOTATIONS:
            into = st.selectbox("Dataset", datasets, key=f"import-into-{import_round()}")
            choice = replace(files, dataset=into or "", joins=True)
            return ImportForm(choice, button, preview, preview)
        stem = files.stem
        name = st.text_input(
            "Dataset",
            placeholder=stem or "named after the first file",
            help="A new name makes a dataset; the name of an existing one adds the items to it.",
            key=f"import-name-{import_round()}",
        )
    is_open = explained == files.source
    with st.expander("How the files are read", expanded=is_open, icon=":material/tune:") as fold:
        choice = _ask_reading(replace(files, dataset=name.strip() or stem), preview)
    return ImportForm(choice, button, preview, fold)


def _ask_reading(choice: ImportChoice, preview: DeltaGenerator) -> ImportChoice:
    """Draw how files are read; the line and the preview above follow it."""
    recipes = [upload for upload in choice.uploads if upload.name.endswith(RECIPE)]
    uploads = [upload for upload in choice.uploads if upload not in recipes]
    named = {"format": ("auto", *formats()), "encoding": _ENCODINGS}
    boxes = {name: {"kind": "choice", "choices": choices} for name, choices in named.items()}
    left, right = st.columns(2)
    with left:
        reading = _ask("format", "model", format=boxes["format"])
    options = None
    with right:
        reading |= _ask("encoding", "lang", encoding=boxes["encoding"])
    with preview, errors_shown():
        options = ImportOptions.checked(_by_recipe(recipes, reading))
    if options is None:
        return replace(choice, uploads=(), paths=())
    choice = replace(choice, uploads=uploads, options=options)
    if recipes:
        preview.caption(plain(f"Read by the recipe {recipes[0].name}."))
    own = [o for o in _read_layout(choice).options if o.name not in options.own]
    own = [option for option in own if "page" in option.sides]
    choice = choice.with_options(**_ask_own(option for option in own if option.kind != "path"))
    if not recipes:
        choice = _with_columns(choice)
    beside = [option for option in options_in(ImportOptions) if option.name == "contexts"]
    beside += [option for option in own if option.kind == "path"]
    on_server = not uploads and server_files() is not None
    reading = _ask_own(replace(option, kind="text") for option in beside if on_server)
    uploaded = {} if on_server else {option.name: _ask_beside(option) for option in beside}
    paths = {name: Path(str(path)) if path else None for name, path in reading.items()}
    return replace(choice.with_options(**paths, **_ask("skip_bad")), beside=uploaded)


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


def _ask_predictions(choice: ImportChoice, datasets: Sequence[str]) -> ImportChoice:
    dataset = st.selectbox("Dataset", datasets, key=f"import-into-{import_round()}")
    system = _ask("system", system={"placeholder": choice.stem})["system"]
    kind = st.segmented_control(
        "The system is a",
        (AnnotatorKind.DETECTOR, AnnotatorKind.PERSON),
        default=AnnotatorKind.DETECTOR,
        required=True,
        key=f"import-annotator-kind-{import_round()}",
        width="content",
    )
    options = ImportOptions(system=str(system or choice.stem))
    return replace(choice, dataset=dataset or "", options=options, kind=AnnotatorKind(kind))


def _ask(*keywords: str, **changes: Mapping[str, Any]) -> dict[str, Any]:
    return ask(ImportOptions, f"import-{import_round()}", *keywords, **changes)


def _ask_own(options: Iterable[Option]) -> dict[str, Any]:
    return ask_options(options, f"import-{import_round()}")


def clear_form() -> None:
    """Empty the form after its import."""
    st.session_state[_ROUND] = import_round() + 1


def _ask_files() -> tuple[Sequence[UploadedFile], Sequence[str]]:
    on_server = [_SERVER] if server_files() is not None else []
    # Others could have this machine ask any address, with the keys of its environment.
    of_programs = [_TRACES] if is_local(st.get_option("server.address")) else []
    place = _UPLOAD
    if places := [*on_server, *of_programs]:
        place = st.segmented_control(
            "Where the files are",
            [_UPLOAD, *places],
            default=_UPLOAD,
            required=True,
            key="import-place",
            label_visibility="collapsed",
        )
    if place == _TRACES:
        return ask_traces(f"import-traces-{import_round()}"), ()
    if place == _UPLOAD:
        uploads = st.file_uploader(
            "Files",
            accept_multiple_files=True,
            key=f"import-files-{import_round()}",
            help="JSON Lines, JSON, CSV, parquet or Arrow, packed with gzip or not. For RAGTruth, "
            "take response.jsonl and source_info.jsonl together. A recipe (.toml), which the "
            "preview offers, says how the files beside it are read.",
        )
        return uploads, ()
    path = st.text_input(
        "Path, glob or folder",
        placeholder="/data/answers/*.jsonl",
        key=f"import-path-{import_round()}",
        help="The path on the server. Nothing is uploaded, so this is the "
        "way for very large files. A folder is read as Hugging Face's datasets saves one: its "
        "Arrow or parquet files.",
    )
    return (), [path.strip()] if path.strip() else []


def _ask_beside(option: Option) -> UploadedFile | None:
    about = _CONTEXTS if option.name == "contexts" else option.about
    return st.file_uploader(option.label, key=f"import-{option.name}-{import_round()}", help=about)


def _with_columns(choice: ImportChoice) -> ImportChoice:
    """Draw which records are read and what their columns are, if the first file has columns."""
    layout = _read_layout(choice)
    if speakers_in(layout.samples).names:
        choice = choice.with_options(**_ask("speaker"))
    if not layout.columns:
        return choice
    choice = choice.with_options(columns=_ask_columns(layout))
    if "messages" in {**layout.guesses, **(choice.options.columns or {})}:
        choice = choice.with_options(**_ask("turns"))
    return choice


def _read_layout(choice: ImportChoice) -> RecordLayout:
    with suppress(SpanlabError):  # which the preview says
        return layout_of(choice) if choice.is_any else RecordLayout()
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
        why = guesses.why.get(field, "by its name")
        unsaid = f"{guesses[field]} ({why})" if field in guesses else "—"
        column = boxes[index % _BESIDE].selectbox(
            _FIELDS.get(field, field),
            [unsaid, *layout.columns],
            key=f"import-column-{field}-{import_round()}",
        )
        if column != unsaid:
            columns[field] = column
    return columns or None


def import_round() -> int:
    """Return how many imports emptied the form."""
    return int(st.session_state.get(_ROUND, 0))
