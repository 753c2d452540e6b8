"""The page Review: the span editor over a queue of items, and a line above it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from spanlab.base.errors import NotFoundError, StoreError, UsageError
from spanlab.base.runtime import leave_imports_uncollected
from spanlab.detection.fits import learn_if_due
from spanlab.measure.sample import MeasuredItems
from spanlab.output.figures import figure
from spanlab.output.marked_text import fragment_html
from spanlab.people.entrance import (
    EntranceState,
    begin_test,
    entrance_of,
    has_only_tested,
    prepare_queue,
    test_in_words,
    tested_items,
)
from spanlab.review import queue as review
from spanlab.review import span_editor
from spanlab.review.queue_panel import (
    choose_measurement,
    choose_queue,
    choose_sample,
    describe_queue,
)
from spanlab.review.reviewer_panel import completion_words, may_review
from spanlab.schema import (
    DatasetSummary,
    Permission,
    QueueQuery,
)
from spanlab.ui import common
from spanlab.ui.messages import errors_shown, show_error, show_news, tell_after_rerun
from spanlab.ui.session import ask_reviewer
from spanlab.worklists.names import item_names

_NEXT = ("Campaign", "Compare", "Export")  # pages for who has decided all items
_ITEM = "item"  # query parameter: the URL leads back to the same item
REVIEW = "review"


@dataclass(frozen=True)
class _QueueEntry:
    """The item to begin a queue with, and what the URL asked for when that was decided."""

    dataset: str
    query: QueueQuery
    asked: str | None
    item: str | None


def page() -> None:
    """Draw the Review page."""
    _leave_imports_uncollected()
    summaries = common.datasets_for("review", Permission.REVIEW, untitled="Review")
    if not summaries:
        return
    with errors_shown():  # below the head: the popover in it is closed
        _draw(summaries)


def _draw(summaries: Mapping[str, DatasetSummary]) -> None:
    head = common.editor_head()
    summary = common.choose_dataset(summaries, head)
    with head:
        with st.popover("Queue", icon=":material/tune:", width="content"):
            reviewer = ask_reviewer(summary)
            measured = choose_measurement(summary, reviewer)
            name = reviewer or "nobody"
            query = (
                choose_queue(summary, name)
                if measured is None
                else choose_sample(summary, name, measured)
            )
        described = st.empty()
        common.guide_link("Review")
    if not may_review(summary, reviewer):
        return
    show_news()
    learn_if_due(summary)
    _open_queue(summary, query, measured, described)


def _open_queue(
    summary: DatasetSummary,
    query: QueueQuery,
    measured: MeasuredItems | None,
    described: DeltaGenerator,
) -> None:
    """Draw the editor over a queue, or the test that comes before; the line above it, too."""
    dataset, reviewer, asked_item = summary.name, query.reviewer, st.query_params.get(_ITEM)
    test = entrance_of(common.store(), dataset, reviewer, summary.settings)
    if test.stage in {"begin", "failed"}:
        _offer_test(summary, reviewer, test)
        return
    passed = test.stage == "open" and test.score is not None
    if passed and has_only_tested(common.store(), dataset, reviewer):
        _show_test(dataset, reviewer)
    about = describe_queue(query)
    live: LiveLine | TestLine | None = None
    if test.stage == "test":
        query = QueueQuery(reviewer=reviewer, blind=True, listed=True, sample=test.items)
        measured = None
        live = TestLine(summary, reviewer, described)
    # A reviewer who saw the rate so far would know what the next mark makes of it.
    elif measured is not None and common.store().may(Permission.MANAGE, dataset):
        live = LiveLine(measured, reviewer, about, described)
    if live is None:  # else the fragment below writes it
        described.caption(common.plain(about))
    prepare_queue(common.store(), dataset, reviewer, query.sample)
    names = item_names(common.store(), dataset, reviewer)
    if asked_item is not None and names.find(asked_item) is None:
        _say_unknown(dataset, asked_item)
        return
    span_editor.mount_editor(review.labels(common.store(), dataset, query), summary.settings)
    place = span_editor.ReviewQueue(dataset, query, entry_of(dataset, query, REVIEW))
    answer_editor(place, REVIEW, common.chosen_in(REVIEW), live)


def _offer_test(summary: DatasetSummary, reviewer: str, state: EntranceState) -> None:
    """Say that there is a test before one may begin, or how it went, and lead on."""
    rules = summary.settings.known
    assert rules is not None
    st.info(common.plain(test_in_words(state, rules)), icon=":material/school:")
    _show_test(summary.name, reviewer)
    if guidelines := summary.settings.guidelines_now:
        with st.expander("Guidelines", icon=":material/rule:", expanded=True):
            st.markdown(guidelines)
    if state.stage == "failed" and not state.again:
        return
    label = "Begin" if state.stage == "begin" else "Retry"
    if st.button(label, type="primary", icon=":material/play_arrow:"):
        with errors_shown("Ask the dataset's lead to let you start."):
            begin_test(common.store(), summary.name, reviewer)
            st.rerun()


def _show_test(dataset: str, reviewer: str) -> None:
    """Show what of somebody's last test they marked otherwise than is right."""
    tested = tested_items(common.store(), dataset, reviewer)
    if not tested:
        return
    with st.expander("Where your marks differ from the right ones", expanded=True):
        for item in tested:
            st.caption(f"Your marks, with an IoU of {figure(item.iou, 2)}:")
            st.html(fragment_html(item.answer, item.marked))
            st.caption("Correct marks:")
            st.html(fragment_html(item.answer, item.right))


