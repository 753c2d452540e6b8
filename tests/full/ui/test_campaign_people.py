"""What the page Campaign shows of people, to whom, and how they are invited there."""

from __future__ import annotations

import re
from collections.abc import Callable

import pandas as pd
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from spanlab.app.visitor import routes
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.people.logins import INVITATION
from spanlab.schema import (
    OWNER,
    Actor,
    Annotation,
    AnnotatorKind,
    BlindRule,
    Item,
    Record,
    Role,
    Span,
    Status,
)
from spanlab.scoring.annotators import compare_dataset
from spanlab.storage import Store
from spanlab.ui import common

OpenPage = Callable[..., AppTest]
ANSWER = "Marie Curie was born in Paris in 1867."


@pytest.fixture
def mine(store: Store) -> Store:
    """Two items, which Ann and Ben have finished: on "apart" they do not agree."""
    paris, year = Span.of(ANSWER, 24, 29), Span.of(ANSWER, 33, 37)
    for name, of_ben in (("same", paris), ("apart", year)):
        marks = {"Ann": paris, "Ben": of_ben}
        annotations = (
            Annotation(annotator=who, kind=AnnotatorKind.PERSON, spans=(span,))
            for who, span in marks.items()
        )
        record = Record(item=Item(id=name, answer=ANSWER), annotations=tuple(annotations))
        store.import_records("mine", [record])
    return store


def test_progress_shows_what_each_person_finished_by_day(open_page: OpenPage, mine: Store) -> None:
    app = open_page("campaign", dataset="mine")
    assert not app.error, app.error[0].value
    app.segmented_control(key="spanlab.campaign").set_value("Items by day").run()
    assert "has pressed Done" in app.info[0].value
    done = SetStatus(status=Status.DONE)
    for item, who in (("same", "Ann"), ("apart", "Ann"), ("apart", "Ben")):
        writes = [SentOperation(f"{item}-{who}", 1, 0, done)]
        assert not mine.apply("mine", item, who, writes).refused
    table = app.run().dataframe[0].value
    assert table.groupby("Person")["Items"].sum().to_dict() == {"Ann": 2, "Ben": 1}
    app.session_state["spanlab.chosen.campaign-mine"] = frozenset({"Ben"})
    assert list(app.run().dataframe[0].value["Person"]) == ["Ben"]
    assert not app.exception


def test_progress_shows_what_each_person_marks_how_people_agree_and_how_long_they_take(
    open_page: OpenPage, mine: Store
) -> None:
    app = open_page("campaign", dataset="mine")

    def shown(view: str) -> pd.DataFrame:
        app.segmented_control(key="spanlab.campaign").set_value(view).run()
        assert not app.exception
        return app.dataframe[0].value

    labels = shown("Labels").set_index("Person")
    assert labels["Items"].to_dict() == {"Ann": 2, "Ben": 2}
    assert labels["“(no label)”"].to_dict() == {"Ann": 2, "Ben": 2}
    app.segmented_control(key="spanlab.campaign").set_value("Time per item").run()
    assert "No time has been measured" in app.info[0].value
    done = SetStatus(status=Status.DONE)
    for item, who, seconds in (("same", "Ann", 10.0), ("apart", "Ann", 20.0), ("same", "Ben", 6.5)):
        writes = [SentOperation(f"{item}-{who}", 1, 0, done, seconds=seconds)]
        assert not mine.apply("mine", item, who, writes).refused
    times = shown("Time per item")
    assert times[["Person", "Items", "Median"]].to_numpy().tolist() == [
        ["Ann", 2, 15.0],
        ["Ben", 1, 6.5],  # of one item alone, hence last
    ]
    assert times["Median 95 %"].isna().tolist() == [False, True]
    (today,) = shown("Agreement over time").to_dict("records")
    alpha = compare_dataset(mine, "mine").persons.alpha
    assert (today["Items"], today["Alpha"]) == (2, alpha)
    app.session_state["spanlab.chosen.campaign-mine"] = frozenset({"Ben"})
    assert "two of the people chosen" in app.run().info[0].value


