"""The page Access."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from spanlab.people.logins import in_days
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Role
from spanlab.storage import Store


def test_a_person_is_forgotten_once_that_is_confirmed(
    store: Store, open_page: Callable[..., AppTest]
) -> None:
    anna = Annotation(annotator="Anna", kind=AnnotatorKind.PERSON)
    store.import_records("mine", [Record(item=Item(id="1", answer="A."), annotations=(anna,))])
    app = open_page("access")
    (name,) = (each for each in app.text_input if each.label == "Name of the person")
    (sure,) = (each for each in app.checkbox if each.label.startswith("I want"))
    (forget,) = (each for each in app.button if each.label == "Forget this person")
    name.set_value("Anna")
    forget.click().run()
    assert "tick the box" in app.error[0].value
    sure.check()
    forget.click().run()
    assert not app.exception
    (person,) = store.datasets()[0].names_of(AnnotatorKind.PERSON)
    assert person.startswith("person-")
    assert f"They are {person} now" in app.success[0].value.replace("\\", "")


def test_a_key_is_shown_once_and_can_be_revoked_also_without_a_name(
    store: Store, open_page: Callable[..., AppTest]
) -> None:
    store.import_records("mine", [Record(item=Item(id="1", answer="A."))])
    app = open_page("access")
    assert "Nobody has a role yet." in [each.value for each in app.caption]
    for name in ("nightly", ""):
        (label,) = (each for each in app.text_input if each.label == "What it is for")
        label.set_value(name)
        (create,) = (each for each in app.button if each.label == "Create key")
        create.click().run()
        assert len(app.code) == 1
    (line,) = (each for each in app.selectbox if each.label == "Revoke")
    (unnamed,) = (each for each in line.options if each.startswith("viewer ("))
    line.set_value(unnamed).run()
    app.button(key="revoke-key").click().run()
    assert not app.exception
    assert not app.code
    assert {token.label: bool(token.revoked) for token in store.access.tokens("key")} == {
        "nightly": False,
        "viewer": True,
    }


def test_the_invited_are_among_those_with_a_role_and_lose_it_here(
    store: Store, open_page: Callable[..., AppTest]
) -> None:
    store.import_records("mine", [Record(item=Item(id="1", answer="A."))])
    store.access.grant("carl@example.org", Role.LEAD, "mine")
    for name in ("Anna", "Ben", "Late"):
        store.access.make_token(
            "invitation", Role.ANNOTATOR, "mine", label=name, expires=in_days(1)
        )
    late = next(link for link in store.access.tokens("invitation") if link.label == "Late")
    store.access.revoke_token("invitation", late.id)
    app = open_page("access")
    people = app.dataframe[0].value
    assert [*people["Person"]] == ["carl@example.org", "Ben", "Anna"]
    assert people["Login"][1].endswith(", open")
    for name in ("Anna", "carl"):
        (line,) = (each for each in app.selectbox if each.label == "Revoke")
        line.set_value(next(each for each in line.options if each.startswith(name))).run()
        app.button(key="revoke-role").click().run()
        assert not app.exception
    assert [*app.dataframe[0].value["Person"]] == ["Ben"]
    assert {link.label for link in store.access.tokens("invitation") if not link.revoked} == {"Ben"}


def test_the_dataset_that_people_come_from_is_offered_first(
    store: Store, open_page: Callable[..., AppTest]
) -> None:
    for name in ("one", "two", "three"):
        store.import_records(name, [Record(item=Item(id="1", answer="A."))])
    offered = open_page("access", dataset="two").selectbox
    assert {box.value for box in offered if box.label == "Dataset"} == {"two"}
