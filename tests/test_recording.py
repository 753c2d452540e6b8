"""Recording a pipeline: the texts that led to an answer, from decorated functions."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest

import spanlab
from spanlab.errors import UsageError
from spanlab.schema import Process

CHAPTERS = ["The tower was built in 1889.", "Paris is a city in France.", "Trees are green."]


@spanlab.recorded(stage="summary")
def summarise(chapter: str) -> str:
    return f"Summary of {chapter[:9]}"


@spanlab.recorded(stage="answer", inputs=["summaries"])
def combine(summaries: list[str], *, model: str = "scripted") -> str:
    return f"{len(summaries)} summaries by {model}"


def edges(process: Process) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return text, stage and the texts it was made from, node by node."""
    return [
        (
            node.text,
            process.stage_of(node.id),
            tuple(process.by_id[source].text for source in node.sources),
        )
        for node in process.nodes
    ]


def test_a_pipeline_becomes_an_item_with_its_process() -> None:
    with spanlab.record() as process:
        combine([summarise(chapter) for chapter in CHAPTERS[:2]])
    item = process.item("report", "What happened?")
    assert (item.id, item.question, item.answer) == (
        "report",
        "What happened?",
        "2 summaries by scripted",
    )
    assert isinstance(item.process, Process)
    assert edges(item.process) == [
        (CHAPTERS[0], "source", ()),
        ("Summary of The tower", "summary", (CHAPTERS[0],)),
        (CHAPTERS[1], "source", ()),
        ("Summary of Paris is ", "summary", (CHAPTERS[1],)),
        (
            "2 summaries by scripted",
            "answer",
            ("Summary of The tower", "Summary of Paris is "),
        ),
    ]
    assert item.process.stages == ("source", "summary", "answer")


def test_what_did_not_lead_to_the_answer_is_left_out() -> None:
    with spanlab.record() as process:
        summarise(CHAPTERS[2])
        answer = combine([summarise(CHAPTERS[0])])
        summarise(CHAPTERS[1])
    assert {node.text for node in process.process(answer).nodes} == {
        CHAPTERS[0],
        "Summary of The tower",
        answer,
    }


def test_a_prompt_that_holds_earlier_texts_stands_for_them() -> None:
    @spanlab.recorded
    def ask(prompt: str) -> str:
        return "It was built in 1889."

    with spanlab.record() as process:
        summary = summarise(CHAPTERS[0])
        ask(f"Answer from this: {summary}")
    assert edges(process.process())[-1] == ("It was built in 1889.", "ask", (summary,))


def test_a_function_that_summarises_its_own_summaries_has_counted_stages() -> None:
    with spanlab.record() as process:
        summarise(summarise(CHAPTERS[0]) + " and more")
    assert [stage for _, stage, _ in edges(process.process())] == ["1", "2", "3"]


def test_threads_and_tasks_record_at_the_same_time() -> None:
    @spanlab.recorded(stage="answer")
    async def join(*texts: str) -> str:
        await asyncio.sleep(0)
        return " ".join(texts)

    chapters = [f"Chapter {number} has its own words." for number in range(40)]
    with spanlab.record() as process, ThreadPoolExecutor(8) as pool:
        summaries = list(pool.map(lambda text: combine([text], model=text), chapters))

        async def main() -> list[str]:
            return await asyncio.gather(*(join(a, b) for a, b in pairwise(summaries)))

        joined = asyncio.run(main())
    found = process.process(joined[6])
    assert {node.text for node in found.nodes} == {
        *chapters[6:8],
        *summaries[6:8],
        joined[6],
    }


def test_outside_of_a_recording_functions_do_what_they_did() -> None:
    assert summarise(CHAPTERS[0]) == "Summary of The tower"
    assert summarise.__name__ == "summarise"


def test_an_answer_that_nobody_returned_is_refused() -> None:
    with spanlab.record() as process:
        summarise(CHAPTERS[0])
    with pytest.raises(UsageError, match=r"@spanlab\.recorded"):
        process.process("something else")
    with spanlab.record() as nothing, pytest.raises(UsageError):
        nothing.process()