class TestLine:
    """The line above the editor that says how far the test is before somebody may begin."""

    def __init__(self, summary: DatasetSummary, reviewer: str, place: DeltaGenerator) -> None:
        self._summary, self._reviewer, self._place = summary, reviewer, place

    def note(self, decided: Iterable[str]) -> None:
        """Do nothing: this line reads from the database what was decided."""

    def draw(self, dataset: str) -> None:
        """Write the line; at the end of the test the page is drawn again and says how it went."""
        rules, settings = self._summary.settings.known, self._summary.settings
        state = entrance_of(common.store(), dataset, self._reviewer, settings)
        assert rules is not None
        if state.stage == "open":
            tell_after_rerun(test_in_words(state, rules))
        if state.stage != "test":
            st.rerun()
        self._place.caption(common.plain(test_in_words(state, rules)))


def _say_unknown(dataset: str, item: str) -> None:
    """Say that the address names an item that is not there, and lead on."""
    name, where = common.plain(item), common.plain(dataset)
    st.warning(f"There is no item “{name}” in the dataset “{where}”.", icon=":material/search_off:")
    span_editor.draw_unsaved(dataset, item=item)  # written before the item was somebody else's
    common.link("review", "Continue with the queue", icon=":material/edit_note:", dataset=dataset)


@st.cache_resource
def _leave_imports_uncollected() -> None:
    """Do it once, when the first page has imported all that it needs."""
    leave_imports_uncollected()


class LiveLine:
    """The line above the editor that says what a measurement has come to.

    Args:
        measured: the sample; what is decided is taken over into it.
        reviewer: who decides.
        about: what is reviewed, in words.
        place: where the line is, an ``st.empty``.
    """

    def __init__(
        self, measured: MeasuredItems, reviewer: str, about: str, place: DeltaGenerator
    ) -> None:
        self._measured, self._about, self._place = measured, about, place
        self._reviewer = reviewer
        self._decided: set[str] = set()
        self._text = measured.line

    def note(self, decided: Iterable[str]) -> None:
        """Keep decided items: the editor's next message may end this run before ``draw``."""
        self._decided.update(decided)

    def draw(self, dataset: str) -> None:
        """Write the line; only what was decided is read."""
        names = item_names(common.store(), dataset, self._reviewer)
        for name in tuple(self._decided):
            item = names.find(name)
            if item is not None:
                self._measured.refresh(common.store().record(dataset, item))
            self._decided.discard(name)
            self._text = self._measured.line
        self._place.caption(common.plain(f"{self._about} · {self._text}"))


@st.fragment
def answer_editor(
    place: span_editor.ReviewQueue,
    page_name: str,
    chosen: Mapping[str, object],
    live: LiveLine | TestLine | None = None,
) -> None:
    """Answer the editor on a page; only this runs again when a reviewer presses a key.

    Where the editor sends at the same moment, Streamlit takes a click elsewhere for one in here:
    what is chosen is no more what was ``chosen`` for ``place``, and the page is drawn again.
    """
    try:
        sent = span_editor.read_message()
        with common.snapshot():
            store = common.store()
            answer = span_editor.exchange(store, place, sent)
    except NotFoundError:
        st.rerun()  # the dataset was deleted meanwhile: draw the page with those that are left
    except (StoreError, UsageError) as error:
        if not common.store().may(Permission.REVIEW, place.dataset):
            st.rerun()  # the page says that their access has ended
        show_error(error, "Nothing typed is lost: the browser keeps it and sends it again.")
        span_editor.mount_wire({})
        return
    # The editor alone writes the item into the URL: from here it would come after its next moves.
    st.session_state[_item_key(page_name)] = answer.open
    if live is not None:
        live.note(sent.decided)
    progress = answer.json.get("progress")
    if isinstance(progress, dict):  # what comes after the last item: pages that the visitor has
        progress["next"] = [page for page in _NEXT if common.has_page(page.lower())]
        progress["completion"] = completion_words(store, place.dataset, progress)
    span_editor.mount_wire(answer.json)
    if live is not None:  # after the answer, which is on its way meanwhile
        with errors_shown():
            live.draw(place.dataset)
    if common.chosen_in(REVIEW, page_name) != chosen:
        st.rerun()


def entry_of(dataset: str, query: QueueQuery, page_name: str) -> str | None:
    """Return the id of the item to begin with: of a link, a reload or the last visit; or None.

    An editor that is open stays where it is, whatever this says. Another queue of the dataset
    begins again whatever the URL says: Streamlit does not hear of what the editor writes there.
    Reviewing blind or not leaves the item as it is.
    """
    at, entry = st.session_state.get(_item_key(page_name)), f"spanlab.entry.{page_name}"
    asked_item = st.query_params.get(_ITEM)
    previous = st.session_state.get(entry, _QueueEntry(dataset, query, None, at))
    if previous.dataset != dataset:
        item = asked_item
    elif previous.query != query:
        item = at if replace(previous.query, blind=query.blind) == query else None
    elif asked_item != previous.asked or span_editor.read_message().open is None:
        item = asked_item or at
    else:
        item = previous.item
    st.session_state[entry] = _QueueEntry(dataset, query, asked_item, item)
    return item


def _item_key(page_name: str) -> str:
    """Return where the item is kept that the editor of a page stood at last."""
    return f"spanlab.at.{page_name}"
