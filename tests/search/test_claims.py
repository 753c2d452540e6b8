"""What is asked: claim by claim, or in English; through real prompts to a scripted model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from spanlab.base.errors import UnavailableError, WrongKeyError
from spanlab.base.settings import Settings
from spanlab.models import Meter, ModelLayers, language_model
from spanlab.schema import Item, Passage
from spanlab.search.base import RetrievedPassages, SearchQuery, ensure, retrieve
from spanlab.search.queries import ClaimQueries, EnglishQueries
from spanlab.search.spec import WebSpec, retriever
from spanlab.testing import ModelServer, fail, say, say_fields

ITEM = Item(
    id="a", lang="de", question="Wie hoch ist der Turm?", answer="312 m. Er wurde 1850 gebaut."
)


@dataclass
class Echo:
    """Finds for each query two passages that say so, and one that all have in common."""

    name: str = "echo"
    asked: list[SearchQuery] = field(default_factory=list)
    fails_at: str = "nothing"

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        self.asked.append(query)
        if self.fails_at in query.text:
            raise UnavailableError("down")
        texts = (f"first of {query.text}", f"second of {query.text}", "common")
        return RetrievedPassages((query.text,), tuple(Passage(text=text) for text in texts))


def claims(*texts: str) -> str:
    listed = ", ".join(f'"{text}"' for text in texts)
    return f"[[ ## claims ## ]]\n[{listed}]\n\n[[ ## completed ## ]]"


def test_every_claim_is_asked_for(model_server: ModelServer) -> None:
    model_server.script(
        lambda ask: say(claims("The tower is 312 m", " Built  1850 ", "", "Built 1850"))
    )
    inner, meter = Echo(), Meter()
    lm = language_model(ModelLayers().resolve(), meter, cache=None)
    asked = ClaimQueries(inner, lm)
    item = asyncio.run(ensure(ITEM, asked))
    assert asked.name == "echo+claims"
    assert item.retrievals[0].queries == ("The tower is 312 m", "Built 1850")
    assert [passage.text for passage in item.passages] == [
        "first of The tower is 312 m",
        "first of Built 1850",
        "second of The tower is 312 m",
        "second of Built 1850",
        "common",
    ]
    assert {each.language for each in inner.asked} == {"de"}
    assert meter.usage.calls == 1
    prompt = model_server.requests[0].text
    assert ITEM.question in prompt
    assert ITEM.answer in prompt


def test_no_more_claims_than_allowed(model_server: ModelServer) -> None:
    model_server.script(lambda ask: say(claims(*(f"claim {n}" for n in range(30)))))
    inner = Echo()
    lm = language_model(ModelLayers().resolve(), Meter(), cache=None)
    asyncio.run(retrieve(ITEM, ClaimQueries(inner, lm, most=3)))
    assert [each.text for each in inner.asked] == ["claim 0", "claim 1", "claim 2"]


@pytest.mark.parametrize("answer", ["I do not know.", " "], ids=["no claims", "no answer"])
def test_where_nothing_is_claimed_the_question_is_asked(
    model_server: ModelServer, answer: str
) -> None:
    model_server.script(lambda ask: say(claims()))
    inner = Echo()
    lm = language_model(ModelLayers().resolve(), Meter(), cache=None)
    item = ITEM.model_copy(update={"answer": answer})
    asyncio.run(retrieve(item, ClaimQueries(inner, lm)))
    assert [each.text for each in inner.asked] == [ITEM.question]


def test_in_english_the_claims_are_and_the_question_that_stands_in_for_them(
    model_server: ModelServer,
) -> None:
    inner = Echo()
    asked = ClaimQueries(
        inner, language_model(ModelLayers().resolve(), Meter(), cache=None), english=True
    )
    model_server.script(
        lambda ask: say_fields(english="How tall?") if "english" in ask.text else say(claims())
    )
    asyncio.run(ensure(ITEM, asked))
    assert inner.asked == [SearchQuery("How tall?", language="en", item="a")]
    model_server.script(lambda ask: say(claims("Built in 1850")))
    asyncio.run(ensure(ITEM, asked))
    assert inner.asked[1:] == [SearchQuery("Built in 1850", language="en", item="a")]


def test_one_failing_query_fails_them_all_once_all_have_ended(model_server: ModelServer) -> None:
    model_server.script(lambda ask: say(claims("one", "two", "three")))
    inner = Echo(fails_at="two")
    lm = language_model(ModelLayers().resolve(), Meter(), cache=None)
    with pytest.raises(UnavailableError, match="down"):
        asyncio.run(retrieve(ITEM, ClaimQueries(inner, lm)))
    assert len(inner.asked) == 3  # what the others found lies in the cache for the next try


def test_the_question_is_put_into_english_and_the_answer_stays(model_server: ModelServer) -> None:
    english = "[[ ## english ## ]]\nHow tall is\nthe tower?\n\n[[ ## completed ## ]]"
    model_server.script(lambda ask: say(english))
    inner = Echo()
    lm = language_model(ModelLayers().resolve(), Meter(), cache=None)
    asked = EnglishQueries(inner, lm)
    found = asyncio.run(retrieve(ITEM, asked))
    assert asked.name == "echo+en"
    assert found.queries == ("How tall is the tower?",)
    assert inner.asked == [SearchQuery("How tall is the tower?", language="en", item="a")]


def test_a_question_in_english_needs_no_translation(model_server: ModelServer) -> None:
    inner = Echo()
    lm = language_model(ModelLayers().resolve(), Meter(), cache=None)
    item = ITEM.model_copy(update={"lang": "en-GB", "question": "How tall?"})
    asyncio.run(retrieve(item, EnglishQueries(inner, lm)))
    assert (model_server.count, inner.asked) == (
        0,
        [SearchQuery("How tall?", language="en-GB", item="a")],
    )


def test_where_there_is_no_question_the_answer_is_put_into_english(
    model_server: ModelServer,
) -> None:
    model_server.script(lambda ask: say_fields(english="It is 312 m tall."))
    inner = Echo()
    lm = language_model(ModelLayers().resolve(), Meter(), cache=None)
    item = ITEM.model_copy(update={"question": " "})
    assert asyncio.run(retrieve(item, EnglishQueries(inner, lm))).queries == ("It is 312 m tall.",)
    assert ITEM.answer in model_server.requests[0].text


def test_a_model_that_fails_fails_the_retrieval(model_server: ModelServer) -> None:
    model_server.script(lambda ask: fail(401))
    lm = language_model(ModelLayers().resolve(), Meter(), cache=None)
    for asked in (ClaimQueries(Echo(), lm), EnglishQueries(Echo(), lm)):
        with pytest.raises(WrongKeyError, match="OPENAI_API_KEY"):
            asyncio.run(ensure(ITEM, asked))


def test_a_specification_leads_to_both(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, settings_here: Settings
) -> None:
    monkeypatch.setenv("SPANLAB_SEARCH_BASE_URL", model_server.url)
    meter = Meter()
    both = WebSpec(queries="claims", translate=True)
    built = retriever(both, meter, settings_here)
    assert built.name == "web:sonar-pro+claims-en"
    model_server.script(
        lambda ask: say(claims("Built in 1850") if "most" in ask.text else "It was 1887.")
    )
    item = asyncio.run(ensure(ITEM, built))
    assert [passage.text for passage in item.passages] == ["It was 1887."]
    assert item.retrievals[0].queries == ("Built in 1850",)
    assert "English" in model_server.requests[0].text
    assert meter.usage.calls == 2
    assert [ask.body["model"] for ask in model_server.requests] == ["scripted-model", "sonar-pro"]

    again = asyncio.run(ensure(ITEM, retriever(both, meter, settings_here)))
    assert (again, model_server.count) == (item, 2)  # both calls lie on disk

    one = WebSpec(translate=True)
    assert retriever(one, meter, settings_here).name == "web:sonar-pro+en"
