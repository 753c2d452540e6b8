"""The Export page: a dataset's annotations into a file.

It shows how the file will begin: its first lines, or a report as it will look.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from spanlab.base.errors import InputError
from spanlab.data.export_choice import BINARY, CSV_FORMATS, FORMATS, REPORT, ExportChoice
from spanlab.data.exporting import (
    export_dataset,
    overview_dataset,
    preview_dataset,
    preview_report,
    questions_left_out,
)
from spanlab.data.report_figures import Overview
from spanlab.data.report_panel import draw_report_links
from spanlab.detection.options_form import ask
from spanlab.doors import Export
from spanlab.output.figures import counted
from spanlab.schema import AnnotatorKind, AnnotatorSummary, DatasetSummary, Permission, Status
from spanlab.schema.progress import PlanProgress
from spanlab.scoring.annotators import analyses_with_data
from spanlab.storage.sight import Sight
from spanlab.storage.store import Store
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import choose_dataset, datasets_for, plain, server_files, store, title
from spanlab.ui.messages import errors_shown, progress, show_news
from spanlab.ui.server_files import ServerFiles
from spanlab.ui.session import seen_store, seen_summary
from spanlab.ui.tables import show_page
from spanlab.worklists.plans import plan_of

_READY = "spanlab.export-file"
_GRID = """<style>
[class*="st-key-export-format"] [role=radiogroup] { display: grid; gap: .6rem 1.5rem;
  grid-template-columns: repeat(auto-fill, minmax(min(20rem, 100%), 1fr)); }
[class*="st-key-export-format"] [role=radiogroup] > * { margin: 0; }
</style>"""
_NAMED = 4  # annotators whose missing items are said one by one
_LARGE = 500 << 20  # bytes from which on the browser is not the best way


@dataclass(frozen=True)
class _ExportRequest:
    """What is to be exported."""

    dataset: str
    choice: ExportChoice
    sight: Sight

    @property
    def format(self) -> Export:
        return FORMATS[self.choice.format]

    @property
    def file_name(self) -> str:
        whose = self.choice.annotators
        named = f".{whose[0]}" if len(whose) == 1 else ""
        safe = "".join(c if c.isalnum() or c in " ._-" else "_" for c in self.dataset + named)
        return f"{safe}.{self.format.ending}"


@dataclass(frozen=True)
class _ExportFile:
    """A file that is ready; it is deleted together with this object."""

    request: _ExportRequest
    path: Path
    items: int
    size: int


def page() -> None:
    """Draw the page."""
    place = title("Export")
    show_news()
    summaries = datasets_for("export", Permission.EXPORT, versions=True)
    if not summaries:
        return
    summary = seen_summary(choose_dataset(summaries, place))
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        names = choose_annotators(summary.annotators, key=f"export-{summary.name}")
    everybody = len(names) == len(summary.annotators)
    filled = _ask_filters(summary) | _ask_format(summary, row)
    filled["annotators"] = () if everybody else tuple(names)
    choice = ExportChoice.checked(filled)
    if choice.format == "mushroom" and len(names) > 1:
        st.info("This file has the labels of one annotator: choose whose.", icon=":material/group:")
        return
    _say_contents(summary, names)
    if questions := questions_left_out(summary.settings, choice.format):
        st.caption(f"{questions[:1].upper()}{plain(questions[1:])}.")
    if not names and not everybody:
        st.info("Choose whose annotations go into the file.", icon=":material/group:")
        return
    beginning = preview_of(summary, choice)
    request = _ExportRequest(summary.name, choice, seen_store(summary).sight(summary.name))
    _download(summary, request, place, ready=beginning is not None)
    if (files := server_files()) is not None:
        with st.expander("Write on the server", icon=":material/save:"):
            _write(summary, request, files, ready=beginning is not None)
    leads = store().may(Permission.MANAGE, summary.version_of or summary.name)
    if beginning is not None and choice.format == REPORT and leads:
        draw_report_links(summary, choice)
    if beginning is not None:
        show_preview(summary, choice, beginning)


def _ask_filters(summary: DatasetSummary) -> dict[str, Any]:
    """Ask which states, languages and labels go into the file; by default all."""
    page = f"export-{summary.name}"
    labels = [*seen_store(summary).labels(summary.name), ""]
    choices = {"language": sorted(summary.languages), "label": labels}
    filled: dict[str, Any] = {}
    with st.expander("Filter by status, language or label", icon=":material/filter_alt:"):
        for column, keyword in zip(st.columns(3), ("state", "language", "label"), strict=True):
            changes = {keyword: {"choices": choices[keyword]}} if keyword in choices else {}
            with column:
                filled |= ask(ExportChoice, page, keyword, **changes)
        if summary.settings.known:
            filled |= ask(ExportChoice, page, "known_items")
    return filled


def _ask_format(summary: DatasetSummary, row: DeltaGenerator) -> dict[str, Any]:
    """Ask for the kind of file, for the format as a grid, and for what only one of them has."""
    st.html(_GRID)
    idle = _idle_once(summary.name, summary.fingerprint, seen_store(summary))
    with row:
        kind = st.segmented_control(
            "File", list(_KINDS), default="Labels", required=True, key="export-kind"
        )
        lacking = [FORMATS[name].title for name in _KINDS[kind] if name in idle]
        listed = lacking and st.toggle(
            "All formats",
            key=f"export-idle-{kind}",
            help=f"The first items have nothing for {', '.join(lacking)}.",
        )
    names = [name for name in _KINDS[kind] if listed or name not in idle]
    if len(names) == 1:
        (format,) = names
        st.caption(f"{FORMATS[format].title}: {FORMATS[format].about}")
    else:
        format = st.radio(
            "Format",
            names,
            format_func=lambda name: FORMATS[name].title,
            captions=[FORMATS[name].about for name in names],
            width="stretch",
            key=f"export-format-{kind}",
        )
    format_options = {}
    if format == "averitec":
        format_options = ask(ExportChoice, "export", "repeat_pairs")
    elif format in CSV_FORMATS:
        format_options = ask(ExportChoice, "export", "raw")
    return {"format": format, **format_options}


_LABELS = ("spanlab", "csv", "parquet", "huggingface", "labelstudio", "claims")
_KINDS = {
    "Labels": _LABELS,
    "HTML report": (REPORT,),
    "A task's form": tuple(name for name in FORMATS if name not in {*_LABELS, REPORT}),
}


@st.cache_resource(max_entries=16, show_spinner=False)
def _idle_once(dataset: str, fingerprint: tuple[object, ...], _store: Store) -> frozenset[str]:
    """Return the formats for which the dataset's first items have nothing."""
    tests = {
        name: resolve_name(format.in_record) for name, format in FORMATS.items() if format.in_record
    }
    return frozenset(tests) - analyses_with_data(_store, dataset, tests)


