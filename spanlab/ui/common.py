"""What all pages share: the open database, the dataset people are at, and the way between pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Literal, TypedDict

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from spanlab import doors
from spanlab.output.figures import counted
from spanlab.schema import OWNER, Actor, DatasetSummary, Permission
from spanlab.storage.datasets import open_store
from spanlab.storage.store import Store
from spanlab.ui.server_files import ServerFiles

_DATASET = "dataset"  # the query parameter of deep links
_ITEM = "item"  # and of an item in it
QUEUE = "queue"  # and of a queue in Review
SAMPLE = "measurement"  # the queue of a measurement's sample
_CURRENT = "spanlab.dataset"
_CHOICE = "spanlab.dataset-choice"
_INSTEAD = "spanlab.dataset-instead"
_SEEN = "spanlab.formats"  # when those that this session has shown were made, by name
_PAGES = "spanlab.pages"
_SWITCHER = 300  # pixels, the width of the switcher of datasets
_NAMED = 3  # languages that it names; of more it says how many there are
_STYLE = """<style>
.stMainBlockContainer { padding-top: 4.5rem; }
.stMainBlockContainer h1 { font-size: 1.9rem; padding: 0; }
/* What a page is about and what it does stay in view where there is room for both. */
@media (min-width: 50rem) and (min-height: 30rem) {
    :has(> .st-key-page-head) { position: sticky; top: 3.75rem; z-index: 9;
        background: light-dark(#fff, #171614); }
}
/* Long lines of code wrap: what scrolls sideways cannot be reached by keyboard. */
.stMainBlockContainer [data-testid="stMarkdownContainer"] pre,
.stMainBlockContainer [data-testid="stMarkdownContainer"] pre code {
    white-space: pre-wrap !important; overflow-x: hidden; }
.stMainBlockContainer h2 { font-size: 1.45rem; padding: .7rem 0 .25rem; }
.stMainBlockContainer h3, .stMainBlockContainer .stHeading h2 {
    font-size: 1.2rem; padding: .25rem 0 .5rem; }
.stApp [data-testid="stCaptionContainer"] { color: inherit; opacity: .75; }
.stApp [data-testid="stTable"] th { color: inherit; }
/* The switcher is as high as the buttons beside it: the editor has the rest. */
.st-key-editor-head [data-testid="stSelectbox"] [role="group"] { height: 2rem; min-height: 2rem; }
/* The line above the editor stays one line: what it says of the queue gives way. */
@media (min-width: 70rem) {
    .st-key-editor-head { flex-wrap: nowrap; }
    .st-key-editor-head > * { flex-shrink: 0; }
    .st-key-editor-head > :has([data-testid="stCaptionContainer"]):first-of-type,
    .st-key-editor-head > [data-testid="stElementContainer"]:has([data-testid="stCaptionContainer"])
        { flex: 1 1 0; min-width: 0; }
    .st-key-editor-head > [data-testid="stElementContainer"] [data-testid="stCaptionContainer"] p {
        overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
}
/* No blue is read both as words on a dark page and as the ground of white ones. */
button[data-testid^="stBaseButton-primary"], [data-tag] span { color: light-dark(#fff, #0e1117); }
button[data-testid^="stBaseButton-primary"]:hover { color: #fff; } /* it is darker then */
button[data-testid^="stBaseButton-primary"] kbd {
    color: inherit !important; opacity: 1 !important; }
/* What a job costs and its button stay in view, whatever is open above them. What is started here
   is drawn in the bar, too, which scrolls once it is half of the window. */
:has(> .st-key-start-bar) { position: sticky; bottom: 0; z-index: 9;
    background: light-dark(#fff, #171614); }
.st-key-start-bar { max-height: 50vh; overflow-y: auto; }
h2, h3 { scroll-margin-top: 7rem !important; } /* a link to one leads below the head */
.st-key-guide-list button { min-height: 1.75rem; padding-block: 0; }
@media (max-width: 40rem) {
    button kbd { display: none !important; }
    .st-key-guide-list { max-height: 30vh; overflow-y: auto; }
    /* A job is a few words side by side: nine lines would say what is missing one below another. */
    .st-key-jobs-head { display: none; }
    [class*="st-key-job-"] [data-testid="stColumn"]:has([data-testid="stCaptionContainer"])
        { display: none; }
    [class*="st-key-job-"] [data-testid="stColumn"] { min-width: 0; width: auto; flex: 0 1 auto; }
}
.st-key-start-bar [data-testid="stMetricValue"] { font-size: 1.15rem; }
.st-key-start-bar [data-testid="stMetricLabel"] { min-height: 0; }
</style>"""


# The steps of a campaign as the guide has them, each with its page.
STEPS: Sequence[tuple[str, str]] = (
    ("Import", "Datasets"),
    ("Detect", "Detect"),
    ("Plan", "Campaign"),
    ("Review", "Review"),
    ("Check agreement", "Compare"),
    ("Adjudicate", "Adjudicate"),
    ("Measure", "Measure"),
    ("Save version", "Campaign"),
    ("Export", "Export"),
    ("Tune", "Optimise"),
)


class WidgetKey(TypedDict):
    """Arguments of a widget whose value Streamlit is to keep while other pages are open."""

    key: str
    persist_state: Literal["session"]


def store() -> Store:
    """Return the annotation database with the visitor's rights; it is opened once per server.

    Without a login the visitor is its owner; with one, an unknown visitor may use nothing of it.
    """
    opened = _store()
    current_actor: Actor = _visitor()(opened)
    return opened if current_actor is OWNER else opened.acting_as(current_actor, hides=True)


@cache
def _visitor() -> Callable[[Store], Actor]:
    """Return what tells who acts in this session: the app's front door knows logins."""
    offer = doors.offer("visitor", "session")
    assert offer is not None  # without the app nobody gets in
    visitor: Callable[[Store], Actor] = offer.load()
    return visitor


def snapshot() -> AbstractContextManager[None]:
    """Let what is read in the block come from one state of the database; see ``Database``."""
    return _store().database.snapshot()


def actor() -> Actor:
    """Return the visitor of this session, with their roles."""
    return store().actor


def server_files() -> ServerFiles | None:
    """Return which files of the server's machine may be named here; None for none at all."""
    if not actor().may(Permission.ADMINISTER):
        return None
    return ServerFiles.offered(st.get_option("server.address"))


def title(text: str) -> DeltaGenerator:
    """Draw a page's title, and below it what the page is for, with a link into the guide.

    Returns:
        The place at the upper right, which stays in view: for the switcher of datasets and for what
        the page is there to do.
    """
    page = next(page for page in doors.pages() if page.title == text)
    return head(text, page.about, page.topic)


def head(text: str, about: str, topic: str) -> DeltaGenerator:
    """Draw the title of a page that is not in the navigation's row, as ``title`` does."""
    with st.container(key="page-head", horizontal=True, vertical_alignment="center"):
        st.title(text, anchor=False, width="content")
        place = st.container(
            horizontal=True, horizontal_alignment="right", vertical_alignment="center", gap="small"
        )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(about, width="content")
        page_link("guide", "Guide", icon=":material/menu_book:", topic=topic)
        _draw_steps(text)
    return place


def start_bar(*, border: bool = True) -> DeltaGenerator:
    """Return the bar at the window's lower edge, for what a job costs and the button for it."""
    return st.container(border=border, key="start-bar")


def page_buttons(
    back: Callable[[], None] | None, on: Callable[[], None] | None, *, key: str, about: str = ""
) -> None:
    """Draw the buttons between pages of a list; nothing where all of it is on one.

    Args:
        back: turns to the page before; None on the first one.
        on: turns to the next page; None on the last one.
        key: of the list; the buttons' keys begin with it.
        about: what is said beside them.
    """
    if back or on:
        with st.container(horizontal=True, vertical_alignment="center"):
            for which, icon, turn in (("previous", "back", back), ("next", "forward", on)):
                st.button(
                    f"{which.capitalize()} page",
                    icon=f":material/arrow_{icon}:",
                    key=f"{key}-{which}",
                    disabled=turn is None,
                    on_click=turn,
                )
            st.caption(about, width="content")


def editor_head() -> DeltaGenerator:
    """Return the line above the editor: its queue, what is in it, and links."""
    return st.container(
        key="editor-head", horizontal=True, vertical_alignment="center", gap="small"
    )


def guide_link(title: str) -> None:
    """Draw a link into the guide that says what a page without a title is for, if pointed at."""
    page = next(page for page in doors.pages() if page.title == title)
    page_link("guide", "Guide", icon=":material/menu_book:", about=page.about, topic=page.topic)
    _draw_steps(title)


def _draw_steps(page: str) -> None:
    """Draw which step of a campaign a page is, with links to the one before and the one after."""
    number = next((n for n, (_, of) in enumerate(STEPS) if of == page), None)
    if number is None:
        return
    leads = actor().may_somewhere(Permission.MANAGE)  # on Campaign others see its progress alone
    mine = [
        n
        for n, (_, of) in enumerate(STEPS)
        if of != page and has_page(of.lower()) and (leads or of != "Campaign")
    ]
    before, after = [n for n in mine if n < number][-1:], [n for n in mine if n > number][:1]
    dataset = dataset_at()
    query = {} if dataset is None else {_DATASET: dataset}
    with st.container(key="page-steps", horizontal=True, width="content", gap="small"):
        for near, icon in ((before, ":material/arrow_back:"), (after, ":material/arrow_forward:")):
            for n in near:
                name, of = STEPS[n]
                page_link(of.lower(), f"{n + 1} {name}", icon=icon, **query)


def style() -> None:
    """Style all pages: titles close under the navigation, small print that can be read."""
    st.html(_STYLE)


def register_pages(pages: Sequence[st.Page]) -> None:
    """Remember the app's pages by their titles, so that pages can link to each other."""
    st.session_state[_PAGES] = {page.title.lower(): page for page in pages}


def link(
    page: str,
    label: str,
    *,
    icon: str,
    dataset: str,
    item: str | None = None,
    queue: str | None = None,
) -> None:
    """Draw a link to another page of the app that opens it at a dataset, and maybe at an item.

    Args:
        page: the page's title in small letters; outside the app, where no pages are known,
            nothing is drawn.
        label: what the link says.
        icon: a Material symbol, such as ":material/edit_note:".
        dataset: the dataset to open.
        item: the id of the item to open.
        queue: which queue Review is to open, such as ``SAMPLE``.
    """
    pages: Mapping[str, st.Page] = st.session_state.get(_PAGES, {})
    if page in pages:
        query = {_DATASET: dataset, _ITEM: item, QUEUE: queue}
        params = {name: value for name, value in query.items() if value is not None}
        st.page_link(pages[page], label=plain(label), icon=icon, query_params=params)


def page_link(page: str, label: str, *, icon: str, about: str | None = None, **query: str) -> None:
    """Draw a link to another page of the app, as ``link`` does, at no dataset in particular.

    Args:
        page: the page's title in small letters.
        label: what the link says.
        icon: a Material symbol.
        about: what is shown where it is pointed at.
        **query: query parameters.
    """
    pages: Mapping[str, st.Page] = st.session_state.get(_PAGES, {})
    if page in pages:
        st.page_link(pages[page], label=plain(label), icon=icon, help=about, query_params=query)


def has_page(page: str) -> bool:
    """Say whether there is a page of this title (in small letters) for this visitor."""
    return page in st.session_state.get(_PAGES, {})


def switch_page(page: str, dataset: str | None, **query: str) -> None:
    """Go to a page of the app, by its title in small letters; at a dataset, if one is named."""
    pages: Mapping[str, st.Page] = st.session_state[_PAGES]
    at_dataset = {} if dataset is None else {_DATASET: dataset}
    st.switch_page(pages[page], query_params={**at_dataset, **query})


def datasets_with(needs: Permission, *, versions: bool = False) -> list[DatasetSummary]:
    """Return the datasets in which the visitor has a permission, with versions if asked."""
    database = store()
    summaries = database.datasets(versions=versions)
    if database.actor.may(needs):
        return summaries
    return [summary for summary in summaries if database.may(needs, summary.name)]


def datasets_for(
    task: str, needs: Permission, *, versions: bool = False, untitled: str | None = None
) -> dict[str, DatasetSummary]:
    """Return datasets by name; where there is none, say so and lead to where one comes from.

    Nor is there any where the URL, or this session, is at a dataset that was deleted or renamed:
    no other one takes its place unasked.

    Args:
        task: what cannot be done without one, such as "review".
        needs: what the visitor must be allowed to do with them.
        versions: whether versions of datasets come along.
        untitled: the title of a page that has one only where there is no dataset.
    """
    summaries = {summary.name: summary for summary in datasets_with(needs, versions=versions)}
    wanted = dataset_at()
    if untitled is not None and (wanted not in summaries if wanted is not None else not summaries):
        title(untitled)
    if wanted is not None and wanted not in summaries:
        _say_gone(wanted, summaries)
        return {}
    if not summaries and not actor().may(Permission.ADMINISTER):
        st.info(f"There is nothing for you to {task} yet: a lead gives roles in datasets.")
    elif not summaries:
        st.info(
            f"There is nothing to {task} yet. Import a dataset on the Datasets page.",
            icon=":material/upload_file:",
        )
        page_link("datasets", "Go to Datasets", icon=":material/database:")
    return summaries


def choose_dataset(
    summaries: Mapping[str, DatasetSummary], place: DeltaGenerator
) -> DatasetSummary:
    """Let people choose a dataset; the URL follows, and other pages start from it.

    Args:
        summaries: of ``datasets_for``, at least one.
        place: the head of the page, where the switcher is.
    """
    names = list(summaries)
    # The box follows the URL, which a link from another page or the callback has set.
    st.session_state[_CHOICE] = dataset_at() or names[0]
    dataset_name = place.selectbox(
        "Dataset",
        names,
        key=_CHOICE,
        on_change=_follow_choice,
        format_func=lambda name: _describe_dataset(summaries[name]),
        label_visibility="collapsed",
        width=_SWITCHER,
    )
    remember_dataset(dataset_name)
    shown_datasets = st.session_state.get(_SEEN, {})
    st.session_state[_SEEN] = {**shown_datasets, dataset_name: summaries[dataset_name].created}
    return summaries[dataset_name]


def _describe_dataset(summary: DatasetSummary) -> str:
    """Return a dataset's name with its size and languages, as the switcher lists it."""
    langs = sorted(summary.languages)
    of_langs = ", ".join(langs) if len(langs) <= _NAMED else f"{len(langs)} languages"
    parts = [summary.name, counted(summary.n_items, "item"), of_langs]
    return " · ".join(filter(None, parts))


def dataset_at() -> str | None:
    """Return the dataset of the URL, else the one last worked with; None for none yet."""
    return st.query_params.get(_DATASET) or st.session_state.get(_CURRENT)


def _say_gone(lost_name: str, summaries: Mapping[str, DatasetSummary]) -> None:
    """Say that a dataset is not there, what is kept of what was typed, and where to go on."""
    created = st.session_state.get(_SEEN, {}).get(lost_name)
    renamed = next(
        (name for name, summary in summaries.items() if summary.created == created), None
    )
    if renamed is None:
        which = "There is no dataset" if created is None else "There is no longer a dataset"
        ended = "" if actor().may(Permission.ADMINISTER) else ", or your access to it has ended"
        text = f"{which} “{plain(lost_name)}”: it was deleted or has another name now{ended}."
        st.warning(f"{text} No other one was opened in its place.", icon=":material/search_off:")
    else:
        text = f"“{plain(lost_name)}” is called “{plain(renamed)}” now."
        st.info(text, icon=":material/drive_file_rename_outline:")
    if (draw_unsaved := doors.offer("widgets", "unsaved")) is not None:
        draw_unsaved.load()(lost_name, renamed)
    if renamed is not None:
        label = f"Continue with {plain(renamed)}"
        st.button(label, type="primary", on_click=_follow_name, args=(renamed,))
    elif summaries:
        st.selectbox(
            "Continue with",
            list(summaries),
            index=None,
            placeholder="Choose a dataset",
            key=_INSTEAD,
            on_change=_follow_instead,
            width=400,
        )
    page_link("datasets", "Go to Datasets", icon=":material/database:")


def forget_dataset(name: str) -> None:
    """Let no page start from a dataset that was deleted here."""
    if st.session_state.get(_CURRENT) == name:
        del st.session_state[_CURRENT]
    if st.query_params.get(_DATASET) == name:
        del st.query_params[_DATASET]


def remember_dataset(name: str) -> None:
    """Make ``name`` the dataset that the URL says and that other pages start from."""
    st.session_state[_CURRENT] = name
    previous_name = st.query_params.get(_DATASET)
    if previous_name not in (None, name):
        st.query_params.pop(_ITEM, None)  # it is an item of the dataset before
    if previous_name != name:
        st.query_params[_DATASET] = name


def kept(name: str) -> WidgetKey:
    """Return the arguments that give a widget a key and keep its value on other pages."""
    return {"key": f"spanlab.{name}", "persist_state": "session"}


def chosen_in(*pages: str) -> dict[str, object]:
    """Return the dataset that is chosen, and the values of the ``kept`` widgets of some pages."""
    names = (_CHOICE, *(kept(f"{page}.")["key"] for page in pages))
    return {key: st.session_state[key] for key in st.session_state if str(key).startswith(names)}


def plain(text: str) -> str:
    """Return ``text`` such that Markdown shows it unchanged: data are not markup."""
    one_line = " ".join(text.splitlines())
    return "".join(f"\\{char}" if char in _MARKUP else char for char in one_line)


_MARKUP = frozenset("\\`*_{}[]()<>#+-.!|~:$&@\"'^=")


def _follow_choice() -> None:
    remember_dataset(st.session_state[_CHOICE])


def _follow_instead() -> None:
    if st.session_state[_INSTEAD] is not None:
        remember_dataset(st.session_state[_INSTEAD])


def _follow_name(renamed: str) -> None:
    """Go on where one was: the dataset is the same, and so is the item of the URL."""
    st.query_params[_DATASET] = renamed
    remember_dataset(renamed)


@st.cache_resource(show_spinner="Opening the annotation database …", on_release=Store.close)
def _store() -> Store:
    return open_store()
