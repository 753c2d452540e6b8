"""The detector ``citations-model``, with a scripted model."""

from __future__ import annotations

import pytest
from detector_cases import Make, detect
from prompts import prompt_of

from spanlab.base.errors import UsageError
from spanlab.schema import Annotation, FactStep, Item, Passage, Status
from spanlab.search.spec import WebSpec
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

pytestmark = pytest.mark.system("offline")

TOWER = "The tower was finished in 1889. It is 330 metres tall."
BRIDGE = "The bridge was opened in 1932. “It took eight years to build,” said the mayor."
THIRD = "The tunnel has two lanes."
RIGHT = {"reason": "passage 1 says so", "verdict": "supported", "passages": [1], "words": []}


def item(answer: str) -> Item:
    passages = tuple(Passage(text=text) for text in (TOWER, BRIDGE, THIRD))
    return Item(id="a", lang="en", question="Which tower?", answer=answer, passages=passages)


def said_of(server: ModelServer, make: Make, answer: str, ruling: object) -> Annotation:
    server.script(lambda _ask: say_fields(ruling=ruling))
    return detect(make("citations-model"), item(answer)).annotation


def labels_of(said: Annotation) -> list[tuple[str, str]]:
    return [(str(span.label), span.text) for span in said.spans]


def test_each_stretch_is_one_call_with_what_it_cites_alone(
    model_server: ModelServer, make: Make
) -> None:
    def script(ask: ModelRequest) -> ScriptedReply:
        return say_fields(ruling=RIGHT)

    model_server.script(script)
    answer = "The tower is old [1]. The bridge was slow [2]. Ask again."
    said = detect(make("citations-model"), item(answer)).annotation

    first, second = sorted((prompt_of(ask) for ask in model_server.requests), key=len)
    assert TOWER in first
    assert BRIDGE in second
    for prompt, others in ((first, (BRIDGE, THIRD)), (second, (TOWER, THIRD))):
        assert not any(text in prompt for text in (*others, "Which tower?", "Ask again", "[2]"))
    assert said.spans == ()
    assert [(claim.verdict, claim.text) for claim in said.claims] == [
        ("supported", "The tower is old"),
        ("supported", "The bridge was slow"),
    ]
    facts = [step for step in said.trace if isinstance(step, FactStep)]
    assert {fact.reason for fact in facts} == {"passage 1 says so"}


def test_the_words_that_it_names_are_marked_with_its_reason(
    model_server: ModelServer, make: Make
) -> None:
    ruling = {"reason": "It is 330.", "verdict": "refuted", "passages": "[1]", "words": ["512"]}
    said = said_of(model_server, make, "The tower is 512 metres tall [1].", ruling)

    assert said.note is None
    assert labels_of(said) == [("not in the cited source", "512")]
    assert said.spans[0].note == "It is 330."
    assert said.spans[0].evidence[0].text == "It is 330 metres tall."
    assert [claim.verdict for claim in said.claims] == ["not-supported"]


@pytest.mark.parametrize("words", [[], ["on the Moon"]])
def test_without_words_of_it_the_whole_statement_is_marked(
    model_server: ModelServer, make: Make, words: list[str]
) -> None:
    ruling = {"reason": "", "verdict": "not enough evidence", "passages": [], "words": words}
    said = said_of(model_server, make, "Old: the lanes are blue [3].", ruling)

    assert labels_of(said) == [("not in the cited source", "Old: the lanes are blue")]


def test_another_source_that_says_so_is_found_without_a_call(
    model_server: ModelServer, make: Make
) -> None:
    ruling = {"reason": "", "verdict": "not-enough-evidence", "passages": [], "words": []}
    said = said_of(model_server, make, "The tower is 330 metres tall [2].", ruling)

    assert labels_of(said) == [("supported by another source", "The tower is 330 metres tall")]
    assert len(model_server.requests) == 1


def test_of_several_sources_those_that_it_needs_are_evidence(
    model_server: ModelServer, make: Make
) -> None:
    said = said_of(
        model_server, make, "The tower is 330 metres tall [3][1].", {**RIGHT, "passages": [2]}
    )

    (claim,) = said.claims
    assert [quote.passage for quote in claim.evidence] == [0]  # the second that is cited


def test_quotations_are_looked_up_and_sources_that_are_missing_are_named(
    model_server: ModelServer, make: Make
) -> None:
    answer = "The mayor said “It took nine years to build” [2][9]."
    said = said_of(model_server, make, answer, RIGHT)

    assert labels_of(said) == [("changed quotation", "nine"), ("no such source", "[9]")]


def test_a_reply_without_a_verdict_has_failed(model_server: ModelServer, make: Make) -> None:
    model_server.script(lambda _ask: say("I cannot judge that."))
    said = detect(make("citations-model"), item("The tower is old [1].")).annotation

    assert said.status is Status.FAILED


def test_what_cites_nothing_is_said_without_a_call(model_server: ModelServer, make: Make) -> None:
    said = said_of(model_server, make, "The tower is old.", RIGHT)

    assert said.note == "nothing is cited; only quotations were looked up"
    assert not model_server.requests


def test_a_retriever_is_refused(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPANLAB_SEARCH_API_KEY", "key")
    with pytest.raises(UsageError, match="takes no retriever"):
        make("citations-model", retriever=WebSpec())
