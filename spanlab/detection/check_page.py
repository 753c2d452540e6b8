"""The page Check: one answer is pasted, judged at once, and kept if people want."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from html import escape
from typing import Any, Final

import streamlit as st

from spanlab.detection.checking import (
    MOST,
    OFFLINE,
    CheckedAnswer,
    answer_item,
    check_answer,
    file_passage,
    typed_passages,
)
from spanlab.detection.entry import asks_models
from spanlab.detection.form import ask_model, presets
from spanlab.detection.request import RunOptions
from spanlab.output.figures import counted
from spanlab.output.marked_text import fragment_html, quote_html
from spanlab.schema import Annotation, Item, Permission, Span
from spanlab.text.suggestions import count_weaker, suggestions
from spanlab.ui.common import (
    datasets_with,
    kept,
    link,
    page_link,
    plain,
    store,
    switch_page,
    title,
)
from spanlab.ui.messages import awaited, errors_shown
from spanlab.ui.server_files import is_local

_ANSWER, _QUESTION, _PASSAGES = map(kept, ("check.answer", "check.question", "check.passages"))
_CHECKED: Final = "spanlab.check.result"  # with what was in the boxes
_KEPT: Final = "spanlab.check.kept"  # the dataset and the item that the result is kept as
_WANTED: Final = "spanlab.check.wanted"  # until it is done; what was in the boxes once it is begun
_FILES: Final = "spanlab.check.files"
_DATASET: Final = "checked"
_QUOTES: Final = 2  # of the evidence for a mark
_EXAMPLE: Final = {
    _ANSWER["key"]: "The Eiffel Tower was finished in March 1925 and is 330 metres high.",
    _QUESTION["key"]: "When was the Eiffel Tower finished?",
    _PASSAGES[
        "key"
    ]: "The Eiffel Tower in Paris was finished in March 1889. It is 330 metres high.",
}
_SCROLL: Final = """<script>
const found = document.querySelector(".st-key-check-result");
if (found.getBoundingClientRect().bottom > innerHeight) found.scrollIntoView();
</script>"""
_STYLE: Final = """<style>
ol.check-marks { list-style: none; margin: 0; padding: 0 !important; }
.check-marks li { margin: 0 0 .9rem !important; padding: 0 0 0 .8rem;
  border-left: 3px solid rgb(208, 104, 8); overflow-wrap: anywhere; }
