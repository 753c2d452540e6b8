"""The page Datasets."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from spanlab.data.dialogs_panel import ACTIONS, ask, show_dialog
from spanlab.data.import_form import import_round
from spanlab.data.import_panel import import_panel, show_result
from spanlab.data.importing import DATASET, detection_of_samples, prepare_samples
from spanlab.jobs import Jobs, JobState, JobView
from spanlab.jobs.panel import (
    EVERY,
    is_watched,
    job_actions,
    job_changed,
    job_head,
    latest_jobs,
    watch,
)
from spanlab.output.figures import counted
from spanlab.output.wording import plan_in_words
from spanlab.schema import UNDETERMINED, DatasetSummary, Permission
from spanlab.schema.progress import PlanProgress
from spanlab.ui.common import (
    actor,
    datasets_with,
    has_page,
    link,
    plain,
    store,
    switch_page,
    title,
)
from spanlab.ui.counts import add_assigned, counts_html
from spanlab.ui.messages import errors_shown, progress, show_news, tell_after_rerun
from spanlab.worklists.plans import plan_of

_STYLE = """<style>
[class*="st-key-dataset-"] a[data-testid="stPageLink-NavLink"] { min-height: 2.5rem; margin: 0;
  padding: 0.25rem 0.75rem; border: 1px solid rgba(128, 132, 149, .35); border-radius: 0.5rem; }
