"""Choosing among the annotators of a dataset, three or a hundred: the one way on every page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import streamlit as st

from spanlab.schema import AnnotatorKind, AnnotatorSummary, Status
from spanlab.ui.common import plain
from spanlab.ui.counts import FEW, GROUPS, by_items, kind_beside, sort_by_kind

_SCROLLED = 30  # names of a group from which on they scroll in a box of their own
_BOX = 260  # pixels, the height of that box
_SORTS: dict[str, Callable[[AnnotatorSummary], tuple[object, ...]]] = {
    "Most items": by_items,
    "Name": lambda annotator: (annotator.name.casefold(),),
}


def choose_annotators(
    annotators: Sequence[AnnotatorSummary],
    *,
    key: str,
    default: Collection[str] | None = None,
    label: str = "Annotators",
) -> tuple[str, ...]:
    """Draw a button that opens the annotators in groups, to choose any number of them.

    The choice outlives the page; as long as nobody has touched it, annotators that are new are in
    it as ``default`` says.

    Args:
        annotators: those to choose from.
        key: what the choice is remembered under.
        default: the names chosen at first; None for all of them.
        label: what is chosen; the number chosen comes after it.

    Returns:
        The names chosen, in the order of ``annotators``; empty for none.
    """
    names = [annotator.name for annotator in annotators]
    choice = _AnnotatorChoice(
        f"spanlab.chosen.{key}", frozenset(names if default is None else default)
    )
    chosen_names = choice.chosen_names()
    count = sum(name in chosen_names for name in names)
    how_many = "all" if count == len(names) else f"{count:,} of"
    with st.popover(
        f"{plain(label)}: {how_many} {len(names):,}",
        icon=":material/group:",
        key=f"{choice.key}.popover",
    ):
        search, order = _ask_search(choice) if len(names) > FEW else ("", "Most items")
        matching = sorted(
            (
                annotator
                for annotator in annotators
                if search.casefold() in annotator.name.casefold()
            ),
            key=_SORTS[order],
        )
        if not matching:
            st.caption(f"No annotator has “{plain(search)}” in the name.")
        for kind in GROUPS:
            members = [annotator for annotator in matching if annotator.kind is kind]
            if members:
                _draw_group(choice, kind, members, search)
    return tuple(name for name in names if name in chosen_names)


def choose_annotator(
    annotators: Sequence[AnnotatorSummary],
    label: str,
    *,
    key: str,
    none: str | None = None,
    default: str | None = None,
    meaning: str | None = None,
) -> str | None:
    """Draw a box to choose one annotator, in the same groups; typing in it searches.

    Args:
        annotators: those to choose from, at least one if ``none`` is None.
        label: what is chosen.
        key: the widget's.
        none: what to call the choice of nobody; None if there is no such choice.
        default: the name chosen at first, else the first of the box.
        meaning: what the choice means.

    Returns:
        The name; None for nobody.
    """
    by_name = {annotator.name: annotator for annotator in sort_by_kind(annotators)}
    options = [*([] if none is None else [None]), *by_name]

    def format_name(name: str | None) -> str:
        if name is None:
            return none or ""
        beside = kind_beside(name, by_name[name].kind)
        return f"{name} ({beside})" if beside else name

    return st.selectbox(
        label,
        options,
        index=options.index(default) if default in options else 0,
        format_func=format_name,
        key=key,
        help=meaning,
    )


@dataclass(frozen=True)
class _AnnotatorChoice:
    """The names chosen, in the session's state; nothing is there until somebody touches it."""

    key: str
    default: frozenset[str]

    def chosen_names(self) -> frozenset[str]:
        return frozenset(st.session_state.get(self.key, self.default))

    def change(self, out: Collection[str], into: Collection[str]) -> None:
        st.session_state[self.key] = (self.chosen_names() - frozenset(out)) | frozenset(into)

    def change_by_button(self, out: Collection[str], into: Collection[str], group: str) -> None:
        """Change the names of a group by a button, which its pills are to follow.

        They are drawn again under another key: until the browser has drawn them it goes on sending
        what they showed before, which must not count as somebody's choice.
        """
        self.change(out, into)
        st.session_state[f"{group}.drawn"] = st.session_state.get(f"{group}.drawn", 0) + 1

    def pills_key(self, group: str) -> str:
        """Return the key of the group's pills: another one each time a button changed them."""
        return f"{group}.{st.session_state.get(f'{group}.drawn', 0)}"

    def change_by_pills(self, shown: Collection[str], group: str, widget: str) -> None:
        if widget == self.pills_key(group):
            self.change(shown, st.session_state[widget])


def _ask_search(choice: _AnnotatorChoice) -> tuple[str, str]:
    """Ask which names to show, and in which order."""
    left, right = st.columns(2, vertical_alignment="bottom")
    search = left.text_input(
        "Find", placeholder="Part of a name", icon=":material/search:", key=f"{choice.key}.find"
    )
    order = right.segmented_control(
        "Sort by", list(_SORTS), default="Most items", required=True, key=f"{choice.key}.sort"
    )
    return search.strip(), order


def _draw_group(
    choice: _AnnotatorChoice, kind: AnnotatorKind, members: Sequence[AnnotatorSummary], search: str
) -> None:
    """Draw one group: how many of it are chosen, all or none, and its names."""
    names, chosen_names = [annotator.name for annotator in members], choice.chosen_names()
    title, widget = GROUPS[kind], f"{choice.key}.{kind.value}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        count = sum(name in chosen_names for name in names)
        st.markdown(f"**{title}** {count:,} of {len(names):,}", width="content")
        for label, into in (("All", names), ("None", [])):
            st.button(
                label,
                type="tertiary",
                key=f"{widget}.{label}",
                help=f"{label} of the {title.lower()} found" if search else None,
                on_click=choice.change_by_button,
                args=(names, into, widget),
            )
        is_open = bool(search) or _ask_unfolded(f"{widget}.open", len(names))
    _draw_names(choice, widget, title, members if is_open else members[:FEW])


def _ask_unfolded(key: str, count: int) -> bool:
    """Say whether a group is shown whole, and offer the other."""
    is_open = bool(st.session_state.get(key, False))
    if count > FEW:
        st.button(
            "Show fewer" if is_open else f"Show {count - FEW:,} more",
            type="tertiary",
            key=f"{key}.button",
            on_click=st.session_state.__setitem__,
            args=(key, not is_open),
        )
    return is_open


def _draw_names(
    choice: _AnnotatorChoice, group: str, title: str, shown: Sequence[AnnotatorSummary]
) -> None:
    names, chosen_names = [annotator.name for annotator in shown], choice.chosen_names()
    labels = {
        annotator.name: f"{plain(annotator.name)} · {annotator.counts.get(Status.DONE, 0):,}"
        for annotator in shown
    }
    widget = choice.pills_key(group)
    st.session_state[widget] = [name for name in names if name in chosen_names]
    with st.container(height=_BOX if len(names) > _SCROLLED else "content", border=False):
        st.pills(
            title,
            names,
            selection_mode="multi",
            format_func=labels.__getitem__,
            key=widget,
            label_visibility="collapsed",
            on_change=choice.change_by_pills,
            args=(names, group, widget),
        )