.check-marks b + span { float: right; font-variant-numeric: tabular-nums; opacity: .75; }
.check-marks blockquote { margin: .2rem 0 0; padding: 0; border: 0; color: inherit; }
.check-marks .about { opacity: .75; }
.st-key-check-result { scroll-margin-top: 8rem; }
</style>"""


def page() -> None:
    """Draw the page."""
    title("Check")
    if not presets():
        st.info("No detector is installed.")
        return
    _fill_from_link()
    detector = _ask_detector()
    left, right = st.columns(2, gap="medium")
    answer = left.text_area(
        "Answer", height=120, placeholder="Paste what a model wrote.", **_ANSWER
    )
    question = left.text_input(
        "Question (optional)", placeholder="What the model was asked.", **_QUESTION
    )
    is_back = _FILES not in st.session_state  # the box for files is emptied where its page is left
    with right:
        typed = st.text_area(
            "Passages (optional)",
            height=98,
            placeholder="Paste what it is checked against: a text, or the link of a page.",
            help="Put a link on a line of its own. A line with --- separates two passages.",
            **_PASSAGES,
        )
        files = st.file_uploader(
            "Passages as PDF or text files",
            type=["pdf", "txt", "md"],
            accept_multiple_files=True,
            max_upload_size=MOST >> 20,
            label_visibility="collapsed",
            key=_FILES,
        )
    actions = st.container(horizontal=True, vertical_alignment="center")
    filled = {"detectors": (detector,)} | _ask_model(detector)
    boxes = (repr(filled), answer, question, typed, *(file.file_id for file in files))
    wanted = st.session_state.get(_WANTED)
    if is_back and isinstance(wanted, tuple) and wanted[4:]:
        wanted = st.session_state[_WANTED] = False  # it was begun with files, which are gone
    result = None if wanted else st.session_state.get(_CHECKED)
    if result and is_back:
        result = st.session_state[_CHECKED] = (result[0][:4], result[1])
    fill = st.session_state.update
    with actions:
        st.button(
            "Check again" if result and result[0] != boxes else "Check",
            key="check-answer",
            type="primary",
            icon=":material/fact_check:",
            shortcut="Mod+Enter",
            on_click=fill,
            args=({_WANTED: True},),
        )
        st.button("Fill in an example", type="tertiary", on_click=fill, args=(_EXAMPLE,))
    # What is typed meanwhile ends this run: the next one checks what is there then.
    if wanted:
        st.session_state.pop(_CHECKED, None)
        with errors_shown("Nothing was checked."):
            uploaded = (file_passage(file.name, file.getvalue()) for file in files)
            item = answer_item(answer, [*typed_passages(typed), *uploaded], question)
            st.session_state[_WANTED] = boxes
            work = partial(check_answer, item, RunOptions.checked(filled), actor=store().actor)
            checked = awaited("Checking …", work, (boxes, filled))
            result = st.session_state[_CHECKED] = (boxes, checked)
            st.session_state.pop(_KEPT, None)
        st.session_state[_WANTED] = False
    if result:
        _show(result[1], is_current=result[0] == boxes)
        if wanted:  # what has just been found comes into view: on a phone it is below the boxes
            st.html(f"<!-- {id(result)} -->{_SCROLL}", unsafe_allow_javascript=True)
    page_link(
        "datasets", "Many answers? Import files, or look at the samples", icon=":material/database:"
    )


def _fill_from_link() -> None:
    """Fill the boxes in from the address; a link must not do that where others run the app."""
    boxes = {"answer": _ANSWER, "question": _QUESTION, "passage": _PASSAGES}
    if not any(name in st.query_params for name in boxes):
        return
    if is_local(st.get_option("server.address")):
        for name, box in boxes.items():
            st.session_state[box["key"]] = "\n---\n".join(st.query_params.get_all(name))
            st.query_params.pop(name, None)
    else:
        st.info("Links fill in this page only where spanlab runs on your own machine.")


def _ask_detector() -> str:
    """Ask what judges the answer."""
    by_title = presets()
    chosen = st.segmented_control(
        "Checked by",
        list(by_title),
        default=next(iter(by_title)),
        required=True,
        label_visibility="collapsed",
        **kept("check.detector"),
    )
    return by_title[str(chosen)]


def _ask_model(detector: str) -> dict[str, Any]:
    """Ask which model a detector is to ask, if it asks any."""
    if not asks_models(detector):
        return {}
    with st.columns(2, gap="medium")[0]:
        return ask_model([detector])


def _show(checked: CheckedAnswer, *, is_current: bool) -> None:
    """Draw the marked answer with its evidence; offer to keep it if it is what is typed."""
    item, annotation = checked.record.item, checked.annotation
    told = suggestions(annotation, item.answer)
    marked = [one.span for one in told if one.likely]
    verdict = "Nothing is marked"
    if marked:
        are = "is" if len(marked) == 1 else "are"
        verdict = f"{counted(len(marked), 'part')} {are} likely hallucinated"
    elif annotation.hallucinated:
        verdict = "It is hallucinated, at no place that can be told"
    left, right = st.container(key="check-result").columns(2, gap="medium")
    with left:
        st.header(verdict, anchor=False)
        st.html(fragment_html(item.answer, annotation))
    with right:
        st.header("Evidence" if marked else " ", anchor=False)
        st.html(
            f"{_STYLE}<ol class='check-marks'>{''.join(_row(span, item) for span in marked)}</ol>"
        )
        if weaker := count_weaker(told):
            st.caption(f"{counted(weaker, 'weaker mark')} in the text, not counted as likely.")
        for remark in (*_caveats(annotation), *checked.remarks):
            st.caption(plain(f"{remark[:1].upper()}{remark[1:]}."))
    with left:
        if is_current:
            _offer_to_keep(checked)
        else:
            st.warning(
                "What you chose or typed has changed since: check again, then you can keep it."
            )


def _caveats(annotation: Annotation) -> Iterator[str]:
    """Yield what its detector is known to miss."""
    if annotation.annotator == OFFLINE:
        yield (
            "This detector compares words: in answers made from their passages it misses most "
            "errors, such as invented sentences and paraphrases"
        )


def _row(span: Span, item: Item) -> str:
    """Return what is marked, how likely and why, and a quote of the passages."""
    about = " · ".join(filter(None, (span.label, f"{int(100 * span.prob + 0.5)} %")))
    quotes = "".join(
        f"<div>{escape(quote.note or '')}</div>{quote_html(quote, item)}"
        for quote in span.evidence[:_QUOTES]
    )
    note = "" if span.note is None else f"<div>{escape(span.note)}</div>"
    return (
        f"<li><b dir='auto'>{escape(span.text)}</b><span>{escape(about)}</span>{note}{quotes}</li>"
    )


def _offer_to_keep(checked: CheckedAnswer) -> None:
    """Draw the button that stores an answer with its marks, and goes on with it in Review."""
    if _KEPT in st.session_state:
        dataset, kept_as = st.session_state[_KEPT]
        link("review", "Review", icon=":material/edit_note:", dataset=dataset, item=kept_as)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input("Dataset", value=_DATASET, width=220, key="check-dataset").strip()
        if not st.button("Keep and review", icon=":material/bookmark_add:"):
            return
    with errors_shown("Nothing was kept."):
        summaries = {summary.name: summary for summary in datasets_with(Permission.MANAGE)}
        number = summaries[name].n_items + 1 if name in summaries else 1
        item = checked.record.item.model_copy(update={"id": f"answer-{number}"})
        store().import_records(name, [checked.record.model_copy(update={"item": item})])
        st.session_state[_KEPT] = (name, item.id)
        switch_page("review", name, item=item.id)