def _say_contents(summary: DatasetSummary, names: Sequence[str]) -> None:
    """Say how many items there are, and what those chosen have not finished yet."""
    whose = [annotator for annotator in summary.annotators if annotator.name in names]
    rules, gold = summary.settings, summary.names_of(AnnotatorKind.GOLD)
    checks = rules.check_labels(gold) if rules.known else ()  # of the check items alone
    items = f"**{counted(summary.n_items, 'item')}.**"
    if not summary.annotators:
        st.markdown(f"{items} Nobody has annotated them yet: the file has the items alone.")
        return
    plan = plan_of(seen_store(summary), summary)
    missing = [
        text
        for annotator in whose
        if annotator.name not in checks
        and (text := _describe_missing(annotator, summary.n_items, plan))
    ]
    if len(missing) > _NAMED:
        missing = [f"{len(missing):,} of {len(whose):,} annotators have not finished all of them."]
    if plan is not None and plan.done < plan.needed:
        missing.append(
            f"{plan.needed - plan.done:,} of {plan.needed:,} planned annotations are missing."
        )
    named = ", ".join(plain(annotator.name) for annotator in whose[:_NAMED])
    more = f" and {len(whose) - _NAMED:,} more" if len(whose) > _NAMED else ""
    st.markdown(" ".join([items, f"The file has the labels of {named}{more}.", *missing]))


def _describe_missing(annotator: AnnotatorSummary, n_items: int, plan: PlanProgress | None) -> str:
    """Say how much an annotator lacks; empty for nothing, and for people, whom a plan tells of."""
    if plan is not None and annotator.kind is AnnotatorKind.PERSON:
        return ""
    n_left = annotator.counts.get(Status.NOT_ANNOTATED, 0)
    if not n_left:
        return ""
    begun = f" ({counted(annotator.drafts, 'draft')})" * bool(annotator.drafts)
    return f"{n_left:,} of {n_items:,} not finished by {plain(annotator.name)} yet{begun}."


def _download(
    summary: DatasetSummary, request: _ExportRequest, place: DeltaGenerator, *, ready: bool
) -> None:
    """Draw the button that makes the file, or that downloads it, in the head of the page."""
    file: _ExportFile | None = st.session_state.get(_READY)
    if file is None or file.request != request:
        st.session_state.pop(_READY, None)
        if place.button(
            "Create file",
            type="primary",
            icon=":material/build:",
            disabled=not ready,
            key="make-export",
        ):
            with errors_shown():
                st.session_state[_READY] = _make(summary, request)
                st.rerun()
        return
    place.download_button(
        f"Download {plain(request.file_name)}",
        data=file.path.read_bytes,
        file_name=request.file_name,
        mime=request.format.mime,
        type="primary",
        icon=":material/download:",
        on_click="ignore",
        key="download-export",
    )
    st.caption(
        f"{plain(request.file_name)} is ready: {counted(file.items, 'item')}, {_size(file.size)}."
    )
    if file.size > _LARGE and server_files() is not None:
        st.info("For a file of this size, writing it on the server is faster and needs no memory.")
    if st.button("Create again", icon=":material/refresh:", type="tertiary", key="remake-export"):
        del st.session_state[_READY]
        st.rerun()


