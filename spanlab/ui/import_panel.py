"""The part of the Datasets page that reads files into a dataset."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from spanlab.errors import InputError, UsageError
from spanlab.ui.common import plain, remember_dataset, store
from spanlab.ui.messages import errors_shown
from spanlab.ui.progress import progress
from spanlab.workflows.importing import (
    FIELDS,
    FORMATS,
    Imported,
    ReadOptions,
    Reject,
    guess_columns,
    import_files,
    rejects_as_jsonl,
    table_columns,
)
from spanlab.workflows.sources import (
    estimate_items,
    files_named,
    save_upload,
    split_sources,
    unpack_contexts,
)

_RESULT = "spanlab.imported"
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
    "faithbench": "FaithBench",
    "labelstudio": "Label Studio",
    "csv": "CSV",
    "parquet": "Parquet",
}


@dataclass(frozen=True)
class _Chosen:
    """What the form says: uploads or paths, and how to read them."""

    uploads: Sequence[UploadedFile]
    paths: Sequence[str]
    dataset: str
    format: str
    contexts: UploadedFile | str | None
    columns: Mapping[str, str] | None
    skip_bad: bool


@dataclass(frozen=True)
class _Result:
    dataset: str
    imported: Imported


def import_panel() -> None:
    """Draw the form; on its button, import, show the progress and what came of it."""
    chosen = _form()
    if st.button(
        "Import",
        type="primary",
        icon=":material/upload:",
        disabled=not (chosen.uploads or chosen.paths),
        key="import",
    ):
        with errors_shown("Nothing was imported."):
            imported = _import(chosen)
            st.session_state[_RESULT] = _Result(chosen.dataset, imported)
            st.session_state[_ROUND] = _round() + 1
            remember_dataset(chosen.dataset)
            st.rerun()


def show_result() -> None:
    """Draw what the last import did, until the next one or until people close it."""
    result: _Result | None = st.session_state.get(_RESULT)
    if result is None:
        return
    imported = result.imported
    name, rejects = result.dataset, imported.rejects
    with st.container(border=True, key="import-result"):
        st.markdown(
            f":material/check_circle: **{imported.items:,} "
            f"{'item' if imported.items == 1 else 'items'} imported into {plain(name)}**"
        )
        if imported.warnings:
            with st.expander(f"Remarks ({len(imported.warnings)})", icon=":material/info:"):
                for warning in imported.warnings[:100]:
                    st.markdown(f"- {plain(warning)}")
        if rejects:
            _show_rejects(name, rejects)
        if st.button("Close", icon=":material/close:", key="close-import-result"):
            del st.session_state[_RESULT]
            st.rerun()


def _show_rejects(dataset: str, rejects: Sequence[Reject]) -> None:
    st.warning(
        f"{len(rejects):,} bad {'record was' if len(rejects) == 1 else 'records were'} left out.",
        icon=":material/warning:",
    )
    st.dataframe(
        [{"file": r.file, "line": r.line, "reason": r.reason} for r in rejects[:100]],
        hide_index=True,
        column_config={"reason": st.column_config.TextColumn(width="large")},
        alt="The first records that were left out, with file, line and reason",
    )
    st.download_button(
        "Download the rejects with reasons",
        data=lambda: rejects_as_jsonl(rejects),
        file_name=f"{dataset}.rejects.jsonl",
        mime="application/x-ndjson",
        icon=":material/download:",
        key="download-rejects",
    )


def _form() -> _Chosen:
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
        contexts = _contexts(server=not uploads)
        bad = st.radio(
            "If a record is wrong",
            [_STRICT, _SKIP],
            captions=[
                "The error names file, line and field; the dataset stays as it was.",
                "The others are imported; the bad ones are offered with their reasons.",
            ],
            key=f"import-bad-{_round()}",
        )
    return _Chosen(
        uploads=uploads,
        paths=paths,
        dataset=name.strip() or stem,
        format=format,
        contexts=contexts,
        columns=columns,
        skip_bad=bad == _SKIP,
    )


def _stem(first: str) -> str:
    """Return the name that a dataset gets from a file, or for a glob from its directory."""
    path = Path(first)
    return (path.parent if any(mark in path.name for mark in "*?[") else path).name.partition(".")[
        0
    ]


def _files() -> tuple[Sequence[UploadedFile], Sequence[str]]:
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
        return table_columns(files_named([table])[0], options)
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


def _import(chosen: _Chosen) -> Imported:
    if not chosen.dataset:
        raise UsageError("the dataset needs a name")
    with tempfile.TemporaryDirectory(prefix="spanlab-import-") as folder:
        try:
            return _read(chosen, Path(folder))
        except InputError as error:
            raise _as_uploaded(error, folder) from error


def _read(chosen: _Chosen, folder: Path) -> Imported:
    files = files_named(chosen.paths)
    files += [save_upload(upload.name, upload, folder) for upload in chosen.uploads]
    contexts: Path | None = None
    if isinstance(chosen.contexts, str):
        contexts = Path(chosen.contexts)
    elif chosen.contexts is not None:
        apart = folder / "passages"
        apart.mkdir()
        saved = save_upload(chosen.contexts.name, chosen.contexts, apart)
        contexts = unpack_contexts(saved, apart / "unpacked")
    sources = split_sources(files)
    options = ReadOptions(
        format=chosen.format,
        contexts=contexts,
        columns=chosen.columns,
        sources=sources.source_info,
    )
    with progress("Importing", estimate_items(sources.files), about=True) as advance:
        imported = import_files(
            store(),
            sources.files,
            chosen.dataset,
            options,
            skip_bad=chosen.skip_bad,
            on_progress=advance,
        )
    return _without(imported, f"{folder}/")


def _without(imported: Imported, prefix: str) -> Imported:
    """Call uploads by the names that people gave them, not by where they lay for a moment."""
    return replace(
        imported,
        warnings=tuple(warning.replace(prefix, "") for warning in imported.warnings),
        rejects=tuple(
            replace(r, file=r.file.replace(prefix, ""), reason=r.reason.replace(prefix, ""))
            for r in imported.rejects
        ),
    )


def _as_uploaded(error: InputError, folder: str) -> InputError:
    return InputError(
        error.what.replace(f"{folder}/", ""),
        file=None if error.file is None else error.file.replace(f"{folder}/", ""),
        line=error.line,
        field=error.field,
        found=error.found,
        expected=error.expected,
    )


def _round() -> int:
    return int(st.session_state.get(_ROUND, 0))
