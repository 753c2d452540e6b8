"""The part of the Datasets page that reads files into a dataset."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from spanlab.errors import InputError, UsageError
from spanlab.ui.common import plain, remember_dataset, store
from spanlab.ui.import_form import Chosen, clear_form, files_on_server, import_form
from spanlab.ui.messages import errors_shown
from spanlab.ui.progress import progress
from spanlab.workflows.importing import (
    Imported,
    ReadOptions,
    RejectedRecord,
    import_files,
    rejects_as_jsonl,
)
from spanlab.workflows.sources import (
    estimate_items,
    save_upload,
    split_sources,
    unpack_contexts,
)
from spanlab.workflows.wording import counted

_RESULT = "spanlab.imported"


@dataclass(frozen=True)
class _ImportResult:
    dataset: str
    imported: Imported


def import_panel() -> None:
    """Draw the form; on its button, import, show the progress and the result."""
    chosen = import_form()
    if st.button(
        "Import",
        type="primary",
        icon=":material/upload:",
        disabled=not (chosen.uploads or chosen.paths),
        key="import",
    ):
        with errors_shown("Nothing was imported."):
            imported = _import(chosen)
            st.session_state[_RESULT] = _ImportResult(chosen.dataset, imported)
            clear_form()
            remember_dataset(chosen.dataset)
            st.rerun()


def show_result() -> None:
    """Draw what the last import did, until the next one or until people close it."""
    result: _ImportResult | None = st.session_state.get(_RESULT)
    if result is None:
        return
    imported = result.imported
    name, rejects = result.dataset, imported.rejects
    with st.container(border=True, key="import-result"):
        st.markdown(
            f":material/check_circle: **{counted(imported.items, 'item')} imported into "
            f"{plain(name)}**"
        )
        if imported.warnings:
            with st.expander(f"Remarks ({len(imported.warnings)})", icon=":material/info:"):
                for warning in imported.warnings[:100]:
                    st.markdown(f"- {plain(warning)}")
        if rejects:
            _show_rejects(rejects)
        with st.container(horizontal=True):
            if rejects:
                _offer_rejects(name, rejects)
            if st.button("Close", icon=":material/close:", key="close-import-result"):
                del st.session_state[_RESULT]
                st.rerun()


def _show_rejects(rejects: Sequence[RejectedRecord]) -> None:
    st.warning(f"Left out: {counted(len(rejects), 'bad record')}.", icon=":material/warning:")
    st.dataframe(
        [{"file": r.file, "line": r.line, "reason": r.reason} for r in rejects[:100]],
        hide_index=True,
        column_config={"reason": st.column_config.TextColumn(width="large")},
        alt="The first records that were left out, with file, line and reason",
    )


def _offer_rejects(dataset: str, rejects: Sequence[RejectedRecord]) -> None:
    st.download_button(
        "Download the rejects with reasons",
        data=lambda: rejects_as_jsonl(rejects),
        file_name=f"{dataset}.rejects.jsonl",
        mime="application/x-ndjson",
        icon=":material/download:",
        key="download-rejects",
    )


def _import(chosen: Chosen) -> Imported:
    if not chosen.dataset:
        raise UsageError("the dataset needs a name")
    with tempfile.TemporaryDirectory(prefix="spanlab-import-") as folder:
        try:
            return _read(chosen, Path(folder))
        except InputError as error:
            raise _as_uploaded(error, folder) from error


def _read(chosen: Chosen, folder: Path) -> Imported:
    files = files_on_server(chosen.paths)
    files += [save_upload(upload.name, upload, folder) for upload in chosen.uploads]
    contexts: Path | None = None
    if isinstance(chosen.contexts, str):
        contexts = files_on_server([chosen.contexts])[0]
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
    """Take the temporary folder out of all names of uploaded files."""
    return replace(
        imported,
        warnings=tuple(warning.replace(prefix, "") for warning in imported.warnings),
        rejects=tuple(
            replace(r, file=r.file.replace(prefix, ""), reason=r.reason.replace(prefix, ""))
            for r in imported.rejects
        ),
    )


def _as_uploaded(error: InputError, folder: str) -> InputError:
    renamed = copy(error)
    renamed.what = error.what.replace(f"{folder}/", "")
    renamed.file = None if error.file is None else error.file.replace(f"{folder}/", "")
    return renamed