def test_a_viewer_sees_the_progress_and_nothing_that_changes_it(
    open_page: OpenPage, mine: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    vera = Actor("oidc:vera", "Vera", {None: frozenset({Role.VIEWER})})
    monkeypatch.setattr(common, "_visitor", lambda: lambda _store: vera)
    app = open_page("campaign", dataset="mine")
    assert not app.exception
    assert not app.error
    views = app.segmented_control(key="spanlab.campaign")
    assert views.options == ["Items by day", "Labels", "Agreement over time", "Time per item"]
    views.set_value("Labels").run()
    assert list(app.dataframe[0].value["Person"]) == ["Ann", "Ben"]
    assert not [button for button in app.button if button.label.startswith(("Save", "Create"))]
    assert not app.expander
    # Whoever reviews blind sees what is their own.
    mine.import_records("mine", [Record(item=Item(id="not done", answer=ANSWER))])
    mine.change_settings("mine", lambda now: now.with_blind_rule(BlindRule.ALWAYS))
    ann = Actor("oidc:ann", "Ann", {None: frozenset({Role.ADJUDICATOR})})
    monkeypatch.setattr(common, "_visitor", lambda: lambda _store: ann)
    app = open_page("campaign", dataset="mine")
    app.segmented_control(key="spanlab.campaign").set_value("Labels").run()
    assert not app.exception
    assert [list(table.value["Person"]) for table in app.dataframe] == [["Ann"]]


def test_people_are_invited_renewed_and_revoked_on_campaign(
    open_page: OpenPage, mine: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_INVITE", "yes")
    monkeypatch.setenv("SPANLAB_URL", "http://localhost:8501")
    monkeypatch.setattr(common, "_visitor", lambda: lambda _store: OWNER)  # here are no cookies
    monkeypatch.setenv("LOGNAME", "cleo")  # whose account it is
    app = open_page("campaign", dataset="mine")

    def press(label: str) -> None:
        next(button for button in app.button if button.label == label).click().run()
        assert not app.exception

    press("Create links")
    assert "Enter at least one name" in app.error[0].value
    next(box for box in app.text_area if box.label.startswith("Names")).set_value("Nora")
    next(box for box in app.selectbox if box.label == "Role").set_value(Role.ADJUDICATOR)
    next(box for box in app.number_input if box.label.startswith("Links")).set_value(2)
    press("Create links")
    text = "\n\n".join(code.value for code in app.code)
    assert app.code[0].value.count("http") == 1  # each text is copied by itself
    assert "Nora: you are invited by cleo to mark what is wrong, and decide where" in text
    nora, *nobody = re.findall(r"http\S+", text)
    assert len(nobody) == 2
    client = TestClient(Starlette(routes=routes(lambda: mine)))
    page = client.get(INVITATION + nora.partition(INVITATION)[2]).text
    assert "Welcome, Nora" in page
    (said,) = re.findall("Nora: you are (invited.*?)\n", text)
    assert said.partition(". ")[0] in page  # the same words in the text and on its page
    assert said.partition(". ")[2] in page

    def choose() -> None:
        box = next(box for box in app.selectbox if box.label == "Link of")
        box.set_value(next(line for line in box.options if line.startswith("Nora"))).run()

    choose()
    press("New link for this person")
    assert re.fullmatch(r"http\S+", app.code[0].value)
    assert len(mine.access.tokens("invitation")) == 4
    next(box for box in app.text_area if box.label.startswith("Names")).set_value("Nora")
    next(box for box in app.number_input if box.label.startswith("Links")).set_value(0)
    press("Create links")
    assert len(mine.access.tokens("invitation")) == 4  # who is meant is asked first
    next(box for box in app.checkbox if "same person" in box.label).check()
    press("Create links")
    assert app.code[0].value.startswith("Nora: you are invited")
    assert not any("same person" in box.label for box in app.checkbox)
    assert {token.label for token in mine.access.tokens("invitation")} == {"Nora", ""}
    choose()
    press("Revoke")
    revoked = [token.label for token in mine.access.tokens("invitation") if token.revoked]
    assert set(revoked) == {"Nora"}
    assert "2 invited" in texts(app)  # of four links, one was renewed and one revoked
    assert "0 came" in texts(app)
    assert "Next: set the review plan" in texts(app)


def test_who_comes_by_links_is_invited_before_the_items_are_shared(
    open_page: OpenPage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_INVITE", "yes")
    monkeypatch.setenv("SPANLAB_URL", "http://localhost:8501")
    monkeypatch.setattr(common, "_visitor", lambda: lambda _store: OWNER)
    store.import_records("d", [Record(item=Item(id="a", answer=ANSWER))])
    store.change_settings("d", lambda now: now.with_guidelines("Mark it."))
    app = open_page("campaign", dataset="d")
    assert "Next: invite people." in texts(app)
    parts = [each.label.split("**")[1] for each in app.expander]
    assert parts.index("Invite people") < parts.index("Review plan")
    assert [each.label for each in app.expander if each.proto.expanded] == ["**Invite people**"]


def test_a_lead_who_reviews_blind_sees_no_agreement_before_the_end(
    open_page: OpenPage, mine: Store
) -> None:
    app = open_page("campaign", dataset="mine")
    assert "Agreement" in app.dataframe[0].value
    assert app.dataframe[0].value["Done"].sum() == 4  # also what was imported is done
    mine.import_records("mine", [Record(item=Item(id="not done", answer=ANSWER))])
    mine.change_settings("mine", lambda now: now.with_blind_rule(BlindRule.ALWAYS))
    app = open_page("campaign", dataset="mine")
    app.session_state["spanlab.review.reviewer"] = "Ann"
    app.run()
    assert "Agreement" not in app.dataframe[0].value
    assert "You review blind" in texts(app)
    mine.save_annotations("mine", [("not done", annotation_of("Ann"))])
    assert "Agreement" in app.run().dataframe[0].value


def annotation_of(person: str) -> Annotation:
    return Annotation(annotator=person, kind=AnnotatorKind.PERSON)


def texts(app: AppTest) -> str:
    return " ".join(part.value for part in (*app.markdown, *app.caption)).replace("\\", "")


def test_every_page_has_the_switcher_of_datasets_at_its_head(
    open_page: OpenPage, mine: Store
) -> None:
    other = Item(id="one", lang="fr", answer=ANSWER)
    mine.import_records("other", [Record(item=other)])
    pages = ("review", "compare", "measure", "campaign", "adjudicate", "detect", "export")
    for name in pages:
        app = open_page(name, dataset="mine")
        assert not app.exception, name
        switcher = app.selectbox(key="spanlab.dataset-choice")
        assert switcher.value == "mine", name
        assert switcher.options == ["mine · 2 items · und", "other · 1 item · fr"], name
        switcher.set_value("other").run()
        assert app.query_params["dataset"] == "other", name
        assert not app.exception, name


def test_help_leads_whom_it_may(mine: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer cannot write guidelines; a tour of samples is not for whoever was invited."""

    def drawn(code: str, *roles: Role, subject: str) -> AppTest:
        visitor = Actor(subject, "Vera", {None: frozenset(roles)})
        monkeypatch.setattr(common, "_visitor", lambda: lambda _store: visitor)
        app = AppTest.from_string(f"from spanlab.app import help\n{code}", default_timeout=30).run()
        assert not app.exception
        return app

    draw = "help._draw_guidelines()"
    assert "Ask its lead." in drawn(draw, Role.VIEWER, subject="oidc:vera").info[0].value
    assert "Ask" not in drawn(draw, Role.LEAD, subject="oidc:vera").info[0].value  # a link leads on
    titles = "import streamlit\nstreamlit.text([page.title for page in help.help_pages()])"
    assert "'Tour'" in drawn(titles, Role.VIEWER, subject="oidc:vera").text[0].value
    assert "'Tour'" in drawn(titles, Role.LEAD, subject="invitation:owner").text[0].value
    assert "'Tour'" not in drawn(titles, Role.VIEWER, subject="invitation:vera").text[0].value
