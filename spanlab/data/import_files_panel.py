"""The files that the import form names, made readable, and their first records."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from spanlab.base.errors import InputError
from spanlab.data.import_files import in_folders, save_upload, unpack_contexts
from spanlab.data.import_preview import ImportPreview, preview_import
from spanlab.data.importing import ImportOptions
from spanlab.formats.known.tabular import RecordLayout
from spanlab.formats.readers import recipe_of, table_layout
from spanlab.output.figures import counted
from spanlab.schema import AnnotatorKind
from spanlab.ui.common import server_files
from spanlab.ui.tables import text_grid

RECIPE = ".toml"  # how names of recipes end
_LAYOUT = "spanlab.import-layout"
_PREVIEW = "spanlab.import-preview"


@dataclass(frozen=True)
class ImportChoice:
    """The form's values: uploads or paths, and how to read them.

    ``beside`` are uploads that belong to these, by the option that names such a file. ``kind`` is
    what the system of predictions is; ``joins`` whether the dataset has the items, and gets the
    annotations of the files under their own names.
    """

    uploads: Sequence[UploadedFile]
    paths: Sequence[str]
    dataset: str
    options: ImportOptions
    beside: Mapping[str, UploadedFile | None] = field(default_factory=dict)
    kind: AnnotatorKind = AnnotatorKind.DETECTOR
    joins: bool = False

    def with_options(self, **options: Any) -> ImportChoice:
        """Return the same files, read otherwise."""
        return replace(self, options=self.options.having(**options))

    @property
    def source(self) -> tuple[object, ...]:
        """Which files these are, however they are read."""
        return (*(upload.file_id for upload in self._files), *self.paths)

    @property
    def stem(self) -> str:
        """The name that a dataset gets from the first file, or for a glob from its directory."""
        path = Path(next(iter((*(upload.name for upload in self._files), *self.paths)), ""))
        named = path.parent if any(mark in path.name for mark in "*?[") else path
        return named.name.partition(".")[0]

    @property
    def _files(self) -> Sequence[UploadedFile]:
        return [upload for upload in self.uploads if not upload.name.endswith(RECIPE)]

    @property
    def is_any(self) -> bool:
        """Whether there is a file."""
        return bool(self.uploads or self.paths)

    @property
    def makes_items(self) -> bool:
        """Whether there is a file, and it becomes new items."""
        return self.is_any and self.options.system is None and not self.joins

    def key(self) -> tuple[object, ...]:
        """Return what decides how the files are read, to compare with another choice."""
        uploads = tuple(upload.file_id for upload in self.uploads)
        beside = tuple(upload and upload.file_id for upload in self.beside.values())
        options = self.options.model_dump_json()
        return (uploads, tuple(self.paths), beside, options, self.kind, self.joins)


@dataclass(frozen=True)
class ReadableFiles:
    """Files, how to read them, and the folder that uploads are in for as long as they are read."""

    files: Sequence[Path]
    options: ImportOptions
    folder: str

    def named(self, text: str) -> str:
        """Return a text with the files called as they were uploaded."""
        return text.replace(f"{self.folder}/", "")


@contextmanager
def make_readable(choice: ImportChoice) -> Iterator[ReadableFiles]:
    """Store uploads in a folder, so that the chosen files can be read while the block runs.

    Raises:
        InputError: there is no such file, or the block raises one, by the uploads' own names.
    """
    with tempfile.TemporaryDirectory(prefix="spanlab-import-") as folder:
        try:
            yield _save_uploads(choice, Path(folder))
        except InputError as error:
            raise _rename_as_uploaded(error, folder) from error


def preview_of(choice: ImportChoice) -> ImportPreview:
    """Return what an import would make of the first records; read once for the same choice.

    Raises:
        InputError: nothing could be imported so.
    """
    kept_preview = st.session_state.get(_PREVIEW)
    if choice.uploads and kept_preview is not None and kept_preview[0] == choice.key():
        earlier: ImportPreview = kept_preview[1]
        return earlier
    with make_readable(choice) as readable_files:
        preview = preview_import(readable_files.files, readable_files.options)
        remarks = tuple(map(readable_files.named, preview.remarks))
    preview = replace(preview, remarks=remarks)
    st.session_state[_PREVIEW] = (choice.key(), preview)
    return preview


def layout_of(choice: ImportChoice) -> RecordLayout:
    """Return what the first file's records look like; empty if its format has fixed columns.

    Raises:
        InputError: the file cannot be read.
    """
    said = choice.options
    own = {name: value for name, value in said.own.items() if not isinstance(value, Path)}
    reading = ImportOptions(format=said.format, encoding=said.encoding, own=own)
    first_file = ImportChoice(choice.uploads[:1], choice.paths[:1], "", reading)
    kept_layout = st.session_state.get(_LAYOUT)
    if choice.uploads and kept_layout is not None and kept_layout[0] == first_file.key():
        earlier: RecordLayout = kept_layout[1]
        return earlier
    with make_readable(first_file) as readable_files:
        layout = table_layout(readable_files.files[0], readable_files.options)
    st.session_state[_LAYOUT] = (first_file.key(), layout)
    return layout


def recipe_of_first(choice: ImportChoice) -> str:
    """Return how the first file is read, as a recipe.

    Raises:
        InputError: the file cannot be read.
    """
    with make_readable(replace(choice, uploads=choice.uploads[:1])) as readable_files:
        return recipe_of(readable_files.files[0], readable_files.options)


def _save_uploads(choice: ImportChoice, folder: Path) -> ReadableFiles:
    files = _find_on_server(choice.paths)
    for upload in choice.uploads:
        upload.seek(0)
        files.append(save_upload(upload.name, upload, folder))
    changes: dict[str, Path | None] = {}
    given = {"contexts": choice.options.contexts, **choice.options.own}
    for name in {**given, **choice.beside}:
        path, beside = given.get(name), choice.beside.get(name)
        if isinstance(path, Path):
            (changes[name],) = _find_on_server([str(path)])
        elif beside is not None:
            apart = folder / name
            apart.mkdir()
            beside.seek(0)
            saved = save_upload(beside.name, beside, apart)
            is_contexts = name == "contexts"
            changes[name] = unpack_contexts(saved, apart / "unpacked") if is_contexts else saved
    return ReadableFiles(in_folders(files), choice.options.having(**changes), str(folder))


def _find_on_server(named: Sequence[str]) -> list[Path]:
    offered = server_files()
    return [] if offered is None else offered.named(named)


def _rename_as_uploaded(error: InputError, folder: str) -> InputError:
    renamed = copy(error)
    renamed.what = error.what.replace(f"{folder}/", "")
    renamed.others = tuple(line.replace(f"{folder}/", "") for line in error.others)
    renamed.file = None if error.file is None else error.file.replace(f"{folder}/", "")
    return renamed


_SHOWN = 5  # records
_LONGEST = 300  # characters of a cell
_NARROW, _WIDE = 90, 420  # pixels of a column
_LETTER = 8  # pixels


def show_samples(samples: Sequence[Mapping[str, Any]]) -> None:
    """Draw the first records as a table, each column as wide as its cells."""
    if not samples:
        return
    rows = [{name: _cell(value) for name, value in sample.items()} for sample in samples[:_SHOWN]]
    names = list(dict.fromkeys(name for row in rows for name in row))
    st.markdown(f"**The first {counted(len(rows), 'record')}, unchanged**")
    st.dataframe(
        text_grid([{name: row.get(name, "") for name in names} for row in rows]),
        hide_index=True,
        column_config={name: _column(name, rows) for name in names},
        alt="The first records of the file with all their columns",
    )


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "" if value is None else " ".join(text[: 2 * _LONGEST].split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _column(name: str, rows: Sequence[Mapping[str, str]]) -> Any:
    longest = max(len(name), *(len(row.get(name, "")) for row in rows))
    width = min(max(_LETTER * longest, _NARROW), _WIDE)
    return st.column_config.TextColumn(name, width=width)
