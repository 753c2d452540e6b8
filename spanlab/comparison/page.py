"""The Compare page: annotators side by side on one item, their scores, and their agreement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import streamlit as st

from spanlab.base.errors import NotFoundError
from spanlab.comparison.analyses_panel import show_claims
from spanlab.comparison.comparisons_panel import comparison_of
from spanlab.comparison.items_panel import (
    ITEM,
    item_html,
    item_list,
    legend_html,
    open_item,
    passage_html,
    question_html,
)
from spanlab.comparison.scores_panel import show_agreement, show_scores
from spanlab.output.figures import counted, percent
from spanlab.people.panel import link_to_item
from spanlab.schema import AnnotatorKind, DatasetSummary, Item, Permission, Record, Status
from spanlab.scoring.annotator_tables import reference_of
from spanlab.scoring.annotators import (
    Order,
    analyses_with_data,
    item_scores,
    list_items,
    neighbour_item,
    open_record,
)
from spanlab.scoring.findings import (
    agreement_finding,
    claim_finding,
    score_finding,
)
from spanlab.storage.store import Store
from spanlab.text.labels import disagreement
from spanlab.ui.choose_annotators import choose_annotator, choose_annotators
from spanlab.ui.common import (
    choose_dataset,
    datasets_for,
    has_page,
    link,
    plain,
    switch_page,
    title,
)
from spanlab.ui.counts import sort_by_kind
from spanlab.ui.messages import errors_shown
from spanlab.ui.panels import Panel, panels
from spanlab.ui.session import seen_fingerprint, seen_store, seen_summary

_ALL = "All languages"
_ORDERS: dict[str, Order] = {"Disagreement": "disagreement", "As imported": "import"}
_BESIDE = 6  # annotators whose marks are drawn at a time
_STEPS = (
    ("Previous", ":material/arrow_back:", "P", -1),
    ("Next", ":material/arrow_forward:", "N", 1),
)


def page() -> None:
    """Draw the page."""
    if st.query_params.get("view") == "Progress" and has_page("campaign"):  # a tab of 1.0
        switch_page("campaign", st.query_params.get("dataset"))
    place = title("Compare")
    summaries = datasets_for("compare", Permission.READ, versions=True)
    if not summaries:
        return
    summary = seen_summary(choose_dataset(summaries, place))
    if not summary.annotators:
        st.info("Nobody has annotated this dataset yet: review it, or run a detector.")
        link("review", "Review it", icon=":material/edit_note:", dataset=summary.name)
        link("detect", "Run a detector", icon=":material/manage_search:", dataset=summary.name)
        return
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    with left:
        reference = choose_annotator(
            summary.annotators,
            "Reference",
            key=f"reference-{summary.name}",
            none="None",
            default=reference_of(summary.kinds),
            meaning="Whose labels count as right when the others are scored.",
        )
    with right:
        chosen = choose_annotators(summary.annotators, key=f"compare-{summary.name}")
    choice = ComparisonChoice(summary, reference, chosen)
    views = _views_with_data(choice)
    tabs = st.tabs(list(views), key="view", on_change="rerun", bind="query-params")
    for tab, view in zip(tabs, views.values(), strict=True):
        if tab.open:
            with tab, errors_shown():
                view(choice)


@dataclass(frozen=True)
class ComparisonChoice:
    """What is compared: the annotators chosen, and who counts as right."""

    summary: DatasetSummary
    reference: str | None
    chosen: tuple[str, ...]


def _views_with_data(choice: ComparisonChoice) -> dict[str, Callable[[ComparisonChoice], None]]:
    """Return the tabs that have something to show, and the one that the address names."""
    summary = choice.summary
    finished = [a for a in summary.annotators if a.counts.get(Status.DONE)]
    makers = [a for a in finished if a.kind in {AnnotatorKind.PERSON, AnnotatorKind.DETECTOR}]
    brought = panels()
    analyses = _analyses_once(summary.name, seen_fingerprint(summary), seen_store(summary))
    has_data = {
        "Items": True,
        "Scores": choice.reference is not None and len(finished) > 1,
        "Agreement": len(makers) > 1,
        "Claims": "Claims" in analyses,
    } | {
        panel.title: panel.is_there(summary)
        and (panel.in_record is None or panel.title in analyses)
        for panel in brought
    }
    places = _VIEWS | {panel.title: (panel.order, partial(_draw_panel, panel)) for panel in brought}
    named = st.query_params.get("view")
    return {
        name: draw
        for name, (_, draw) in sorted(places.items(), key=lambda place: place[1][0])
        if has_data[name] or name == named
    }


@st.cache_resource(max_entries=16, show_spinner=False)
def _analyses_once(dataset: str, fingerprint: tuple[object, ...], _store: Store) -> frozenset[str]:
    tests = {panel.title: panel.in_record for panel in panels() if panel.in_record is not None}
    return analyses_with_data(_store, dataset, {"Claims": _has_claims, **tests})


def _has_claims(record: Record) -> bool:
    return any(annotation.claims for annotation in record.finished)


def _draw_panel(panel: Panel, choice: ComparisonChoice) -> None:
    panel.show(choice.summary, choice.chosen)


def _say(finding: str | None) -> None:
    """Draw the result of a tab in one sentence, where there is one."""
    if finding:
        st.markdown(f"**{plain(finding)}**")


def _draw_items(choice: ComparisonChoice) -> None:
    summary = choice.summary
    aside, main = st.columns([1, 2.1], gap="medium")
    with aside:
        order, lang = _ask_order(summary)
        item_list(summary, order, lang)
    with main:
        record = _find_record(summary, order, lang)
        if record is None:
            st.info("No item is in this language.")
            return
        _draw_head(summary, record, order, lang)
        _draw_side_by_side(choice, record)
        _draw_passages(record.item)


def _ask_order(summary: DatasetSummary) -> tuple[Order, str | None]:
    left, right = st.columns(2)
    order = left.selectbox("Order", list(_ORDERS), key="compare-order")
    lang = right.selectbox("Language", [_ALL, *sorted(summary.languages)], key="compare-lang")
    return _ORDERS[order], None if lang == _ALL else lang


def _find_record(summary: DatasetSummary, order: Order, lang: str | None) -> Record | None:
    """Return the item that the URL names if it is among those asked for, else the first."""
    item_id = st.query_params.get(ITEM)
    if item_id is not None:
        try:
            record = open_record(seen_store(summary), summary.name, item_id)
        except NotFoundError:
            record = None
        if record is not None and lang in {None, record.item.lang}:
            return record
    rows = list_items(seen_store(summary), summary.name, order=order, lang=lang).rows
    if not rows:
        return None
    open_item(rows[0].item_id)
    return open_record(seen_store(summary), summary.name, rows[0].item_id)


def _draw_head(summary: DatasetSummary, record: Record, order: Order, lang: str | None) -> None:
    """Draw which item this is, the way to its neighbours, and its question."""
    item = record.item
    about = [plain(item.id), plain(item.lang)]
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, icon, key, step in _STEPS:
            neighbour = neighbour_item(
                seen_store(summary), summary.name, item.id, step, order=order, lang=lang
            )
            st.button(
                label,
                icon=icon,
                shortcut=key,
                key=f"compare-{label.lower()}",
                disabled=neighbour is None,
                on_click=open_item,
                args=(neighbour,),
            )
        link_to_item(summary.name, item.id, "Review")
    st.caption(" · ".join(about))
    _say(_disagreements(record))
    if item.question:
        st.html(question_html(item))


def _disagreements(record: Record) -> str | None:
    """Return how much people disagree, and all with detectors; None for fewer than two."""
    people = [made for made in record.annotations if made.kind is not AnnotatorKind.DETECTOR]
    groups = {"people": people, "all annotators": record.annotations}
    if len(people) == len(record.annotations):
        del groups["all annotators"]
    found = {name: disagreement(made) for name, made in groups.items()}
    parts = [f"{name} {percent(value)}" for name, value in found.items() if value is not None]
    if not parts:
        return None
    return f"Disagreement: {', '.join(parts)} (0 %: all mark the same, 100 %: nothing in common)."


def _draw_side_by_side(choice: ComparisonChoice, record: Record) -> None:
    """Draw the answer once for each of those chosen who annotated the item, a few at a time."""
    annotated_by = {
        annotation.annotator
        for annotation in record.annotations
        if annotation.spans or annotation.status is not Status.NOT_ANNOTATED
    }
    present = [
        annotator.name
        for annotator in sort_by_kind(choice.summary.annotators)
        if annotator.name in annotated_by
    ]
    names = [name for name in present if name in choice.chosen]
    if not names:
        nobody = "those chosen under Annotators" if present else "the annotators"
        st.info(f"None of {nobody} has annotated this item.", icon=":material/group:")
        return
    pages = -(-len(names) // _BESIDE)
    place = 1
    if pages > 1:
        st.caption(f"{len(names):,} annotators, {_BESIDE} at a time.")
        place = st.pagination(pages, key=f"beside-{choice.summary.name}-{record.item.id}")
    shown = names[(place - 1) * _BESIDE : place * _BESIDE]
    scores = item_scores(record, choice.reference) if choice.reference else {}
    st.html(item_html(record, shown, scores))
    st.html(legend_html())


def _draw_passages(item: Item) -> None:
    if item.passages:
        with st.expander(f"Passages ({len(item.passages)})", icon=":material/article:"):
            for passage in item.passages:
                st.html(passage_html(passage, item.lang))


def _draw_scores(choice: ComparisonChoice) -> None:
    summary, reference = choice.summary, choice.reference
    if reference is None:
        st.info(
            "This dataset has no gold labels. Choose whose labels count as right above, or import "
            "items with gold labels.",
            icon=":material/target:",
        )
        return
    comparison = comparison_of(summary, reference)
    if comparison is None:
        return
    if not comparison.n_reference:
        st.info(f"{plain(reference)} has finished none of these items.")
        return
    _say(score_finding(comparison, choice.chosen))
    st.caption(
        f"Scored on the {counted(comparison.n_reference, 'item')} that {plain(reference)} has "
        f"finished. Each annotator is scored on the items that {plain(reference)} also finished."
    )
    show_scores(comparison, choice.chosen)


def _draw_agreement(choice: ComparisonChoice) -> None:
    comparison = comparison_of(choice.summary, choice.reference)
    if comparison is not None:
        _say(agreement_finding(comparison))
        show_agreement(comparison, choice.chosen)


def _draw_claims(choice: ComparisonChoice) -> None:
    comparison = comparison_of(choice.summary, choice.reference)
    if comparison is not None:
        _say(claim_finding(comparison.claims, choice.reference))
        show_claims(comparison, choice.reference, choice.chosen)


# In what order they stand: rooms bring others (``spanlab.ui.panels``).
_VIEWS: dict[str, tuple[int, Callable[[ComparisonChoice], None]]] = {
    "Items": (10, _draw_items),
    "Scores": (20, _draw_scores),
    "Agreement": (30, _draw_agreement),
    "Claims": (40, _draw_claims),
}
