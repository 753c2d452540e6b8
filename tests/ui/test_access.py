"""The page Access."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from spanlab.schema import Annotation, AnnotatorKind, Item, Record
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
