"""A dataset with a plan: every page counts what the plan gives to each person."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.review import page
from spanlab.review.span_editor import ReviewQueue
from spanlab.schema import Annotation, AnnotatorKind, Item, Record
from spanlab.storage import Store
from spanlab.worklists import paging

OpenPage = Callable[..., AppTest]


@pytest.fixture
def planned(store: Store) -> Store:
    """Six items for Ada, Ben and Cleo, one each; Ada has done her two, Cleo has not begun."""
    people = {"0": ("Ada",), "1": ("Ada", "Ben"), "2": ("Guest",), "3": ("Ada",)}
    store.import_records(
        "mine",
        [
            Record(
                item=Item(id=str(number), answer="one"),
                annotations=tuple(
                    Annotation(annotator=who, kind=AnnotatorKind.PERSON)
                    for who in people.get(str(number), ())
                ),
            )
            for number in range(6)
        ],
    )
    plan = {"overlap": 1, "assigned_to": ("Ada", "Ben", "Cleo"), "guidelines": ("a", "b")}
    store.change_settings("mine", lambda now: now.model_copy(update=plan))
    return store


def test_datasets_says_the_plan_and_how_far_everybody_is_with_their_part(
    open_page: OpenPage, planned: Store
) -> None:
    app = open_page("datasets")
    rules = "1 person per item, assigned to Ada, Ben and Cleo · 3 of 6 annotations done"
    about = next(text.value for text in app.caption if text.value.startswith("6 items"))
    went_by = about.split("  \n")[1]
    assert went_by == f"Plan: {rules} · guidelines version 2"
    bars = app.get("html")[0].proto.body
    for name, words in {
        "Ada": "2 of 2 done <span class='rest'>· 1 more done beyond the plan",
        "Ben": "1 of 2 done <span class='rest'>· 1 left",
        "Cleo": "0 of 2 done <span class='rest'>· 2 left",
        "Guest": "1 done <span class='rest'>· not in the plan",
    }.items():
        row = next(row for row in bars.split("role='listitem'") if f"'who'>{name} " in row)
        assert words in row


def test_what_others_marked_before_the_plan_is_offered_to_those_it_is_assigned_to(
    open_page: OpenPage, planned: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Published data and samples come with the marks of their people."""
    queues: list[ReviewQueue] = []
    monkeypatch.setattr(page, "answer_editor", lambda queue, *_: queues.append(queue))
    assert not open_page("review", dataset="mine", reviewer="Cleo").exception
    offered = paging.page(planned, "mine", queues[-1].query).rows
    assert [row.item_id for row in offered] == ["2", "4"]  # a guest has done the first


def test_export_says_what_the_plan_lacks(open_page: OpenPage, planned: Store) -> None:
    app = open_page("export")
    text = "".join(each.value for each in app.markdown)
    assert "3 of 6 planned annotations are missing." in text
    assert "not annotated by" not in text
