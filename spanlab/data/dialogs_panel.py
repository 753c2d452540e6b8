"""What the Datasets page asks before it works on one dataset.

One of the dialogs edits its annotators: renames, merges, removes them, copies them as gold labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

import streamlit as st

from spanlab.data.versions import snapshot
from spanlab.detection.entry import DetectorEntry, installed
from spanlab.detection.request import RunOptions, request_with_options
from spanlab.jobs import Jobs
from spanlab.jobs.panel import latest_job, watch
from spanlab.output.figures import counted
from spanlab.schema import AnnotatorKind, AnnotatorSummary, DatasetSummary, Status
from spanlab.scoring.votes import vote_dataset
from spanlab.storage.annotators import gold_name
from spanlab.storage.datasets import (
    copy_as_gold,
    describe_undoing_gold,
    rename_annotator,
    undo_gold,
)
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import actor, forget_dataset, link, plain, remember_dataset, store
from spanlab.ui.messages import errors_shown, progress, tell_after_rerun

_OPEN = "spanlab.dialog"
_PROCESSES = 8  # of the detector that is started here


@dataclass(frozen=True)
class DatasetAction:
    """Something that can be done with a dataset once its dialog is filled in."""

    label: str
    icon: str
    body: Callable[[DatasetSummary], None]


def ask(action: str, dataset: str) -> None:
    """Open the dialog of one of ``ACTIONS`` for a dataset."""
    st.session_state[_OPEN] = (action, dataset)


def show_dialog(summaries: Mapping[str, DatasetSummary]) -> None:
    """Draw the dialog that is open, if one is and its dataset still exists."""
    name, dataset = st.session_state.get(_OPEN, ("", ""))
    if dataset in summaries:
        action = ACTIONS[name]
        title = f"{action.label.rstrip('…')}: {plain(dataset)}"
        # Closing it runs the page again, which also stops work that is under way.
        st.dialog(title, icon=action.icon, on_dismiss=_forget)(action.body)(summaries[dataset])


def _detect(summary: DatasetSummary) -> None:
    name = st.selectbox(
        "Detector",
        [
            name
            for name, entry in installed().items()
            if isinstance(entry, DetectorEntry) and not (entry.asks_models or entry.required)
        ],
        help="offline works without a model and without network: it marks what the passages and "
        "the question do not support.",
    )
    done = _count_finished(summary, name)
    n_left = summary.n_items - done
    if not n_left:
        st.info(f"{plain(name)} has finished all {counted(summary.n_items, 'item')}.")
    elif done:
        st.caption(f"{counted(done, 'item')} done, {n_left:,} remaining.")
    else:
        st.caption(f"{counted(n_left, 'item')} to do.")
    going = latest_job("detect", summary.name, [summary])
    if going is not None and not going.is_over:
        n_left = 0
        st.info(f"{plain(going.title)} is {going.state} already.")
    if st.button("Start", type="primary", disabled=not n_left, key="start-detector"):
        with errors_shown("Nothing was started."):
            options = RunOptions(detectors=(name,), concurrency=_PROCESSES)
            run = request_with_options(store(), summary.name, options)
            watch(Jobs(actor=actor()).submit(run))
            _forget()
            st.rerun()


def _vote(summary: DatasetSummary) -> None:
    able = [
        annotator for annotator in summary.annotators if annotator.kind is not AnnotatorKind.VOTE
    ]
    voters = choose_annotators(
        able,
        key=f"vote-{summary.name}",
        default=[annotator.name for annotator in able if annotator.kind is AnnotatorKind.PERSON],
        label="Annotators",
    )
    st.caption("Each has one vote per character. Only finished annotations count.")
    with st.form("vote", border=False):
        name = st.text_input("Vote name", "vote", help="An earlier vote of this name is replaced.")
        cleanup = st.checkbox(
            "Trim spans as Mu-SHROOM did",
            help="Moves the edges of raw spans off punctuation and spaces before they vote, as "
            "SemEval-2025 Task 3 did with its annotators' spans.",
        )
        if st.form_submit_button("Vote", type="primary"):
            with errors_shown():
                remarks: list[str] = []
                with progress("Voting", summary.n_items) as advance:
                    count = vote_dataset(
                        store(),
                        summary.name,
                        voters,
                        name=name.strip(),
                        cleanup="mushroom" if cleanup else "none",
                        on_progress=advance,
                        on_remark=remarks.append,
                    )
                news = f"{name.strip()} has {counted(count, 'vote')} in {summary.name}."
                _finish(" ".join((news, *remarks)))


def _annotators(summary: DatasetSummary) -> None:
    edit_annotators(summary, _finish)


def _rename(summary: DatasetSummary) -> None:
    with st.form("rename", border=False):
        new = st.text_input("New name", summary.name).strip()
        if st.form_submit_button("Rename", type="primary"):
            with errors_shown():
                store().rename_dataset(summary.name, new)
                remember_dataset(new)
                _finish(f"{summary.name} is now called {new}.")


def _duplicate(summary: DatasetSummary) -> None:
    with st.form("duplicate", border=False):
        st.caption("Copies all items, annotations and settings, without undo history and times.")
        new = st.text_input("Name of the copy", f"{summary.name} copy").strip()
        if st.form_submit_button("Duplicate", type="primary"):
            with errors_shown("Nothing was copied."):
                with st.spinner("Copying …", show_time=True):
                    store().duplicate_dataset(summary.name, new)
                _finish(f"{new} is a copy of {summary.name}.")


def _snapshot(summary: DatasetSummary) -> None:
    with st.form("snapshot", border=False):
        st.caption(
            "A version keeps all items and annotations as they are now and never changes. Compare, "
            "Export and the command line take it like a dataset."
        )
        name = st.text_input("Name of the version", f"{datetime.now(UTC):%Y-%m-%d}").strip()
        if st.form_submit_button("Save version", type="primary"):
            with errors_shown("Nothing was saved."):
                with progress("Saving", summary.n_items) as advance:
                    snapshot(store(), summary.name, name, advance)
                _finish(f"{summary.name}@{name} is saved.")


def _delete(summary: DatasetSummary) -> None:
    lost = "\n".join(f"- {plain(loss)}" for loss in _list_lost(summary))
    text = f"**This deletes, for everybody:**\n{lost}\n\nFor 30 days the bin can bring it back."
    st.error(text, icon=":material/delete_forever:")
    link("export", "Export it first", icon=":material/download:", dataset=summary.name)
    with st.form("delete", border=False):
        typed = st.text_input(f"Type **{plain(summary.name)}** to confirm")
        st.html(_DANGER)
        if st.form_submit_button("Delete", type="primary", key="delete-dataset"):
            if typed != summary.name:
                st.error("That is not the name of the dataset. Nothing was deleted.")
                return
            with errors_shown():
                store().bin_dataset(summary.name)
                forget_dataset(summary.name)
                _finish(f"{summary.name} was deleted. The bin below keeps it for 30 days.")


def _list_lost(summary: DatasetSummary) -> Iterator[str]:
    """Yield what goes with a dataset, part by part."""
    yield f"{counted(summary.n_items, 'item')}, with questions, answers and passages"
    for kind, whose in _WHOSE.items():
        members = [annotator for annotator in summary.annotators if annotator.kind is kind]
        done = sum(annotator.counts.get(Status.DONE, 0) for annotator in members)
        if members:
            yield f"{counted(done, 'annotation')} by {counted(len(members), whose)}"
    edits = store().n_operations(summary.name)
    if edits:
        yield f"the history of {counted(edits, 'edit')} in Review"
    versions = len(summary.settings.guidelines)
    guidelines = f" and {counted(versions, 'version')} of the guidelines" if versions else ""
    yield f"{counted(len(summary.settings.labels), 'label')}{guidelines}"


_WHOSE = {
    AnnotatorKind.PERSON: "annotator",
    AnnotatorKind.DETECTOR: "detector",
    AnnotatorKind.VOTE: "vote",
    AnnotatorKind.GOLD: "set of gold labels",
}
_DANGER = """<style>.st-key-delete-dataset button { background: #b3261e; border-color: #b3261e;
  color: #fff; } .st-key-delete-dataset button:hover { background: #8c1d18; }</style>"""
ACTIONS: Mapping[str, DatasetAction] = {
    "detect": DatasetAction("Detect…", ":material/manage_search:", _detect),
    "vote": DatasetAction("Vote…", ":material/how_to_vote:", _vote),
    "annotators": DatasetAction("Annotators…", ":material/group:", _annotators),
    "rename": DatasetAction("Rename…", ":material/edit:", _rename),
    "duplicate": DatasetAction("Duplicate…", ":material/content_copy:", _duplicate),
    "snapshot": DatasetAction("Save version…", ":material/inventory_2:", _snapshot),
    "delete": DatasetAction("Delete…", ":material/delete:", _delete),
}


def _count_finished(summary: DatasetSummary, detector: str) -> int:
    for annotator in summary.annotators:
        if annotator.name == detector:
            counts = annotator.counts
            return counts.get(Status.DONE, 0) + counts.get(Status.SKIPPED, 0)
    return 0


def _forget() -> None:
    st.session_state.pop(_OPEN, None)


def _finish(news: str) -> NoReturn:
    _forget()
    tell_after_rerun(news)
    st.rerun()


Finish = Callable[[str], NoReturn]


def edit_annotators(summary: DatasetSummary, finish: Finish) -> None:
    """Draw the dialog: one annotator, and what to do with it.

    Args:
        summary: the dataset.
        finish: closes the dialog and says what was done.
    """
    if not summary.annotators:
        st.info("Nobody has annotated this dataset yet.")
        return
    people_first = sorted(
        summary.annotators, key=lambda annotator: annotator.kind is not AnnotatorKind.PERSON
    )
    annotator = st.selectbox(
        "Annotator",
        people_first,
        index=None,
        placeholder="Choose an annotator",
        format_func=lambda option: f"{option.name} ({option.kind.value})",
        key="edited-annotator",
    )
    if annotator is None:
        return
    able = [name for name, (_, kinds) in _ACTS.items() if annotator.kind in kinds]
    act = st.radio("What to do", able, horizontal=True, key="annotator-act")
    with st.form("annotator", border=False):
        _ACTS[act][0](summary, annotator, finish)


def _rename_annotator(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    new = st.text_input("New name", annotator.name, max_chars=200).strip()
    if st.form_submit_button("Rename", type="primary"):
        with errors_shown("Nothing was changed."):
            rename_annotator(store(), summary.name, annotator.name, new)
            finish(f"{annotator.name} is now called {new} in {summary.name}.")


def _merge(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    other_names = [
        other.name
        for other in summary.annotators
        if other.kind is annotator.kind and other != annotator
    ]
    nobody = "Choose an annotator" if other_names else "Nobody else of this kind"
    into = st.selectbox("Into", other_names, index=None, placeholder=nobody)
    st.caption(
        f"{plain(annotator.name)}'s annotations move here. On items that both annotated, this "
        "annotator's are kept."
    )
    if st.form_submit_button("Merge", type="primary", disabled=not other_names):
        if into is None:
            st.error("Choose whom to merge with. Nothing was changed.")
            return
        with errors_shown("Nothing was changed."):
            n_shared = store().merge_annotators(summary.name, annotator.name, into)
            shared = f"; both had annotated {counted(n_shared, 'item')}" if n_shared else ""
            finish(f"{annotator.name} is {into} now in {summary.name}{shared}.")


def _undo_gold(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    st.caption(plain(describe_undoing_gold(summary, annotator.name)))
    if st.form_submit_button("Stop using as gold", type="primary"):
        with errors_shown("Nothing was changed."):
            finish(undo_gold(store(), summary.name, annotator.name))


def _copy(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    st.caption(
        "Gold labels are what others are scored against. They are a copy, under a name of its own, "
        f"of what {plain(annotator.name)} finished so far; {plain(annotator.name)} stays as it is."
    )
    name = st.text_input(
        "Name of the gold labels", gold_name(annotator.name), max_chars=200
    ).strip()
    if st.form_submit_button("Copy as gold labels", type="primary"):
        with errors_shown("Nothing was changed."):
            n_copied = copy_as_gold(store(), summary.name, annotator.name, name)
            finish(
                f"“{name}” is a copy of what {annotator.name} finished in {summary.name}: "
                f"{counted(n_copied, 'item')}."
            )


def _remove(summary: DatasetSummary, annotator: AnnotatorSummary, finish: Finish) -> None:
    n_annotated = sum(
        count for status, count in annotator.counts.items() if status != "not-annotated"
    )
    st.warning(
        f"This permanently deletes {plain(annotator.name)}'s annotations of "
        f"{counted(n_annotated, 'item')}.",
        icon=":material/warning:",
    )
    typed = st.text_input(f"Type **{plain(annotator.name)}** to confirm")
    if st.form_submit_button("Remove", type="primary"):
        if typed != annotator.name:
            st.error("That is not the name of the annotator. Nothing was removed.")
            return
        with errors_shown("Nothing was changed."):
            store().remove_annotator(summary.name, annotator.name)
            finish(f"{annotator.name} was removed from {summary.name}.")


_Act = Callable[[DatasetSummary, AnnotatorSummary, Finish], None]
_ACTS: dict[str, tuple[_Act, frozenset[AnnotatorKind]]] = {
    "Rename": (_rename_annotator, frozenset(AnnotatorKind)),
    "Merge": (_merge, frozenset(AnnotatorKind)),
    "Copy as gold labels": (_copy, frozenset({AnnotatorKind.PERSON, AnnotatorKind.GOLD})),
    "Stop using as gold": (_undo_gold, frozenset({AnnotatorKind.GOLD})),
    "Remove": (_remove, frozenset(AnnotatorKind)),
}
