"""`mermaid`: an agent gathers evidence with a scripted model, search and pages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from detector_cases import Make, detect
from prompts import prompt_of

from spanlab.base.settings import Settings
from spanlab.detection import Detector
from spanlab.schema import Item, Passage, RecallStep, RemarkStep
from spanlab.search.addresses import ALLOWED
from spanlab.search.spec import SearchSpec
from spanlab.systems.mermaid.trace import ThoughtStep
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

CLAIM = "The tower of Aldmere was built in 1989."
ITEM = Item(id="tower", lang="en", answer=CLAIM)
HIT = "Ships pass by. The tower of Aldmere was finished in 1889. Trees are green."
PARTS = {
    "triplets": [
        {"subject": "tower of Aldmere", "relation": "built", "object": "1989", "attributes": None}
    ],
    "topics": ["architecture"],
}


class Web:
    """A search API and a page, on one scripted server."""

    def __init__(self, server: ModelServer) -> None:
        self.server, self.root = server, server.url.removesuffix("/v1")
        self.searched: list[str] = []
        self.page = "<p>The tower of Aldmere was a gift of the guilds in 1889.</p>"
        server.script(self.answer)

    def answer(self, ask: ModelRequest) -> ScriptedReply:
        parts = urlsplit(ask.path)
        if parts.path == "/search":
            (query,) = parse_qs(parts.query)["q"]
            self.searched.append(query)
            hit = {"title": "Towers", "url": f"{self.root}/tower", "content": HIT}
            return ScriptedReply(body={"results": [hit] if "nothing" not in query else []})
        if parts.path == "/tower":
            return ScriptedReply(body=self.page.encode(), headers={"Content-Type": "text/html"})
        return fail(404, "no such page")


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with ModelServer() as server:
        monkeypatch.setenv(ALLOWED, f"127.0.0.1:{server.port}")
        yield Web(server)


class Model:
    """Answers by what is asked; ``steps`` are its thoughts, of which the last one stays."""

    def __init__(self, *steps: object) -> None:
        self.steps = list(steps)
        self.prompts: list[str] = []
        self.judged: list[str] = []

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        wanted = re.findall(r"`\[\[ ## (\w+) ## \]\]`", prompt)[0]
        if wanted == "step":
            self.prompts.append(prompt)
            return say_fields(step=self.steps[min(len(self.prompts), len(self.steps)) - 1])
        if wanted == "ruling":
            self.judged.append(prompt)
        said: dict[str, object] = {
            "decomposition": PARTS,
            "ruling": {"reason": "it is from 1889", "verdict": "False"},
            "words": ["1989"],
        }
        return say_fields(**{wanted: said[wanted]})


def search(query: str, thought: str = "look it up") -> dict[str, object]:
    return {"thought": thought, "action": {"tool": "search", "arguments": {"query": query}}}


def mermaid(make: Make, web: Web, **options: object) -> Detector:
    spec = SearchSpec(url=f"{web.root}/search?q={{query}}&n={{k}}")
    return make("mermaid", retriever=spec, options={"claims": "answer", **options})


def thoughts(steps: Sequence[object]) -> list[ThoughtStep]:
    return [step for step in steps if isinstance(step, ThoughtStep)]


def test_a_claim_is_searched_for_read_about_and_refuted(
    model_server: ModelServer, make: Make, web: Web
) -> None:
    page = {"thought": "read", "action": {"name": "read_page", "input": f"{web.root}/tower"}}
    model = Model(search("Aldmere"), page, {"thought": "it is from 1889", "answer": "False"})
    model_server.script(model)
    found = detect(mermaid(make, web), ITEM)
    (claim,) = found.annotation.claims
    assert (claim.verdict, claim.note) == ("refuted", "it is from 1889")
    assert [span.text for span in found.annotation.spans] == ["1989"]
    assert [(quote.passage, quote.text, quote.stance) for quote in claim.evidence] == [
        (0, "The tower of Aldmere was finished in 1889.", "refutes"),
        (1, "The tower of Aldmere was a gift of the guilds in 1889.", "refutes"),
    ]
    told = thoughts(found.annotation.trace)
    assert [(step.round, step.tool, step.passages) for step in told] == [
        (1, "search", (0,)),
        (2, "read_page", (1,)),
        (3, None, ()),
    ]
    assert told[1].arguments == {"input": f"{web.root}/tower"}
    assert "tower of Aldmere · built · 1989; topics: architecture" in model.prompts[0]
    assert HIT in model.prompts[1]
    assert "gift of the guilds" in model.prompts[2]
    assert not model.judged


def test_a_page_that_says_it_is_from_after_the_claim_is_not_read(
    model_server: ModelServer, make: Make, web: Web
) -> None:
    """The search stated no date for it."""
    web.page += '<meta name="date" content="2021-03-01">'
    page = {"thought": "read", "action": {"name": "read_page", "input": f"{web.root}/tower"}}
    model = Model(search("Aldmere"), page, {"thought": "so", "answer": "False"})
    model_server.script(model)
    item = ITEM.model_copy(update={"meta": {"claim_date": "2020-10-31"}})
    found = detect(mermaid(make, web), item)
    assert [step.passages for step in thoughts(found.annotation.trace)] == [(0,), (), ()]
    assert "gift of the guilds" not in model.prompts[2]


@pytest.mark.parametrize(
    ("step", "observed"),
    [
        pytest.param(search("nothing"), "Nothing was found.", id="nothing-found"),
        pytest.param(
            {"thought": "x", "action": {"tool": "delete_all", "arguments": {}}},
            "no tool named 'delete_all'; available: search, read_page",
            id="no-such-tool",
        ),
        pytest.param(
            {"thought": "x", "action": {"tool": "search", "arguments": {"a": "1", "b": "2"}}},
            "'query' is missing: search takes query: string",
            id="wrong-arguments",
        ),
        pytest.param(
            {"thought": "x", "action": {"tool": "search", "arguments": {"query": 5}}},
            "'query' is '5', which is not of the type string",
            id="wrong-type",
        ),
        pytest.param(
            {"thought": "x", "action": {"tool": "read_page", "arguments": "http://evil.test/?k=1"}},
            "no search has found 'http://evil.test/?k=1'",
            id="an-address-of-the-model-s-own",
        ),
        pytest.param({"thought": "hm"}, "No tool was called, and no answer given.", id="neither"),
    ],
)
def test_what_a_call_cannot_do_is_an_observation(
    step: object, observed: str, model_server: ModelServer, make: Make, web: Web
) -> None:
    model = Model(step, {"thought": "so", "answer": "True"})
    model_server.script(model)
    found = detect(mermaid(make, web), ITEM)
    assert found.annotation.claims[0].verdict == "supported"
    assert observed in model.prompts[1]


QUERY = {"query": "Aldmere"}
CALLS: dict[str, dict[str, object]] = {
    "as in the paper": {"action": {"name": "search", "reason": "so", "input": "Aldmere"}},
    "action_input": {"action": "search", "action_input": "Aldmere"},
    "action_input with names": {"Action": "search", "Action Input": QUERY},
    "arguments beside the action": {"action": {"tool": "search"}, "arguments": QUERY},
    "tool and arguments at the top": {"tool": "search", "arguments": QUERY},
    "tool as the key": {"action": {"search": QUERY}},
    "tool as the key of a text": {"action": {"search": "Aldmere"}},
    "tool as the key of the step": {"search": QUERY},
    "brackets": {"action": "search[Aldmere]"},
    "call": {"action": 'search(query="Aldmere")'},
    "function call": {
        "tool_calls": [{"function": {"name": "search", "arguments": json.dumps(QUERY)}}]
    },
}
ANSWERS: dict[str, dict[str, object]] = {
    "as in the paper": {"answer": "True"},
    "action of this name": {"action": {"name": "Answer", "input": "True"}},
    "action with its input": {"action": "Final Answer", "action_input": "True"},
    "action as the key": {"action": {"Answer": "True"}},
    "field of an action": {"action": {"tool": "answer", "arguments": {"verdict": "True"}}},
    "colon": {"action": "Answer: True"},
    "brackets": {"action": "Finish[True]"},
    "final answer": {"Final Answer": "True"},
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_is_read_in_all_spellings(
    call: dict[str, object], model_server: ModelServer, make: Make, web: Web
) -> None:
    model_server.script(Model({"thought": "look", **call}, {"thought": "so", "answer": "True"}))
    found = detect(mermaid(make, web), ITEM)
    assert web.searched == ["Aldmere"]
    first, _ = thoughts(found.annotation.trace)
    assert (first.text, first.tool, first.failure) == ("look", "search", None)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_read_in_all_spellings(
    answer: dict[str, object], model_server: ModelServer, make: Make, web: Web
) -> None:
    model = Model({"thought": "so", **answer})
    model_server.script(model)
    (claim,) = detect(mermaid(make, web), ITEM).annotation.claims
    assert (claim.verdict, claim.note, len(model.prompts)) == ("supported", "so", 1)


def test_without_the_decomposer_the_names_in_the_claim_are_remembered_by(
    model_server: ModelServer, make: Make, web: Web
) -> None:
    def think(ask: ModelRequest) -> ScriptedReply:
        known = ask.text.split("[[ ## known ## ]]")[1].split("[[ ## ")[0]
        is_new = "nothing" in known and "no steps yet" in ask.text
        return say_fields(step=search("Aldmere") if is_new else {"answer": "True"})

    model_server.script(think)
    other = Item(id="other", lang="en", answer="The tower in Aldmere is old.")
    for item in (ITEM, other):
        found = detect(mermaid(make, web, decompose=False), item)
    assert web.searched == ["Aldmere"]
    (recall,) = (step for step in found.annotation.trace if isinstance(step, RecallStep))
    assert recall.entities == ("Aldmere",)


def test_what_was_found_of_a_common_noun_is_recalled_and_what_is_of_another_name_is_not(
    model_server: ModelServer, make: Make, web: Web
) -> None:
    stated = {
        "A tower is finished.": ("tower", "age"),
        "The Aldmere has a tower.": ("Aldmere", "tower"),
        "Oslo has an age.": ("Oslo", "steps"),
        "Aldmere has steps.": ("Aldmere", "steps"),
    }

    def think(ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        claim = next(each for each in stated if each in prompt)
        if "## decomposition ## ]]`" in prompt:
            triplet = dict(zip(("subject", "object"), stated[claim], strict=True))
            return say_fields(decomposition={"triplets": [triplet], "topics": []})
        return say_fields(step=search(claim) if "no steps yet" in prompt else {"answer": "True"})

    model_server.script(think)
    recalled = []
    for number, claim in enumerate(stated):
        found = detect(mermaid(make, web), Item(id=f"t{number}", lang="en", answer=claim))
        recalled += [[step.kind for step in found.annotation.trace].count("recall")]
    # A tower: nothing is known. Aldmere: what is known of a tower. Oslo's steps: nothing. Those of
    # Aldmere: what is known of Aldmere.
    assert recalled == [0, 1, 0, 1]


def test_a_model_that_loops_searches_once_and_is_made_to_answer(
    model_server: ModelServer, make: Make, web: Web
) -> None:
    model = Model(search("Aldmere"))
    model_server.script(model)
    found = detect(mermaid(make, web), ITEM)
    assert web.searched == ["Aldmere"]
    assert (len(model.prompts), len(model.judged)) == (5, 1)
    assert "the same call as in step 1" in model.prompts[2]
    (claim,) = found.annotation.claims
    assert (claim.verdict, claim.note) == ("refuted", "it is from 1889")
    told = thoughts(found.annotation.trace)
    assert [step.repeats for step in told] == [None, 1, 1, 1, 1, None]
    assert "forced" in told[-1].text


@pytest.mark.parametrize(
    ("options", "answer", "verdict"),
    [
        pytest.param({}, "not enough evidence", "refuted", id="two-classes-go-on"),
        pytest.param({"classes": 4}, "not enough evidence", "not-enough-evidence", id="not-enough"),
        pytest.param({"classes": 4}, "Conflicting", "conflicting", id="conflicting"),
        pytest.param({"steps": 0}, "supported", "refuted", id="no-steps"),
    ],
)
def test_the_answers_that_end_a_claim(
    options: dict[str, object],
    answer: str,
    verdict: str,
    model_server: ModelServer,
    make: Make,
    web: Web,
) -> None:
    model_server.script(Model({"thought": "x", "answer": answer}))
    found = detect(mermaid(make, web, **options), ITEM)
    assert found.annotation.claims[0].verdict == verdict


def test_the_tools_of_a_server_are_called_as_far_as_they_are_allowed(
    model_server: ModelServer, make: Make, settings: Settings
) -> None:
    strange = Path(__file__).parents[2] / "tools" / "strange_server.py"
    command = [sys.executable, str(strange)]
    servers = {"strange": {"command": command, "tools": ["look_up"]}, "gone": {"command": ["no"]}}
    (settings.home / "tools.json").write_text(json.dumps({"servers": servers}))
    call = {"thought": "ask", "action": {"tool": "strange.look_up", "arguments": "Aldmere"}}
    hidden = {"thought": "obey", "action": {"tool": "strange.secret", "arguments": {}}}
    answer = {"thought": "so", "answer": "False"}
    model = Model(call, hidden, answer)
    model_server.script(model)
    found = detect(make("mermaid", options={"claims": "answer", "tools": "strange"}), ITEM)
    assert "no tool named 'strange.secret'" in model.prompts[2]
    assert "it ran" not in model.prompts[2]
    (quote,) = found.annotation.claims[0].evidence
    assert quote.text == "The tower of Aldmere was finished in 1889."
    assert found.item.passages[quote.passage].title == "strange.look_up"
    model_server.script(Model(answer))
    found = detect(make("mermaid", options={"claims": "answer", "tools": "gone"}), ITEM)
    remarks = [step.text for step in found.annotation.trace if isinstance(step, RemarkStep)]
    assert any("judged without its tools: the tool server 'gone'" in r for r in remarks)


def test_without_a_search_the_item_s_passages_are_searched_and_nothing_is_taken_apart(
    model_server: ModelServer, make: Make
) -> None:
    model = Model(search("Aldmere tower"), {"thought": "so", "answer": "False"})
    model_server.script(model)
    passages = (Passage(text="Trees are green."), Passage(text=HIT))
    item = ITEM.model_copy(update={"passages": passages})
    found = detect(make("mermaid", options={"claims": "answer", "decompose": False}), item)
    assert found.item.passages == passages
    assert thoughts(found.annotation.trace)[0].passages == (1, 0)
    assert "read_page" not in model.prompts[0]
    asked = [json.dumps(ask.body) for ask in model_server.requests]
    assert not any("## decomposition ##" in body for body in asked)
    (quote,) = found.annotation.claims[0].evidence
    assert quote.passage == 1


def test_the_same_search_in_the_passages_of_another_item_finds_its_own(
    model_server: ModelServer, make: Make
) -> None:
    detector = make("mermaid", options={"claims": "answer"})
    for text in ("The tower of Aldmere was finished in 1889.", "The tower of Aldmere is new."):
        model_server.script(Model(search("Aldmere"), {"thought": "so", "answer": "True"}))
        item = ITEM.model_copy(update={"passages": (Passage(text=text),)})
        found = detect(detector, item)
        assert found.item.passages == item.passages
        assert thoughts(found.annotation.trace)[0].passages == (0,)