[class*="st-key-dataset-"] button:not([data-testid*="rimary"], :hover) { background: none; }
[class*="st-key-dataset-"] h3 { padding: 0; }
[class*="st-key-dataset-"] [data-testid="stCaptionContainer"] p { margin: 0 0 .4rem; }
</style>"""
_OPENED = "spanlab.import-opened"  # the form that is open, by its round: a new one is closed
_PER_PAGE = 5  # cards have a bounded height: no page is taller than three windows
_LISTED = 20  # versions of a dataset, and datasets in the bin; the commands name all
_LANGUAGES = 8  # named before the rest is summed up
_LANGUAGE = {UNDETERMINED: "language not stated"}


def page() -> None:
    """Draw the page."""
    summaries = datasets_with(Permission.MANAGE, versions=True)
    leads_all = actor().may(Permission.ADMINISTER)  # who alone makes datasets
    names = {summary.name for summary in summaries}
    datasets = [summary for summary in summaries if summary.version_of not in names]
    place = title("Datasets")
    st.html(_STYLE)
    show_news()
    if not datasets and leads_all:
        _first_steps()
        _draw_bin()
        return
    if leads_all:
        icon = ":material/upload_file:"
        place.button(
            "Import files", type="primary", icon=icon, key="import-files", on_click=_open_or_close
        )
        if st.session_state.get(_OPENED) == import_round():
            import_panel([summary.name for summary in datasets])
            st.divider()
    show_result()
    detections = latest_jobs("detect", datasets)
    for summary in _choose_page(datasets):
        own = [version for version in summaries if version.version_of == summary.name]
        _draw_card(summary, own, detections.get(summary.name))
    if leads_all:
        _draw_bin()
    show_dialog({summary.name: summary for summary in datasets})


def _open_or_close() -> None:
    is_open = st.session_state.get(_OPENED) == import_round()
    st.session_state[_OPENED] = None if is_open else import_round()


def _first_steps() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        about = "Questions and answers in 14 languages, with a detector and three annotators."
        st.markdown(f"**Look around first.** {about}", width="stretch")
        if st.button(
            "Load the sample dataset", type="primary", icon=":material/science:", key="load-samples"
        ):
            _load_samples()
    st.header("Import your own files", anchor=False)
    import_panel()


def _load_samples() -> None:
    with errors_shown(), progress("Preparing the samples", None) as advance:
        prepare_samples(store(), on_progress=advance)
        watch(Jobs(actor=actor()).submit(detection_of_samples()))
        tell_after_rerun(f"{DATASET} is ready: open it in Review.")
        st.rerun()


def _choose_page(datasets: Sequence[DatasetSummary]) -> Sequence[DatasetSummary]:
    """Return the datasets of one page, newest first; with many, people search and turn pages."""
    newest = list(reversed(datasets))
    if len(newest) <= _PER_PAGE:
        return newest
    search = st.text_input("Find", placeholder="Part of a name", icon=":material/search:")
    matching = [summary for summary in newest if search.lower() in summary.name.lower()]
    if not matching:
        st.info(f"None of the {len(newest)} names has “{plain(search)}” in it.")
        return []
    pages = -(-len(matching) // _PER_PAGE)
    number = st.pagination(pages, key="datasets-page") if pages > 1 else 1
    return matching[(number - 1) * _PER_PAGE : number * _PER_PAGE]


def _draw_versions(versions: Sequence[DatasetSummary]) -> None:
    """Draw the versions of a dataset, the newest first."""
    if versions:
        with st.expander(
            counted(len(versions), "version"), icon=":material/inventory_2:", type="compact"
        ):
            for version in versions[: -_LISTED - 1 : -1]:
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.markdown(
                        f"**{plain(version.name)}** · {counted(version.n_items, 'item')} · "
                        f"{version.created:%-d %B %Y} · SHA-256 {(version.digest or '')[:12]}…",
                        width="stretch",
                    )
                    link(
                        "compare", "Compare", icon=":material/compare_arrows:", dataset=version.name
                    )
                    link("export", "Export", icon=":material/download:", dataset=version.name)


def _draw_bin() -> None:
    """Draw what was deleted and can come back."""
    binned = store().binned()
    if not binned:
        return
    with st.expander(f"Bin: {counted(len(binned), 'dataset')}", icon=":material/delete:"):
        for dataset in binned[:_LISTED]:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(
                    f"**{plain(dataset.name)}** · {counted(dataset.n_items, 'item')} · deleted "
                    f"{dataset.deleted:%-d %B %Y}, will be deleted permanently on "
                    f"{dataset.until:%-d %B %Y}",
                    width="stretch",
                )
                if st.button("Restore", icon=":material/undo:", key=f"restore-{dataset.id}"):
                    with errors_shown("It stays in the bin."):
                        store().restore_dataset(dataset.name)
                        tell_after_rerun(f"{dataset.name} is back.")
                        st.rerun()


def _draw_card(
    summary: DatasetSummary, versions: Sequence[DatasetSummary], detection: JobView | None
) -> None:
    """Draw one dataset: what can be done with it first, then how far everybody is."""
    name = summary.name
    with st.container(border=True, key=f"dataset-{name}"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.header(plain(name), anchor=False, width="stretch")
            _draw_actions(summary)
        plan = plan_of(store(), summary)
        st.caption(
            "  \n".join(filter(None, [_describe_items(summary), _describe_rules(summary, plan)]))
        )
        annotators = add_assigned(summary.annotators, plan)
        if annotators:
            st.html(counts_html(summary, annotators, plan))
        else:
            st.caption("Nobody has annotated it yet: review it, or run a detector.")
        _draw_versions(versions)
        if detection is not None and (detection.state not in _GONE or is_watched(detection.id)):
            going = not detection.is_over or is_watched(detection.id)
            st.fragment(_draw_detection, run_every=EVERY if going else None)(detection.id)


def _draw_actions(summary: DatasetSummary) -> None:
    """Draw what can be done with a dataset; links look like the buttons beside them."""
    name = summary.name
    link("review", "Review", icon=":material/edit_note:", dataset=name)
    leads_all = actor().may(Permission.ADMINISTER)
    if leads_all and st.button(
        ACTIONS["detect"].label, icon=ACTIONS["detect"].icon, key=f"detect-{name}"
    ):
        ask("detect", name)
    lacking = {"detect"} if leads_all else {"detect", "duplicate"}
    if not summary.annotators:
        lacking |= {"vote", "annotators"}
    chosen_action = st.menu_button(
        "More",
        [*filter(has_page, _PAGES), *(action for action in ACTIONS if action not in lacking)],
        format_func=_action_title,
        key=f"more-{name}",
    )
    if chosen_action in _PAGES:
        switch_page(chosen_action, name)
    elif chosen_action:
        ask(chosen_action, name)


_PAGES = {
    "campaign": ":material/groups:",
    "compare": ":material/compare_arrows:",
    "export": ":material/download:",
}


def _action_title(action: str) -> str:
    if action in _PAGES:
        return f"{_PAGES[action]} {action.capitalize()}"
    label = ACTIONS[action].label
    return f"{ACTIONS[action].icon} {f':red[{label}]' if action == 'delete' else label}"


_GONE = {JobState.DONE, JobState.CANCELLED}  # these jobs have nothing more to say here


def _draw_detection(job_id: str) -> None:
    """Draw how far a detection is; when it ends, the counts are drawn again as well."""
    with errors_shown():
        view = Jobs(actor=actor()).find(job_id)
        if not view.is_over:
            watch(job_id)
        ended = view.is_over and is_watched(job_id)
        if ended:
            watch(job_id, over=True)
            _tell_end(view)
        if ended or job_changed():
            st.rerun()
        job_head(view)
        job_actions(view, "datasets")


def _tell_end(view: JobView) -> None:
    if view.state is not JobState.DONE:
        return
    detector, _, dataset = view.title.partition(" on ")
    good = view.progress.done - view.progress.failed
    failed = f"; {view.progress.failed:,} failed, see Jobs" if view.progress.failed else ""
    tell_after_rerun(f"{detector} annotated {counted(good, 'item')} of {dataset}{failed}.")


def _describe_rules(summary: DatasetSummary, plan: PlanProgress | None) -> str:
    """Say what people go by: the plan, with how far it is, and the guidelines."""
    parts = []
    if plan is not None:
        parts.append(f"Plan: {plain(plan_in_words(summary.settings))}")
        parts.append(f"{plan.done:,} of {plan.needed:,} annotations done")
    if summary.settings.guidelines_now:
        parts.append(f"guidelines version {len(summary.settings.guidelines)}")
    text = " · ".join(parts)
    return text[:1].upper() + text[1:]


def _describe_items(summary: DatasetSummary) -> str:
    ordered = sorted(summary.languages.items(), key=lambda pair: (-pair[1], pair[0]))
    named = [
        f"{_LANGUAGE.get(lang, plain(lang))} {count:,}" for lang, count in ordered[:_LANGUAGES]
    ]
    n_unnamed = sum(count for _, count in ordered[_LANGUAGES:])
    if n_unnamed:
        named.append(f"{len(ordered) - _LANGUAGES} more languages {n_unnamed:,}")
    return " · ".join(
        [counted(summary.n_items, "item"), *named, f"imported {summary.created:%-d %B %Y}"]
    )
