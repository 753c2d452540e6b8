"""What helps in the app: the guide and its search, the tour above the pages, the Help menu.

The tour is a strip of steps above the pages. In the first, people review five answers and see
how the interval of the hallucination rate shrinks with each; in the last they have their own rate.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from typing import Final, NamedTuple

import streamlit as st

from spanlab.base.errors import UsageError
from spanlab.base.guide import FOLDER, GuidePage, guide_page, guide_pages, search_guide
from spanlab.data.importing import DATASET, TOUR, prepare_tour
from spanlab.measure.measurement import measure_own
from spanlab.schema import Permission
from spanlab.ui import common
from spanlab.ui.messages import show_error
from spanlab.ui.session import session_reviewer


def help_pages() -> list[st.Page]:
    """Return the pages of the menu; the tour, which loads samples, is not for invited people."""
    tour = st.Page(start_tour, title="Tour", icon=":material/explore:", url_path="tour")
    actor = common.actor()
    is_guest = actor.subject.startswith("invitation:") and not actor.may(Permission.ADMINISTER)
    return [
        st.Page(draw_guide, title="Guide", icon=":material/menu_book:", url_path="guide"),
        *([] if is_guest else [tour]),
        st.Page(
            _draw_guidelines, title="Guidelines", icon=":material/rule:", url_path="guidelines"
        ),
    ]


def _draw_guidelines() -> None:
    place = common.head("Guidelines", "What reviewers of a dataset are asked to mark.", "campaigns")
    summaries = common.datasets_for("read guidelines of", Permission.SEE)
    if not summaries:
        return
    summary = common.choose_dataset(summaries, place)
    texts = summary.settings.guidelines
    if not texts:
        is_lead = common.store().may(Permission.MANAGE, summary.name)
        st.info(f"This dataset has no guidelines.{'' if is_lead else ' Ask its lead.'}")
        if is_lead:
            common.page_link("campaign", "Write guidelines", icon=":material/rule:")
        return
    st.caption(f"Version {len(texts)}")
    st.markdown(texts[-1])


_TOPIC = "topic"  # the query parameter of deep links
_PICTURE = re.compile(r"^!\[([^]]*)\]\((pictures/[\w-]+)\.webp\)$", re.MULTILINE)
_CODE = re.compile(r"^```(?:sh|python|toml)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([\w-]+)\.md(?:#[\w-]+)?\)")


def draw_guide() -> None:
    """Draw the page Guide."""
    listed, shown = st.columns([1, 3.2], gap="large")
    with listed.container(key="guide-list", gap="xsmall"):
        words = st.text_input(
            "Search the guide", icon=":material/search:", **common.kept("guide.words")
        )
        if words.strip():
            _list_found(words)
        else:
            _list_all()
        st.caption(f"spanlab {version('spanlab')}")
    with shown:
        try:
            _draw_page(guide_page(st.query_params.get(_TOPIC, guide_pages()[0].topic)))
        except UsageError as error:
            show_error(error)


def _list_all() -> None:
    section = ""
    for page in filter(lambda page: page.in_menu, guide_pages()):
        if page.section != section:
            st.caption(f"**{page.section}**")
            section = page.section
        _draw_link(page)


def _list_found(words: str) -> None:
    hits = search_guide(words)
    if not hits:
        st.caption("No page has any of these words. Try others.")
    elif hits[0].lacking:
        st.caption("No page has all of these words. These have most of them:")
    for hit in hits:
        _draw_link(hit.page)
        st.caption(common.plain(hit.line))


def _draw_link(to: GuidePage) -> None:
    """Draw a button: a link from a page to itself would leave the address as it is."""
    st.button(
        to.title, key=f"guide-{to.topic}", type="tertiary", on_click=_turn_to, args=(to.topic,)
    )


def _turn_to(topic: str) -> None:
    st.query_params[_TOPIC] = topic


def _draw_page(shown: GuidePage) -> None:
    """Draw a page: text and pictures in turn, dark pictures where the app is dark."""
    dark = "-dark" if st.context.theme.type == "dark" else ""
    text = _LINK.sub(rf"](guide?{_TOPIC}=\1)", shown.text)
    text = _CODE.sub("```text", text)  # Streamlit's colours of code are too faint in the dark
    first_text, *pieces = _PICTURE.split(text)
    st.markdown(first_text)
    for about, picture, text_below in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        st.image(FOLDER / f"{picture}{dark}.webp", caption=about, alt=about)
        st.markdown(text_below)


_AT = "spanlab.tour"  # the step that this session is at
_REVIEWS: Final = 5  # that the tour asks for
_OWN: Final = {"review", "measure"}  # pages that show the visitor's own rate
_SECONDS: Final = 3.0  # after which it is asked whether another review is done


class TourStep(NamedTuple):
    """A page, by its title in small letters, and what to do there."""

    page: str
    text: str


STEPS = (
    TourStep(
        "review",
        "Review five answers of a language model. Words that may be hallucinated are marked; the "
        "evidence is beside them. Press `a` to accept a suggestion, `x` to reject it, and `Enter` "
        "when the answer is done.",
    ),
    TourStep(
        "review",
        "Mark what no detector has marked: drag over the words, or press `w` at the first one, "
        "again for each word more, and `d`. `u` undoes it.",
    ),
    TourStep(
        "detect",
        "Detectors make the suggestions. The first one needs nothing; most others use a model. "
        "You see the cost before anything starts.",
    ),
    TourStep(
        "compare",
        "One answer as several people and detectors marked it, the most disagreed first. The tabs "
        "show scores and agreement.",
    ),
    TourStep("export", "Choose whose annotations you want, which items, and which format."),
    TourStep(
        "measure",
        "How often answers are hallucinated. A few reviews correct what a detector marked: the "
        "more of them, the narrower the interval.",
    ),
)


def start_tour() -> None:
    """Draw the page Tour: go to the first step."""
    if common.actor().may(Permission.ADMINISTER):
        prepare_tour(common.store())
    _go(_steps()[0], 0)


def _steps() -> list[TourStep]:
    """Return the steps whose pages are open to who is here."""
    return [step for step in STEPS if common.has_page(step.page)]


def draw_tour() -> None:
    """Draw the strip, while the tour goes on."""
    at: int | None = st.session_state.get(_AT)
    steps = _steps()
    if at is None or at >= len(steps):
        return
    with st.container(border=True, key="tour"):
        words, buttons = st.columns([2.4, 1], vertical_alignment="center")
        step = steps[at]
        with words:
            st.markdown(f"**Tour, {at + 1} of {len(steps)}: {step.page.title()}.** {step.text}")
            if step.page in _OWN and TOUR in _dataset_names():
                _draw_own_rate()
        with buttons.container(horizontal=True, horizontal_alignment="right", gap="small"):
            _draw_buttons(steps, at)


def _dataset_names() -> set[str]:
    return {summary.name for summary in common.datasets_with(Permission.SEE)}


@st.fragment(run_every=_SECONDS)
def _draw_own_rate() -> None:
    """Draw the rate by the visitor's own reviews, and its interval, after each of them."""
    name = session_reviewer(TOUR)
    measured = measure_own(common.store(), TOUR, name) if name else None
    if measured is None:
        st.caption(f"0 of {_REVIEWS} answers reviewed. Your rate appears after the first.")
        return
    rate, n = measured.rate.superpopulation, measured.rate.reviews
    assert rate is not None
    st.markdown(
        f"**{min(n, _REVIEWS)} of {_REVIEWS} answers reviewed. By your reviews:** "
        f"{common.plain(measured.sentence or '')}"
    )
    left, width = 100 * rate.low, 100 * (rate.high - rate.low)
    st.html(
        f"<div role='img' aria-label='{width:.0f} of 100 points wide' style='height:.6rem;"
        "border-radius:.3rem;background:rgba(128,132,149,.25)'><div style='height:100%;"
        f"border-radius:.3rem;background:#d06808;margin-left:{left:.1f}%;width:{width:.1f}%'>"
        "</div></div>"
    )


def _draw_buttons(steps: list[TourStep], at: int) -> None:
    if at > 0 and st.button("Back", key="tour-back", width="content"):
        _go(steps[at - 1], at - 1)
    is_last = at + 1 == len(steps)
    if not is_last and st.button("Next", type="primary", key="tour-next", width="content"):
        _go(steps[at + 1], at + 1)
    if st.button("End the tour", key="tour-end", width="content"):
        del st.session_state[_AT]
        st.rerun()


def _go(step: TourStep, at: int) -> None:
    """Go to the page of a step: on the tour's dataset or the samples, where these are there."""
    st.session_state[_AT] = at
    names = _dataset_names()
    is_own = step.page in _OWN and TOUR in names
    dataset = TOUR if is_own else DATASET if DATASET in names else None
    query = {common.QUEUE: common.SAMPLE} if is_own and step.page == "review" else {}
    common.switch_page(step.page, dataset, **query)