def _make(summary: DatasetSummary, request: _ExportRequest) -> _ExportFile:
    handle, name = tempfile.mkstemp(prefix="spanlab-export-")
    os.close(handle)
    path = Path(name)
    try:
        items = _export(summary, request, path)
        file = _ExportFile(request, path, items, path.stat().st_size)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    weakref.finalize(file, path.unlink, missing_ok=True)
    return file


def _export(summary: DatasetSummary, request: _ExportRequest, target: Path) -> int:
    with progress("Writing", summary.n_items) as advance:
        return export_dataset(
            seen_store(summary), request.dataset, target, request.choice, on_progress=advance
        )


def _write(
    summary: DatasetSummary, request: _ExportRequest, files: ServerFiles, *, ready: bool
) -> None:
    with st.form("write-export", border=False):
        path = st.text_input(
            "Path",
            placeholder=f"/data/{request.file_name}",
            help="Path on the server. The file appears only when it is "
            "complete; a name that ends in .gz packs it.",
        ).strip()
        overwrite = st.checkbox("Replace the file if it exists")
        pressed = st.form_submit_button(
            "Write", type="primary", icon=":material/save:", disabled=not ready
        )
    if not pressed:
        return
    with errors_shown("Nothing was written."):
        target = _check_target(files, path, overwrite=overwrite)
        items = _export(summary, request, target)
        st.success(
            f"{counted(items, 'item')} written to {plain(str(target))}",
            icon=":material/check_circle:",
        )


def _check_target(files: ServerFiles, path: str, *, overwrite: bool) -> Path:
    if not path:
        raise InputError("there is no path", expected="where to write the file")
    target = files.path(path)
    if target.is_dir():
        raise InputError("this is a directory", file=path, expected="the path of a file in it")
    if target.exists() and not overwrite:
        raise InputError("the file exists", file=path, expected="another path, or “Replace” ticked")
    return target


def _size(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    for power, unit in ((3, "kB"), (6, "MB")):
        if size < 10 ** (power + 3):
            return f"{size / 10**power:,.1f} {unit}"
    return f"{size / 1e9:,.1f} GB"


_ITEMS = 3  # whose lines are shown
_LINE = 600  # characters of a line
_LINES = 60
_AT_ONCE = 2_000  # items that are counted for the head of a report's preview


def preview_of(summary: DatasetSummary, choice: ExportChoice) -> str | None:
    """Return how the file will begin; say what is wrong, and return None, if there can be none."""
    look = seen_store(summary)
    with errors_shown():
        if choice.format != REPORT:
            return preview_dataset(look, summary.name, _ITEMS, choice)
        overview = None
        if summary.n_items <= _AT_ONCE:
            edits = look.n_operations(summary.name)
            plan = str(summary.settings.measurement)
            fingerprint = (*summary.fingerprint, edits, look.sight(summary.name), plan)
            overview = _count_overview(summary.name, choice, fingerprint, look)
        return preview_report(look, summary.name, overview, choice)
    return None


def show_preview(summary: DatasetSummary, choice: ExportChoice, beginning: str) -> None:
    """Draw the beginning of a file; a report in a frame of its own, apart from the app.

    Args:
        summary: of the dataset.
        choice: what goes into the file.
        beginning: as ``preview_of`` returns it.
    """
    st.header("Preview", anchor=False)
    if choice.format == REPORT:
        if summary.n_items > _AT_ONCE:
            st.caption("Its figures are counted when the file is made.")
        show_page(beginning, f"The report on {summary.name}")
        return
    lines = [line if len(line) <= _LINE else f"{line[:_LINE]} …" for line in beginning.split("\n")]
    if beginning.strip():
        st.code("\n".join(lines[:_LINES]).rstrip(), language=None, wrap_lines=True)
    else:
        st.caption("The first items have nothing to write in this format.")
    if choice.format in BINARY:
        st.caption("The file shows the same items in its own form.")


@st.cache_resource(max_entries=16, show_spinner=False)
def _count_overview(
    dataset: str, choice: ExportChoice, fingerprint: tuple[object, ...], _store: Store
) -> Overview:
    """Count now, or return what any session has counted; ``seen`` tells changes."""
    with progress("Counting", None) as advance:
        return overview_dataset(_store, dataset, choice, advance)
