"""A retriever is asked once for an item, whoever wants to know."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import date
from threading import Event, Thread

import pytest

from spanlab.base.errors import UnavailableError
from spanlab.schema import Item, Passage, Retrieval
from spanlab.search.base import (
    GivenPassages,
    RetrievedPassages,
    SearchQuery,
    ensure,
    retrieval_of,
    retrieve,
)

ITEM = Item(id="a", question="How tall?", answer="330 m", passages=(Passage(text="given"),))
FOUND = RetrievedPassages(("How tall?",), (Passage(text="330 metres"), Passage(text="given")))


@dataclass
class Counting:
    """Answers after a moment, and counts."""

    found: RetrievedPassages = FOUND
    error: Exception | None = None
    name: str = "counting"
    asked: int = 0

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        self.asked += 1
        await asyncio.sleep(0.05)
        if self.error:
            raise self.error
        return self.found


class Holding:
    """Answers when it is let go."""

    name = "holding"

    def __init__(self) -> None:
        self.asking, self.let_go = Event(), Event()

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        self.asking.set()
        await asyncio.to_thread(self.let_go.wait, 60)
        return FOUND


def test_what_is_found_is_appended_and_the_retrieval_noted() -> None:
    item = asyncio.run(ensure(ITEM, Counting()))
    assert [passage.text for passage in item.passages] == ["given", "330 metres"]
    assert item.retrievals == (
        Retrieval(retriever="counting", queries=("How tall?",), passages=(1, 0)),
    )


def test_a_second_run_fetches_nothing_also_if_nothing_was_found() -> None:
    retriever = Counting(found=RetrievedPassages(("How tall?",)))

    async def twice() -> Item:
        return await ensure(await ensure(ITEM, retriever), retriever)

    item = asyncio.run(twice())
    assert (retriever.asked, len(item.retrievals), item.passages) == (1, 1, ITEM.passages)


def test_the_given_passages_are_not_asked_for() -> None:
    assert asyncio.run(ensure(ITEM, GivenPassages())) is ITEM
    assert asyncio.run(ensure(ITEM, GivenPassages(), SearchQuery("another?"))) is ITEM
    assert asyncio.run(retrieve(ITEM, GivenPassages())) == RetrievedPassages()


@dataclass
class Library:
    """Finds a passage that says what was asked, and one that every query finds."""

    name: str = "library"
    asked: list[SearchQuery] = field(default_factory=list)

    async def search(self, query: SearchQuery) -> RetrievedPassages:
        self.asked.append(query)
        await asyncio.sleep(0.01)
        return RetrievedPassages(
            (query.text,), (Passage(text=f"on {query.text}"), Passage(text="shared"))
        )


def test_one_query_after_the_other_is_asked_for_one_item() -> None:
    library = Library()
    hops = [
        SearchQuery("Who built it?"),
        SearchQuery("When did Eiffel live?"),
        SearchQuery("Who built it?"),
    ]

    async def hop() -> Item:
        item = await ensure(ITEM, library)
        for query in hops:
            item = await ensure(item, library, query)
        return item

    item = asyncio.run(hop())
    assert [query.text for query in library.asked] == ["How tall?", *(q.text for q in hops[:2])]
    assert [passage.text for passage in item.passages] == [
        *("given", "on How tall?", "shared", "on Who built it?", "on When did Eiffel live?")
    ]
    found = [retrieval_of(item, library, query) for query in (None, *hops)]
    assert [each.passages for each in found if each] == [(1, 2), (3, 2), (4, 2), (3, 2)]
    assert Item.model_validate_json(item.model_dump_json()) == item


@pytest.mark.parametrize(
    ("query", "times"),
    [
        pytest.param(SearchQuery("Who?", k=3, before=date(2024, 5, 1)), 1, id="the same"),
        pytest.param(
            SearchQuery("Who?", language="en", k=3, before=date(2024, 5, 1)), 1, id="language"
        ),
        pytest.param(SearchQuery("Who?", k=4, before=date(2024, 5, 1)), 2, id="more passages"),
        pytest.param(SearchQuery("Who?", k=3, before=date(2024, 5, 2)), 2, id="another day"),
        pytest.param(SearchQuery("Who?"), 2, id="no limits"),
    ],
)
def test_a_query_is_known_by_its_text_its_number_and_its_day(
    query: SearchQuery, times: int
) -> None:
    library = Library()

    async def twice() -> Item:
        first = await ensure(ITEM, library, SearchQuery("Who?", k=3, before=date(2024, 5, 1)))
        return await ensure(first, library, query)

    item = asyncio.run(twice())
    assert (len(library.asked), len(item.retrievals)) == (times, times)


def test_asking_for_the_items_own_question_is_what_a_retrieval_asks_anyway() -> None:
    library = Library()
    own = asyncio.run(ensure(ITEM, library, SearchQuery("How tall?", language="en")))
    assert own.retrievals == (
        Retrieval(retriever="library", queries=("How tall?",), passages=(1, 2)),
    )
    assert asyncio.run(ensure(own, library)) is own
    assert len(library.asked) == 1


def test_detectors_that_ask_at_once_share_the_answer() -> None:
    retriever = Counting()

    async def five() -> list[Item]:
        return list(await asyncio.gather(*(ensure(ITEM, retriever) for _ in range(5))))

    items = asyncio.run(five())
    assert retriever.asked == 1
    assert all(item == items[0] for item in items)


def test_other_items_are_asked_for_themselves() -> None:
    retriever = Counting()
    other = ITEM.model_copy(update={"answer": "312 m"})  # the same id in another dataset

    async def both() -> None:
        await asyncio.gather(ensure(ITEM, retriever), ensure(other, retriever))

    asyncio.run(both())
    assert retriever.asked == 2


def test_event_loops_of_two_threads_share_the_answer() -> None:
    retriever = Holding()
    items: list[Item] = []

    def ask() -> None:
        items.append(asyncio.run(ensure(ITEM, retriever)))

    first = Thread(target=ask)
    first.start()
    assert retriever.asking.wait(timeout=60)
    second = Thread(target=ask)
    second.start()
    retriever.let_go.set()
    for thread in (first, second):
        thread.join(timeout=60)
    # The second came while the first was asking, or just after: then it asks for itself.
    assert items[0] == items[1]


def test_a_failure_is_everybodys_and_nothing_is_noted() -> None:
    retriever = Counting(error=UnavailableError("down"))

    async def three() -> list[Item | BaseException]:
        asking = (ensure(ITEM, retriever) for _ in range(3))
        return list(await asyncio.gather(*asking, return_exceptions=True))

    assert [str(each) for each in asyncio.run(three())] == ["down"] * 3
    assert retriever.asked == 1
    retriever.error = None
    assert len(asyncio.run(ensure(ITEM, retriever)).retrievals) == 1


def test_whoever_waits_asks_when_the_first_is_cancelled() -> None:
    retriever = Counting()

    async def cancel_the_first() -> Item:
        first = asyncio.create_task(ensure(ITEM, retriever))
        second = asyncio.create_task(ensure(ITEM, retriever))
        while retriever.asked == 0:
            await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second

    item = asyncio.run(cancel_the_first())
    assert (retriever.asked, len(item.passages)) == (2, 2)


def test_cancelling_one_who_waits_leaves_the_others_alone() -> None:
    retriever = Counting()

    async def cancel_the_second() -> Item:
        first = asyncio.create_task(ensure(ITEM, retriever))
        second = asyncio.create_task(ensure(ITEM, retriever))
        while retriever.asked == 0:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        return await first

    assert len(asyncio.run(cancel_the_second()).passages) == 2
    assert retriever.asked == 1
