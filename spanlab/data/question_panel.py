"""What a dataset asks of each span and each answer, as rows to edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st
from pydantic import ValidationError

from spanlab.base.fields import message_of
from spanlab.data.label_panel import EditedRows
from spanlab.schema import DatasetSettings, Question
from spanlab.ui.common import plain

_OF: Final = {"span": "Each span", "answer": "Each answer"}
_KINDS: Final = {"choice": "Choice", "scale": "Scale", "text": "Text"}
_NEW: Final = Question.model_construct(name="").model_dump(mode="json")
_TRIED = "spanlab.questions-tried"  # that wrong questions were to be saved
ROWS: Final = EditedRows("question", "question", {**_NEW, "of": "answer"})


def edit_questions(settings: DatasetSettings, labels: Sequence[str]) -> dict[str, Any] | None:
    """Draw what is asked as rows that can be changed; a row in which nothing is typed is none.

    What is wrong is drawn under each row once somebody has tried to save it.

    Args:
        settings: those to begin with.
        labels: those that an attribute may be asked of alone.

    Returns:
        ``attributes`` and ``questions`` as they stand; None while one of them is wrong.
    """
    stored_questions = [("span", question) for question in settings.attributes]
    stored_questions += [("answer", question) for question in settings.questions]
    ROWS.begin({**question.model_dump(mode="json"), "of": of} for of, question in stored_questions)
    questions: dict[str, list[Question]] = {"span": [], "answer": []}
    is_right = True
    names: set[str] = set()
    for index, row in enumerate(ROWS.numbers):
        _draw(index, row, labels)
        values = ROWS.values(row)
        if not any(values[field] for field in ("name", "title", "options")):
            continue
        question, problem = _read_question(values)
        if question is not None and question.name in names:
            problem = f"“{question.name}” exists above"
        if question is None or problem:
            is_right = False
            if st.session_state.get(_TRIED):
                st.markdown(f":red[:material/error: {plain(problem)}]")
        else:
            names.add(question.name)
            questions[values["of"]].append(question)
    st.button("Add a question", icon=":material/add:", on_click=ROWS.add)
    if not is_right:
        if st.session_state.get(_TRIED):
            st.error("Nothing was saved: correct the questions marked above.")
        return None
    st.session_state.pop(_TRIED, None)
    return {"attributes": tuple(questions["span"]), "questions": tuple(questions["answer"])}


def show_problems() -> None:
    """Draw the page with what is wrong under each question."""
    st.session_state[_TRIED] = True
    st.rerun()


def _draw(index: int, row: int, labels: Sequence[str]) -> None:
    def key(field: str) -> str:
        return ROWS.key(row, field)

    with st.container(border=True):
        columns = st.columns((1.4, 2.2, 1.2, 1.1, 0.4, 0.4, 0.4), vertical_alignment="bottom")
        columns[0].text_input(
            f"{index + 1}. Name", key=key("name"), max_chars=64, help="Names its column in exports."
        )
        columns[1].text_input("What is asked", key=key("title"), max_chars=500)
        columns[2].selectbox("About", list(_OF), format_func=_OF.__getitem__, key=key("of"))
        columns[3].selectbox(
            "Answer", list(_KINDS), format_func=_KINDS.__getitem__, key=key("kind")
        )
        ROWS.draw_steps(columns[4:], index)
        _draw_response(row, labels)


def _draw_response(row: int, labels: Sequence[str]) -> None:
    def key(field: str) -> str:
        return ROWS.key(row, field)

    values = ROWS.values(row)
    options_box, labels_box, required = st.columns((3.2, 2, 1.2), vertical_alignment="bottom")
    if values["kind"] == "choice":
        options_box.multiselect(
            "Options",
            values["options"],
            key=key("options"),
            accept_new_options=True,
            placeholder="Type one and press Enter, then the next",
        )
    if values["kind"] == "scale":
        ends = options_box.columns((1.1, 1.3, 1.1, 1.3))
        for at, (field, name) in enumerate((("low", "From"), ("high", "To"))):
            ends[2 * at].number_input(name, -1_000, 1_000, key=key(field))
            ends[2 * at + 1].text_input(
                f"{name}: in words", key=key(f"{field}_title"), max_chars=100
            )
    if values["of"] == "span":
        every = list(dict.fromkeys((*labels, *values["labels"])))
        labels_box.multiselect(
            "Labels", every, key=key("labels"), placeholder="Spans of every label"
        )
    required.checkbox("Required", key=key("required"), help="Done needs a response to it.")


def _read_question(values: Mapping[str, Any]) -> tuple[Question | None, str]:
    """Return the question that the fields of a row make, or what is wrong with them."""
    fields = {name: value for name, value in values.items() if name != "of"}
    if values["kind"] != "choice":
        fields["options"] = ()
    if values["of"] == "answer":
        fields["labels"] = ()
    if not values["name"]:
        return None, "a question needs a name"
    try:
        return Question(**fields), ""
    except ValidationError as error:
        first_problem = error.errors()[0]
        if first_problem["loc"] == ("name",):
            return None, "Name: letters, digits, “_”, “-” and “.”, a letter first"
        return None, message_of(first_problem)
