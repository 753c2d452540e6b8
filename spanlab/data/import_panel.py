"""What an import would make, shown before it is made, and the import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import streamlit as st

from spanlab.base.errors import UsageError
from spanlab.data.import_files import estimate_items
from spanlab.data.import_files_panel import (
    ImportChoice,
    ReadableFiles,
    make_readable,
    preview_of,
    recipe_of_first,
)
from spanlab.data.import_form import clear_form, import_form, lacks_answer
from spanlab.data.import_preview import ImportPreview
from spanlab.data.importing import (
    ImportResult,
    describe_fields,
    import_files,
    rejects_as_jsonl,
)
from spanlab.data.joining import join_annotations
from spanlab.data.predictions import JoinedPredictions, import_predictions
from spanlab.formats.read_options import RejectedRecord, format_titles
from spanlab.output.figures import counted, named_ids
from spanlab.schema import Item
from spanlab.ui.common import link, plain, remember_dataset, store
from spanlab.ui.counts import kind_beside
from spanlab.ui.messages import errors_shown, in_page_words, progress
from spanlab.ui.session import pressed
from spanlab.ui.tables import text_grid

_RESULT = "spanlab.imported"
_EXPLAINED = "spanlab.import-explained"  # files that cannot be read before people say how
_UNMATCHED = 10  # ids that are named


@dataclass(frozen=True)
class _ImportResult:
    """What came of an import: of items, or of a system's predictions for them."""

    dataset: str
    imported: ImportResult | None = None
    joined: JoinedPredictions | None = None
    system: str = ""


def import_panel(datasets: Sequence[str] = ()) -> None:
    """Draw the import form, with the button and a preview above what is folded.

    Args:
        datasets: the names of those there are.
    """
    form = import_form(datasets, st.session_state.get(_EXPLAINED))
    choice = form.choice
    ready = choice.is_any
    with form.preview:
        if choice.makes_items and lacks_answer(choice):
            ready = False
            st.info(
                "Choose below which column holds the answer, or the chat that it ends.",
                icon=":material/arrow_downward:",
            )
        elif choice.makes_items:
            ready = False
            with errors_shown("Nothing was imported."):
                show_preview(preview_of(choice))
                ready = True
    if choice.makes_items and ready:
        with form.fold:
            _offer_recipe(choice)
    elif choice.makes_items and st.session_state.get(_EXPLAINED) != choice.source:
        st.session_state[_EXPLAINED] = choice.source
        st.rerun()
    with form.button:
        is_pressed = pressed(
            "Import",
            type="primary",
            icon=":material/upload:",
            disabled=not ready,
            key="import",
        )
    if is_pressed and ready:
        with form.preview, errors_shown("Nothing was imported."):
            st.session_state[_RESULT] = _import(choice)
            clear_form()
            remember_dataset(choice.dataset)
            st.rerun()


def show_result() -> None:
    """Draw what the last import did, until the next one or until people close it."""
    result: _ImportResult | None = st.session_state.get(_RESULT)
    if result is None:
        return
    name = result.dataset
    rejects = () if result.imported is None else result.imported.rejects
    with st.container(border=True, key="import-result"):
        if result.imported is not None:
            _show_imported(name, result.imported)
        if result.joined is not None:
            _show_joined(result, result.joined)
        with st.container(horizontal=True, vertical_alignment="center"):
            if rejects:
                _offer_rejects(name, rejects)
            link("detect", "Run detectors", icon=":material/manage_search:", dataset=name)
            link("review", "Review", icon=":material/edit_note:", dataset=name)
            if st.button("Close", type="tertiary", key="close-import-result"):
                del st.session_state[_RESULT]
                st.rerun()


def _show_imported(name: str, imported: ImportResult) -> None:
    st.markdown(
        f":material/check_circle: **{counted(imported.items, 'item')} imported into {plain(name)}**"
    )
    if imported.missing:
        st.warning(plain(imported.missing), icon=":material/warning:")
    _show_fields(imported.fields)
    if imported.warnings:
        remarks = f"Remarks ({len(imported.warnings)})"
        with st.expander(remarks, icon=":material/info:", type="compact"):
            for warning in imported.warnings[:100]:
                st.markdown(f"- {plain(warning)}")
    if imported.rejects:
        _show_rejects(imported.rejects)


def _show_joined(result: _ImportResult, joined: JoinedPredictions) -> None:
    name = plain(result.dataset)
    done = f"{counted(joined.items, 'annotation')} joined to the items of {name}"
    if result.system:
        done = f"{counted(joined.items, 'item')} of {name} annotated as {plain(result.system)}"
    st.markdown(f":material/check_circle: **{done}**")
    if joined.replaced:
        st.warning(f"{joined.replaced_in_words}.", icon=":material/warning:")
    if joined.unmatched:
        noun = "prediction" if result.system else "record"
        named = named_ids(joined.unmatched, _UNMATCHED)
        st.warning(
            plain(
                f"{counted(len(joined.unmatched), noun)} left out: the dataset has no item "
                f"with this id: {named}"
            ),
            icon=":material/warning:",
        )


