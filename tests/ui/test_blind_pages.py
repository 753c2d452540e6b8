"""A dataset that is reviewed blind: no page and no file tells who reviews it what others said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from zipfile import ZipFile, is_zipfile

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.comparison.page import _VIEWS
from spanlab.data.export_choice import FORMATS
from spanlab.data.export_page import _KINDS
from spanlab.oplog.operations import AddSpan, CommentSpan, SentOperation, SetStatus
from spanlab.schema import (
    Actor,
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    Record,
    Role,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.ui import common
from spanlab.ui.panels import panels

OpenPage = Callable[..., AppTest]
SECRET = "SECRET"
ANSWER = "Marie Curie was born in Paris in 1867."


def says(
    name: str, kind: AnnotatorKind, *, secret: str = "", voters: tuple[str, ...] = ()
) -> Annotation:
    span = Span.of(ANSWER, 24, 29, label=secret or None).model_copy(update={"note": secret or None})
    claims = (Claim(text=f"{name} claims", verdict="refuted", note=secret or None),)
    return Annotation(
        annotator=name, kind=kind, spans=(span,), claims=claims, voters=voters, note=secret or None
    )


@pytest.fixture
def locked(store: Store) -> Store:
    """Of two items Ada has finished the first, and others both."""
    others = (
        says("d1", AnnotatorKind.DETECTOR),
        says("d2", AnnotatorKind.DETECTOR),
        says(f"Ben {SECRET}", AnnotatorKind.PERSON, secret=SECRET),
        says(f"gold {SECRET}", AnnotatorKind.GOLD, secret=SECRET),
        says("vote", AnnotatorKind.VOTE, voters=("d1", "d2")),
        says("mixed", AnnotatorKind.VOTE, secret=SECRET, voters=("d1", f"Ben {SECRET}")),
    )
    items = (Item(id=name, lang="en", answer=ANSWER) for name in ("first", "second"))
    store.import_records("mine", [Record(item=item, annotations=others) for item in items])
    writes = (
        SentOperation("s", 1, 0, AddSpan(span="x", start=0, end=5, label="ADAS")),
        SentOperation("s", 2, 1, CommentSpan(text="ADAS note")),
        SentOperation("s", 3, 2, SetStatus(status=Status.DONE)),
    )
    store.apply("mine", "first", "Ada", writes)
    store.apply(
        "mine", "second", "Ben SECRET", [SentOperation("t", 1, 0, CommentSpan(text=SECRET))]
    )
    store.change_settings("mine", lambda now: now.model_copy(update={"always_blind": True}))
    return store


def sent(app: AppTest) -> bytes:
    """Return all that a page sent to the browser."""
    assert not app.exception

    def walk(node: Any) -> Iterator[bytes]:
        proto = getattr(node, "proto", None)
        if proto is not None and hasattr(proto, "SerializeToString"):
            yield proto.SerializeToString()
        for child in getattr(node, "children", {}).values():
            yield from walk(child)

    return b"".join(walk(app._tree))


def read(app: AppTest) -> bytes:
    """Return the file that a page offers, unpacked."""
    path = app.session_state["spanlab.export-file"].path
    if not is_zipfile(path):
        return bytes(path.read_bytes())
    with ZipFile(path) as packed:
        return b"".join(packed.read(name) for name in packed.namelist())


@pytest.mark.system("offline")
# Of "gold SECRET" by name: no label of that one is anybody's own.
@pytest.mark.parametrize("who", ["Ada", f"gold {SECRET}", "mixed"])
@pytest.mark.parametrize("view", [*_VIEWS, *(panel.title for panel in panels())])
def test_compare_shows_what_detectors_and_oneself_said(
    who: str, view: str, open_page: OpenPage, locked: Store
) -> None:
    app = open_page("compare", dataset="mine", reviewer=who, view=view, item="second")
    shown = sent(app).replace(who.encode(), b"")
    assert SECRET.encode() not in shown
    assert b"d1" in shown
    assert b"reviewed blind" in shown


# Mu-SHROOM is of one only, AVeriTeC of claims with their numbers.
@pytest.mark.parametrize("format", sorted({*FORMATS} - {"mushroom", "averitec"}))
def test_files_hold_what_detectors_and_oneself_said(
    format: str, open_page: OpenPage, locked: Store
) -> None:
    app = open_page("export", dataset="mine", reviewer="Ada")
    (kind,) = (kind for kind, names in _KINDS.items() if format in names)
    app.segmented_control(key="export-kind").set_value(kind).run()
    for toggle in app.toggle:
        toggle.set_value(True).run()
    if app.radio:
        app.radio[0].set_value(format).run()
    app.button(key="make-export").click().run()
    assert SECRET.encode() not in sent(app)
    assert SECRET.encode() not in read(app)
    if format == "spanlab":
        assert read(app).count(b"ADAS") == 2
        assert read(app).count(b'"vote"') >= 2
    # Another name has another file.
    app.text_input(key="spanlab.review.reviewer").input("mixed").run()
    assert "spanlab.export-file" not in app.session_state
    assert b"ADAS" not in sent(app)


def test_who_does_not_review_sees_and_exports_all(open_page: OpenPage, locked: Store) -> None:
    app = open_page("compare", dataset="mine", reviewer="Zoe", view="Items", item="second")
    assert SECRET.encode() in sent(app)
    app = open_page("export", dataset="mine", reviewer="Zoe")
    app.button(key="make-export").click().run()
    assert SECRET.encode() in read(app)
    assert b"ADAS" in read(app)


def test_the_setting_says_otherwise(open_page: OpenPage, locked: Store) -> None:
    def shown(item: str) -> bool:
        return SECRET.encode() in sent(open_page("compare", item=item, reviewer="Ada"))

    def change(**values: bool) -> None:
        locked.change_settings("mine", lambda now: now.model_copy(update=values))

    change(shown_when_done=True)
    names = locked.datasets()[0].annotators
    assert SECRET in "".join(each.name for each in names)
    app = open_page("compare", item="second", reviewer="Ada")
    assert SECRET not in "".join(element.proto.body for element in app.get("html"))
    app = open_page("compare", item="first", reviewer="Ada")
    assert SECRET in "".join(element.proto.body for element in app.get("html"))
    change(always_blind=False)
    assert shown("second")


@pytest.mark.parametrize(("who", "may"), [("Ada", True), ("Eve", False), ("Zoe", True)])
def test_who_has_items_left_to_review_blind_does_not_adjudicate(
    who: str, may: bool, open_page: OpenPage, locked: Store
) -> None:
    plan = {"overlap": 1, "assigned_to": ("Eve",)}
    locked.change_settings("mine", lambda now: now.model_copy(update=plan))
    app = open_page("adjudicate", dataset="mine", reviewer=who)
    for button in app.button:
        if button.label.startswith("Continue as"):
            button.click().run()
    assert not app.error
    told = "".join(info.value for info in app.info)
    assert ("reviews this dataset blind and has 2 items left" in told) is not may
    assert any(each.label.startswith("Adopt unanimous items") for each in app.button) is may


@pytest.mark.parametrize("page", ["review", "adjudicate", "compare", "measure", "export"])
def test_only_who_has_not_logged_in_is_asked_for_a_reviewer(
    open_page: OpenPage, locked: Store, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    assert "Reviewer" in _boxes(open_page(page, dataset="mine", reviewer="Ada"))
    ada = Actor("oidc:ada", "Ada", {None: frozenset({Role.LEAD})})
    monkeypatch.setattr(common, "_visitor", lambda: lambda _store: ada)
    assert "Reviewer" not in _boxes(open_page(page, dataset="mine"))


@pytest.mark.parametrize("page", ["compare", "measure", "export"])
def test_who_sees_everything_is_neither_asked_for_a_name_nor_told_so(
    open_page: OpenPage, locked: Store, page: str
) -> None:
    app = open_page(page, dataset="mine", reviewer="Zoe")
    assert "Reviewer" not in _boxes(app)
    assert not any("You see" in each.value for each in app.caption)


def _boxes(app: AppTest) -> set[str]:
    assert not app.exception
    return {box.label for box in app.text_input}