def _show_rejects(rejects: Sequence[RejectedRecord]) -> None:
    st.warning(f"Left out: {counted(len(rejects), 'bad record')}.", icon=":material/warning:")
    st.dataframe(
        text_grid([{"file": r.file, "line": r.line, "reason": r.reason} for r in rejects[:100]]),
        hide_index=True,
        column_config={"reason": st.column_config.TextColumn(width="large")},
        alt="The first records that were left out, with file, line and reason",
    )


def _offer_recipe(choice: ImportChoice) -> None:
    """Offer how the first file is read, so that others of its kind need not be explained again."""
    st.download_button(
        "Save how it is read",
        data=lambda: recipe_of_first(choice),
        file_name=f"{choice.dataset or 'import'}.toml",
        mime="application/toml",
        icon=":material/menu_book:",
        help="A recipe: drop it here beside other files of the kind to import them the same way.",
        key="download-recipe",
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


def _import(choice: ImportChoice) -> _ImportResult:
    if not choice.dataset:
        raise UsageError("the dataset needs a name")
    with make_readable(choice) as readable_files:
        system = choice.options.system
        if system is not None:
            with progress("Joining", None) as advance:
                joined = import_predictions(
                    store(),
                    readable_files.files,
                    choice.dataset,
                    system,
                    kind=choice.kind,
                    on_progress=advance,
                )
            return _ImportResult(choice.dataset, joined=joined, system=system)
        if choice.joins:
            with progress("Joining", None) as advance:
                joined = join_annotations(
                    store(), readable_files.files, choice.dataset, readable_files.options, advance
                )
            return _ImportResult(choice.dataset, joined=joined)
        with progress("Importing", estimate_items(readable_files.files), about=True) as advance:
            imported = import_files(
                store(),
                readable_files.files,
                choice.dataset,
                readable_files.options,
                on_progress=advance,
            )
        return _ImportResult(choice.dataset, _rename_as_uploaded(imported, readable_files))


def _rename_as_uploaded(imported: ImportResult, readable_files: ReadableFiles) -> ImportResult:
    """Take the temporary folder out of all names of uploaded files."""
    return replace(
        imported,
        warnings=tuple(map(readable_files.named, imported.warnings)),
        rejects=tuple(
            replace(r, file=readable_files.named(r.file), reason=readable_files.named(r.reason))
            for r in imported.rejects
        ),
    )


_LONGEST = 240  # characters of a text that are shown
_STYLE = """<style>
.import-preview { border-collapse: collapse; width: 100%; font-size: .875rem;
  table-layout: fixed; }
.import-preview th, .import-preview td { text-align: start; vertical-align: top;
  padding: .3rem .6rem .3rem 0; border-bottom: 1px solid rgba(128, 132, 149, .3);
  overflow-wrap: anywhere; }
.import-preview .none { font-style: italic; }
</style>"""


def show_preview(preview: ImportPreview) -> None:
    """Draw the recognised format, the first records, and what they have and lack."""
    titles = format_titles()
    formats = ", ".join(titles.get(name, name) for name in preview.formats)
    among = "" if preview.is_all else "the first "
    st.markdown(
        f"**Recognised as {plain(formats)}.** {plain(_annotators(preview))} Passages: in "
        f"{preview.with_passages:,} of {among}{counted(preview.read, 'item')}."
    )
    if preview.warning:
        st.warning(plain(preview.warning), icon=":material/warning:")
    if preview.rejects:
        so_far_note = "" if preview.is_all else " so far"
        st.warning(
            "  \n".join(
                [
                    f"{counted(len(preview.rejects), 'bad record')}{so_far_note}:",
                    *map(plain, preview.wrong),
                ]
            ),
            icon=":material/warning:",
        )
    if preview.items:
        head = "".join(
            f"<th scope='col' width='{wide}%'>{name}</th>" for name, wide in _HEAD.items()
        )
        rows = "".join(map(_row, preview.items))
        st.html(f"{_STYLE}<table class='import-preview'><tr>{head}</tr>{rows}</table>")
    _show_fields(preview.fields)
    for remark in preview.remarks:
        st.info(plain(in_page_words(remark)), icon=":material/info:")


def _show_fields(fields: Mapping[str, str]) -> None:
    """Say what each field of the files became."""
    if told := describe_fields(fields):
        st.caption(f"Fields: {plain(told)}")


# What is shown of an item, and how wide, in per cent.
_HEAD = {"Id": 10, "Question": 22, "Answer": 28, "Passages": 26, "Further fields": 14}


def _annotators(preview: ImportPreview) -> str:
    if not preview.annotators:
        return "No annotations in them."
    shown = preview.annotators[:5]
    named = ", ".join(
        f"{name} ({', '.join(filter(None, (kind_beside(name, kind), f'{n:,}')))})"
        for name, kind, n in shown
    )
    n_unnamed = len(preview.annotators) - len(shown)
    return f"Annotated by {named}{f' and {n_unnamed:,} more' if n_unnamed else ''}."


def _row(item: Item) -> str:
    passages = f"{counted(len(item.passages), 'passage')}: " if item.passages else ""
    first_passage = item.passages[0].text if item.passages else ""
    cells = (item.id, item.question, item.answer, passages + first_passage, ", ".join(item.meta))
    return f"<tr>{''.join(map(_cell, cells))}</tr>"


def _cell(text: str) -> str:
    if not text:
        return "<td class='none'>none</td>"
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"<td dir='auto'>{escape(short)}</td>"
