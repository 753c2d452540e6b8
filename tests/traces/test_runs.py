"""The runs of a trace: a table of trees of spans, and what each of them answers."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from openinference_rows import call, row

from spanlab.formats.reader import NoAnswer
from spanlab.traces.reader import record_of
from spanlab.traces.runs import runs_of

BUILT, DESIGNED, OPENED = "When was it built?", "Who designed it?", "いつ開通しましたか?"
SAID = {
    BUILT: "It was built in 1989, I think.",
    DESIGNED: "Ines Holt designed all of it.",
    OPENED: "1935年に開通しました。🌉",
}
FOUND = {BUILT: "Completed in 1889.", DESIGNED: "By I. Holt, 1930.", OPENED: "1932年開通。"}
Rows = list[dict[str, Any]]


def rag(number: int, inside: str, question: str, at: tuple[int, int], **more: Any) -> Rows:
    """A function that searches and asks a model."""
    start, end = at
    found = FOUND[question]
    return [
        row(f"rag{number}", inside, at, asked=question, answered=SAID[question], **more),
        row(f"search{number}", f"rag{number}", (start, start + 1), kind="RETRIEVER", found=[found]),
        call(
            f"llm{number}",
            f"rag{number}",
            (start + 2, end - 1),
            ("system", f"Use: {found}"),
            ("user", question),
            wrote=SAID[question],
        ),
    ]


def asked(
    number: int | str,
    question: str,
    at: tuple[int, int],
    *before: tuple[str, str],
    inside: str = "all",
    prompt: str = "",
) -> dict[str, Any]:
    """A call that answers a question, asked as it is or in a prompt, behind other messages."""
    read = (*before, ("user", prompt or question))
    return call(f"llm{number}", inside, at, *read, wrote=SAID[question])


def search(number: int | str, at: tuple[int, int], found: str, **more: Any) -> dict[str, Any]:
    return row(f"search{number}", "all", at, kind="RETRIEVER", found=[found], **more)


def item(question: str, *found: str) -> tuple[str, str, list[str]]:
    return question, SAID[question], list(found)


ALL = row("all")
ONE = item(BUILT, FOUND[BUILT])
TWO, THREE = item(DESIGNED, FOUND[DESIGNED]), item(OPENED, FOUND[OPENED])
REWRITTEN, OTHER_NOTES = "its year of completion", "Notes: nothing else is known."
NOTES = "Notes: the work was completed in 1889."
LONG = {question: f"{text} It is still in use." for question, text in FOUND.items()}
CONDENSED = f"Please say: {DESIGNED}"
TURN = f"User: {BUILT}\nAssistant: {SAID[BUILT]}"
MORE, LONGER = "Tell me more.", f"{BUILT} And who paid for it?"
TWICE = ("It took two years to build.", "It was painted red at first.")
MESSAGE = "Translate this into French.\nMessage: The work was completed."
MEMORY = "The human asked for a year and was told 1989."
CHUNKS = ("Chunk 1 of the report says a thing.", "Chunk 2 of it says another.")
DRAFTS = ("A first note on the report.", "A second note on the report.")
PARTS = ("What is its first part?", "What is its second part?")
PART_ANSWERS = ("Its first part is the nave.", "Its second part is the spire.")
NOTED = ("", "利用者は完成年を尋ね、1989年と案内された。", "利用者は完成年と設計者を尋ねた。")
FACTS = ("Wants to know when it was built", "Is interested in who designed it")
SUGGESTED = ("1. Who paid?\n2. Is it open?", "1. 費用は?\n2. 見学できる?", "1. 橋はある?\n2. 駅は?")
AGAIN = (
    (BUILT, SAID[BUILT]),
    ("続けて。", "その前は木の塔でした。"),
    (DESIGNED, SAID[DESIGNED]),
    ("続けて。", "いまは見学できます。"),
    ("続けて。", "夜は光ります。"),
)
HYPOTHETICAL = "It may be very old, perhaps from 1850."
TABLE: dict[str, tuple[Rows, list[tuple[str, str, list[str]]]]] = {
    "side by side": (
        [
            ALL,
            *rag(1, "all", BUILT, (1, 9)),
            *rag(2, "all", DESIGNED, (1, 8)),
            *rag(3, "all", OPENED, (2, 7)),
        ],
        [ONE, TWO, THREE],
    ),
    "one after the other": (
        [ALL, *rag(1, "all", BUILT, (1, 9)), *rag(2, "all", DESIGNED, (10, 19))],
        [ONE, TWO],
    ),
    "in a function that returns a list": (
        [
            row(
                "all",
                asked=json.dumps({"args": [], "kwargs": {}}),
                answered=json.dumps(list(SAID.values())),
            ),
            *rag(1, "all", BUILT, (1, 9)),
            *rag(2, "all", DESIGNED, (1, 8)),
            *rag(3, "all", OPENED, (2, 7)),
        ],
        [ONE, TWO, THREE],
    ),
    "each in the one before": (
        [*rag(1, "", BUILT, (1, 9)), *rag(2, "rag1", DESIGNED, (1, 8))],
        [ONE, TWO],
    ),
    "the same question again": (
        [ALL, *rag(1, "all", BUILT, (1, 9)), *rag(2, "all", BUILT, (10, 19))],
        [ONE, ONE],
    ),
    "bare calls": (
        [ALL, asked(1, BUILT, (1, 9)), asked(2, DESIGNED, (1, 8)), asked(3, OPENED, (2, 7))],
        [item(BUILT), item(DESIGNED), item(OPENED)],
    ),
    "one call of several fails": (
        [
            ALL,
            asked(1, BUILT, (1, 9)),
            row("llm4", "all", (1, 3), kind="LLM", read=[("user", "Why so?")], failed=True),
            asked(2, DESIGNED, (1, 8)),
        ],
        [item(BUILT), item(DESIGNED)],
    ),
    "a retriever beside bare calls, by its query": (
        [
            ALL,
            row(
                "search1", "all", (1, 2), kind="RETRIEVER", asked=DESIGNED, found=[FOUND[DESIGNED]]
            ),
            row("search2", "all", (1, 2), kind="RETRIEVER", asked=BUILT, found=[FOUND[BUILT]]),
            asked(1, BUILT, (3, 9)),
            asked(2, DESIGNED, (3, 8)),
        ],
        [ONE, TWO],
    ),
    "a retriever before its call": (
        [
            ALL,
            search(1, (1, 2), FOUND[BUILT]),
            asked(1, BUILT, (3, 4)),
            search(2, (5, 6), FOUND[DESIGNED]),
            asked(2, DESIGNED, (7, 8)),
        ],
        [ONE, TWO],
    ),
    "names judge no run": (
        [
            {**ALL, "name": "evaluate"},
            *[
                {**span, "name": f"router of {span['name']}"}
                for span in rag(1, "evaluate", BUILT, (1, 9))
            ],
            *[
                {**span, "name": f"router of {span['name']}"}
                for span in rag(2, "evaluate", DESIGNED, (1, 9))
            ],
        ],
        [ONE, TWO],
    ),
    "what reads what the others said is one run with them": (
        [
            ALL,
            call("llm1", "all", (1, 2), ("user", f"Take notes of A. {FOUND[BUILT]}"), wrote=NOTES),
            call(
                "llm2",
                "all",
                (1, 3),
                ("user", "Take notes of B."),
                wrote="Notes: nothing else is known.",
            ),
            asked(3, BUILT, (4, 5), ("system", f"{NOTES}\n{OTHER_NOTES}")),
        ],
        [item(BUILT)],
    ),
    "a rewritten query is one run with the answer": (
        [
            ALL,
            call(
                "llm1",
                "all",
                (1, 2),
                ("user", f"Rewrite for a search: {BUILT}"),
                wrote="its year of completion",
            ),
            row(
                "search",
                "all",
                (3, 4),
                kind="RETRIEVER",
                asked="its year of completion",
                found=[FOUND[BUILT]],
            ),
            asked(2, BUILT, (5, 6), prompt=f"{FOUND[BUILT]}\n\nQuestion: {BUILT}"),
        ],
        [ONE],
    ),
    "a function with a question and an answer is one run, whatever it calls": (
        [
            row("agent", asked=BUILT, answered=SAID[BUILT]),
            asked(1, DESIGNED, (1, 2), inside="agent"),
            asked(2, BUILT, (3, 4), inside="agent"),
        ],
        [item(BUILT)],
    ),
    "steps of a graph that do not read each other": (
        [
            row("graph", asked=json.dumps({"topic": "x"}), answered=json.dumps({"state": 1})),
            row("plan", "graph", (1, 2)),
            call(
                "llm1",
                "plan",
                (1, 2),
                ("user", "List what is to be done."),
                wrote="First this, then that.",
            ),
            row("write", "graph", (3, 4)),
            asked(2, BUILT, (3, 4), inside="write"),
        ],
        [(BUILT, SAID[BUILT], [])],
    ),
    "several runs whose model says the same on the way": (
        [
            ALL,
            *[
                span
                for n, question in enumerate((BUILT, DESIGNED, OPENED))
                for span in (
                    call(
                        f"draft{n}",
                        "all",
                        (10 * n, 10 * n + 1),
                        ("user", f"Write a passage that answers: {question}"),
                        wrote=HYPOTHETICAL,
                    ),
                    search(n, (10 * n + 2, 10 * n + 3), FOUND[question], asked=HYPOTHETICAL),
                    asked(
                        n, question, (10 * n + 4, 10 * n + 5), ("system", f"Use: {FOUND[question]}")
                    ),
                )
            ],
        ],
        [ONE, TWO, THREE],
    ),
    "map steps that say the same are one run with what reads them": (
        [
            ALL,
            call("llm1", "all", (1, 2), ("user", "Notes of A, please."), wrote=OTHER_NOTES),
            call("llm2", "all", (1, 3), ("user", "Notes of B, please."), wrote=OTHER_NOTES),
            asked(3, BUILT, (4, 5), prompt=f"{OTHER_NOTES}\n{OTHER_NOTES}\n\nQuestion: {BUILT}"),
        ],
        [item(BUILT)],
    ),
    "rows with the same question, each rewritten first": (
        [
            ALL,
            *[
                span
                for n in (1, 2)
                for span in (
                    row(f"row {n}", "all", (10 * n, 10 * n + 9)),
                    call(
                        f"call{n}",
                        f"row {n}",
                        (10 * n, 10 * n + 1),
                        ("system", "Make it clear."),
                        ("user", BUILT),
                        wrote="Which year was the work completed in?",
                    ),
                    asked(n, BUILT, (10 * n + 2, 10 * n + 3), inside=f"row {n}"),
                )
            ],
        ],
        [item(BUILT), item(BUILT)],
    ),
    "a retriever that several runs share brings each what its prompt repeats": (
        [
            ALL,
            row("search", "all", (0, 1), kind="RETRIEVER", found=list(LONG.values())),
            *[
                asked(n, question, (2, 3 + n), ("system", f"Use: {text}"))
                for n, (question, text) in enumerate(LONG.items())
            ],
        ],
        [item(question, text) for question, text in LONG.items()],
    ),
    "a function over rows of a table": (
        [
            row(
                "all",
                asked=json.dumps({"args": [[{"question": BUILT}, {"question": DESIGNED}]]}),
                answered=json.dumps([{"a": SAID[BUILT]}, {"a": SAID[DESIGNED]}]),
            ),
            *rag(1, "all", BUILT, (1, 9)),
            *rag(2, "all", DESIGNED, (10, 19)),
        ],
        [ONE, TWO],
    ),
    "an agent is asked what a call that is put aside had made of the question": (
        [
            ALL,
            call(
                "rewriter",
                "all",
                (1, 2),
                ("system", "Make it clear."),
                ("user", BUILT),
                wrote=f"What is wanted is this: {BUILT}",
            ),
            asked(1, BUILT, (3, 4), prompt=f"What is wanted is this: {BUILT}"),
            call(
                "rewriter2",
                "all",
                (1, 2),
                ("system", "Make it clear."),
                ("user", DESIGNED),
                wrote=f"What is wanted is this: {DESIGNED}",
            ),
            asked(2, DESIGNED, (3, 5), prompt=f"What is wanted is this: {DESIGNED}"),
        ],
        [item(BUILT), item(DESIGNED)],
    ),
    "turns whose questions are condensed from the chat before": (
        [
            ALL,
            search(1, (1, 2), FOUND[BUILT], asked=BUILT),
            asked(1, BUILT, (3, 4)),
            row("condense", "all", (5, 6), asked=DESIGNED, answered=CONDENSED),
            call(
                "llm0",
                "condense",
                (5, 6),
                (
                    "user",
                    "Rephrase the follow up question.\n\nChat History:\n"
                    f"Human: {BUILT}\nAI: {SAID[BUILT]}\n\nFollow Up Input: {DESIGNED}",
                ),
                wrote=CONDENSED,
            ),
            search(2, (7, 8), FOUND[DESIGNED], asked=CONDENSED),
            row("answer", "all", (9, 10), asked=CONDENSED, answered=SAID[DESIGNED]),
            asked(
                2,
                DESIGNED,
                (9, 10),
                inside="answer",
                prompt=f"Context: {FOUND[DESIGNED]}\n\nQuestion: {CONDENSED}",
            ),
        ],
        [ONE, TWO],
    ),
    "an agent hands the question over to one that searches": (
        [
            row("all", answered=SAID[BUILT], asked=BUILT),
            row("handoff to guide", "all", (1, 2), kind="TOOL", asked="first", answered="guide"),
            row("search", "all", (3, 4), kind="TOOL", asked=BUILT, answered=FOUND[BUILT]),
            call(
                "llm1",
                "all",
                (5, 6),
                ("user", BUILT),
                ("tool", '{"assistant": "guide"}'),
                ("tool", FOUND[BUILT]),
                wrote=SAID[BUILT],
            ),
        ],
        [ONE],
    ),
    "an agent that says its answer alone, with a call that has the question": (
        [
            row("agent", kind="AGENT", answered=SAID[BUILT]),
            row(
                "llm",
                "agent",
                (1, 2),
                kind="LLM",
                read=[("user", f"<passage>{FOUND[BUILT]}</passage>\n\n{BUILT}")],
            ),
        ],
        [ONE],
    ),
    "a tool that answers with a message, in a run that was given one": (
        [
            row(
                "run",
                asked=json.dumps({"new_message": {"role": "user", "parts": [{"text": BUILT}]}}),
                answered=SAID[BUILT],
            ),
            row(
                "search",
                "run",
                (1, 2),
                kind="TOOL",
                answered=json.dumps(
                    {"id": "1", "name": "search", "response": {"results": [FOUND[BUILT]]}}
                ),
            ),
            row("agent", "run", (1, 3), kind="AGENT", answered=SAID[BUILT]),
        ],
        [ONE],
    ),
    "texts of a few letters that a retriever found for several runs": (
        [
            ALL,
            search(0, (0, 1), "By I. Holt"),
            *[
                asked(n, question, (2, 3 + n), ("system", "Use:\n[1] By I. Holt"))
                for n, question in enumerate((BUILT, DESIGNED))
            ],
        ],
        [item(BUILT, "By I. Holt"), item(DESIGNED, "By I. Holt")],
    ),
    "a call that is asked for more questions behind the answer": (
        [
            ALL,
            asked(1, BUILT, (1, 2)),
            call(
                "llm2",
                "all",
                (3, 4),
                ("user", BUILT),
                ("assistant", SAID[BUILT]),
                ("user", "### Task:\nSuggest 3-5 relevant follow-up questions."),
                wrote='{"follow_ups": ["Who paid for it?"]}',
            ),
        ],
        [item(BUILT)],
    ),
    "a call that condenses the question to itself": (
        [
            row("chat", asked=json.dumps({"message": DESIGNED})),
            call("condense", "chat", (1, 2), ("", f"Rephrase: {DESIGNED}"), wrote=DESIGNED),
            row("search", "chat", (2, 3), kind="RETRIEVER", found=[FOUND[DESIGNED]]),
            row("split", "chat", (3, 4), asked=json.dumps({"text": FOUND[DESIGNED]})),
            call("answer", "chat", (4, 5), ("", FOUND[DESIGNED]), wrote=SAID[DESIGNED]),
        ],
        [TWO],
    ),
    "turns of a chat": (
        [
            ALL,
            search(1, (1, 2), FOUND[BUILT], asked=BUILT),
            asked(1, BUILT, (3, 4)),
            asked(2, DESIGNED, (5, 6), ("user", BUILT), ("assistant", SAID[BUILT])),
        ],
        [ONE, item(DESIGNED)],
    ),
    "turns whose chat before stands in the instructions": (
        [
            ALL,
            asked(1, BUILT, (1, 2)),
            asked(
                2, DESIGNED, (5, 6), ("system", f"You are a guide.\n\nConversation so far:\n{TURN}")
            ),
        ],
        [item(BUILT), item(DESIGNED)],
    ),
    "a function that condenses the question with a prompt that names nothing": (
        [
            ALL,
            row("clear", "all", (1, 3), asked=DESIGNED, answered=CONDENSED),
            call("llm1", "clear", (1, 2), ("user", f"Clear, please: {DESIGNED}"), wrote=CONDENSED),
            asked(
                2, DESIGNED, (5, 6), prompt=f"Context: {FOUND[DESIGNED]}\n\nQuestion: {CONDENSED}"
            ),
        ],
        [TWO],
    ),
    "a question with a name and a colon in it": (
        [call("llm", "", (1, 2), ("user", MESSAGE), wrote=TWICE[0])],
        [(MESSAGE, TWICE[0], [])],
    ),
    "a search for two runs whose prompts have its text in another form": (
        [
            ALL,
            search(0, (0, 1), FOUND[BUILT], asked=BUILT),
            *[
                span
                for n in (1, 2)
                for span in (
                    row(f"rag{n}", "all", (2, 9), asked=BUILT, answered=SAID[BUILT]),
                    asked(
                        n,
                        BUILT,
                        (3, 8),
                        ("system", f"Use: {FOUND[BUILT].upper()}"),
                        inside=f"rag{n}",
                    ),
                )
            ],
        ],
        [ONE, ONE],
    ),
    "turns that instructions remember without names for who speaks": (
        [
            ALL,
            asked(1, BUILT, (1, 2)),
            asked(
                2,
                DESIGNED,
                (5, 6),
                ("system", f"Memories:\n- The user asked: {BUILT} I said: {SAID[BUILT]}"),
            ),
        ],
        [item(BUILT), item(DESIGNED)],
    ),
    "answers to questions that a model had put, in the instructions": (
        [
            ALL,
            call("split", "all", (0, 1), ("user", f"Split: {BUILT}"), wrote=json.dumps(PARTS)),
            *[
                call(f"llm{n}", "all", (2, 3), ("user", part), wrote=text)
                for n, (part, text) in enumerate(zip(PARTS, PART_ANSWERS, strict=True))
            ],
            call(
                "last",
                "all",
                (15, 16),
                ("system", "\n".join(map(" ".join, zip(PARTS, PART_ANSWERS, strict=True)))),
                ("user", BUILT),
                wrote=SAID[BUILT],
            ),
        ],
        [item(BUILT)],
    ),
    "turns with a summary of the chat before": (
        [
            ALL,
            asked(1, BUILT, (1, 2)),
            call(
                "memo",
                "all",
                (3, 4),
                ("user", f"Progressively summarize the lines of conversation.\n{TURN}"),
                wrote=MEMORY,
            ),
            asked(2, DESIGNED, (5, 6), ("system", f"Summary of the conversation: {MEMORY}")),
        ],
        [item(BUILT), item(DESIGNED)],
    ),
    "the same words in two turns": (
        [
            ALL,
            asked(1, BUILT, (1, 2)),
            *[
                call(
                    f"llm{n}",
                    "all",
                    (2 * n, 2 * n + 1),
                    ("user", BUILT),
                    ("assistant", SAID[BUILT]),
                    *((("user", MORE), ("assistant", TWICE[0])) if n == 3 else ()),
                    ("user", MORE),
                    wrote=text,
                )
                for n, text in enumerate(TWICE, 2)
            ],
        ],
        [item(BUILT), *((MORE, text, []) for text in TWICE)],
    ),
    "a question that goes on where another one ends": (
        [
            ALL,
            asked(1, BUILT, (1, 9)),
            call("llm2", "all", (2, 8), ("user", LONGER), wrote=TWICE[0]),
        ],
        [item(BUILT), (LONGER, TWICE[0], [])],
    ),
    "a call that answers from the answers to parts of its question": (
        [
            ALL,
            call("split", "all", (0, 1), ("user", f"Split: {BUILT}"), wrote=json.dumps(PARTS)),
            *[
                span
                for n, (part, text) in enumerate(zip(PARTS, PART_ANSWERS, strict=True))
                for span in (
                    row(f"rag{n}", "all", (2 + n, 8 + n), asked=part, answered=text),
                    call(f"llm{n}", f"rag{n}", (3, 4), ("user", part), wrote=text),
                )
            ],
            call(
                "last",
                "all",
                (15, 16),
                ("system", "\n".join(PART_ANSWERS)),
                ("user", BUILT),
                wrote=SAID[BUILT],
            ),
        ],
        [item(BUILT)],
    ),
    "agents that answer parts of a question, which is asked behind their answers": (
        [
            ALL,
            *[
                span
                for n, (part, text) in enumerate(zip(PARTS, PART_ANSWERS, strict=True))
                for span in (
                    row(f"agent{n}", "all", (2, 8), kind="AGENT", asked=part, answered=text),
                    call(f"llm{n}", f"agent{n}", (3, 4), ("user", part), wrote=text),
                )
            ],
            call(
                "last",
                "all",
                (15, 16),
                ("user", f"Notes:\n{PART_ANSWERS[0]}\n{PART_ANSWERS[1]}\n\nQuestion: {BUILT}"),
                wrote=SAID[BUILT],
            ),
        ],
        [item(BUILT)],
    ),
    "chunks that stand in the prompts of map steps alone": (
        [
            ALL,
            *[
                call(
                    f"map{n}",
                    "all",
                    (n, n + 1),
                    ("user", f"Passage: {CHUNKS[n]}\n\nQuestion: {BUILT}"),
                    wrote=DRAFTS[n],
                )
                for n in (0, 1)
            ],
            call(
                "reduce",
                "all",
                (6, 7),
                ("user", f"Combine:\n{DRAFTS[0]}\n{DRAFTS[1]}\n\nQuestion: {BUILT}"),
                wrote=SAID[BUILT],
            ),
        ],
        [item(BUILT, *CHUNKS)],
    ),
    "turns with a memory that a model keeps in another language": (
        [
            ALL,
            *[
                span
                for n, question in enumerate(SAID)
                for span in (
                    search(n, (10 * n, 10 * n + 1), FOUND[question], asked=question),
                    asked(
                        n,
                        question,
                        (10 * n + 2, 10 * n + 3),
                        ("system", f"あなたは案内係です。{NOTED[n]}"),
                        prompt=f"資料:\n[1] {FOUND[question]}\n\n質問: {question}",
                    ),
                    call(
                        f"memo{n}",
                        "all",
                        (10 * n + 4, 10 * n + 5),
                        ("system", "以下のやり取りを短くまとめてください。"),
                        ("user", f"利用者: {question}\n案内係: {SAID[question]}"),
                        wrote=(*NOTED[1:], "利用者は三つのことを尋ねた。")[n],
                    ),
                )
            ],
        ],
        [ONE, TWO, THREE],
    ),
    "turns with facts that a model wrote down and a search brings back": (
        [
            ALL,
            *[
                span
                for n, question in enumerate(SAID)
                for span in (
                    search(f"{n}a", (10 * n, 10 * n + 1), FOUND[question], asked=question),
                    row(
                        f"memories{n}",
                        "all",
                        (10 * n, 10 * n + 1),
                        kind="RETRIEVER",
                        asked=question,
                        found=FACTS[:n],
                    ),
                    asked(
                        n,
                        question,
                        (10 * n + 2, 10 * n + 3),
                        ("system", "Memories:\n- " + "\n- ".join((*FACTS[:n], FOUND[question]))),
                    ),
                    *[
                        call(
                            f"facts{n}",
                            "all",
                            (10 * n + 4, 10 * n + 5),
                            ("system", "Extract facts."),
                            ("user", f"Input:\nuser: {question}\nassistant: {SAID[question]}"),
                            wrote=json.dumps({"facts": [fact]}),
                        )
                        for fact in FACTS[n : n + 1]
                    ],
                )
            ],
        ],
        [ONE, TWO, THREE],
    ),
    "calls that title a chat and suggest more in it, which no turn has before it": (
        [
            ALL,
            *[
                span
                for n, question in enumerate(SAID)
                for chat in [
                    [
                        message
                        for earlier in list(SAID)[:n]
                        for message in (("user", earlier), ("assistant", SAID[earlier]))
                    ]
                ]
                for span in (
                    asked(n, question, (10 * n, 10 * n + 1), *chat),
                    *[
                        call(
                            "title",
                            "all",
                            (2, 3),
                            ("user", f"題名を付けてください: {question} {SAID[question]}"),
                            wrote="完成の年について",
                        )
                        for _ in SUGGESTED[n:1]
                    ],
                    call(
                        f"more{n}",
                        "all",
                        (10 * n + 4, 10 * n + 5),
                        *chat,
                        ("user", question),
                        ("assistant", SAID[question]),
                        ("user", "次に尋ねそうな質問を挙げてください。"),
                        wrote=SUGGESTED[n],
                    ),
                )
            ],
        ],
        [item(question) for question in SAID],
    ),
    "questions behind the same first turn, none of which goes on": (
        [
            ALL,
            asked(1, BUILT, (1, 2)),
            *[
                asked(
                    n, question, (10 * n, 10 * n + 1), ("user", BUILT), ("assistant", SAID[BUILT])
                )
                for n, question in enumerate((DESIGNED, OPENED), 2)
            ],
        ],
        [item(BUILT), item(DESIGNED), item(OPENED)],
    ),
    "a user who says the same again and again": (
        [
            ALL,
            *[
                call(
                    f"llm{n}",
                    "all",
                    (10 * n, 10 * n + 1),
                    *[
                        message
                        for at in range(n)
                        for message in (("user", AGAIN[at][0]), ("assistant", AGAIN[at][1]))
                    ],
                    ("user", question),
                    wrote=answer,
                )
                for n, (question, answer) in enumerate(AGAIN)
            ],
        ],
        [(question, answer, []) for question, answer in AGAIN],
    ),
    "tasks on a chat that quote all of it": (
        [
            ALL,
            *[
                span
                for n, question in enumerate(SAID)
                for turns in [[part for q in list(SAID)[:n] for part in (q, SAID[q])]]
                for span in (
                    asked(
                        n,
                        question,
                        (10 * n, 10 * n + 1),
                        *zip(("user", "assistant") * n, turns, strict=True),
                    ),
                    call(
                        f"llm{n}b",
                        "all",
                        (10 * n + 2, 10 * n + 3),
                        (
                            "user",
                            "### 作業: 題名を付けてください。\n"
                            + "\n".join((*turns, question, SAID[question])),
                        ),
                        wrote=json.dumps({"title": f"It and number {n} of it"}),
                    ),
                )
            ],
        ],
        [item(question) for question in SAID],
    ),
    "a graph that sums up its chat behind the answer": (
        [
            row(
                "graph",
                asked=json.dumps({"messages": [{"type": "human", "content": BUILT}]}),
                answered=json.dumps({"messages": [{"type": "ai", "content": SAID[BUILT]}]}),
            ),
            asked(1, BUILT, (1, 2), inside="graph"),
            call(
                "llm2",
                "graph",
                (3, 4),
                ("user", BUILT),
                ("assistant", SAID[BUILT]),
                ("user", "上の会話を要約してください。"),
                wrote=NOTED[1],
            ),
        ],
        [item(BUILT)],
    ),
    "samples with a function that gives a score": (
        [
            ALL,
            *[
                span
                for n, question in enumerate((BUILT, DESIGNED))
                for span in (
                    row(f"sample{n}", "all", (20 * n, 20 * n + 19)),
                    *rag(n, f"sample{n}", question, (20 * n + 1, 20 * n + 9)),
                    row(
                        f"correctness{n}",
                        f"sample{n}",
                        (20 * n + 10, 20 * n + 18),
                        asked=json.dumps({"input": question, "output": SAID[question]}),
                        answered=json.dumps({"score": 1}),
                    ),
                    call(
                        f"llm{n}b",
                        f"correctness{n}",
                        (20 * n + 11, 20 * n + 12),
                        ("user", f"Is this right? [Question]: {question}\n{SAID[question]}"),
                        wrote="correct",
                    ),
                )
            ],
        ],
        [ONE, TWO],
    ),
}


def answers(spans: Rows) -> list[tuple[str, str, list[str]]]:
    told = []
    for run in runs_of(spans):
        try:
            record = record_of(run.spans, run.number)
        except NoAnswer:
            continue
        texts = [passage.text for passage in record.item.passages]
        told.append((record.item.question, record.item.answer, texts))
    return told


@pytest.mark.parametrize(("spans", "expected"), TABLE.values(), ids=TABLE)
def test_a_trace_has_an_item_for_each_run(
    spans: Rows, expected: list[tuple[str, str, list[str]]]
) -> None:
    assert answers(spans) == expected


@pytest.mark.parametrize(("spans", "expected"), TABLE.values(), ids=TABLE)
def test_the_order_in_which_spans_come_changes_no_run(
    spans: Rows, expected: list[tuple[str, str, list[str]]]
) -> None:
    for seed in range(5):
        mixed = random.Random(seed).sample(spans, len(spans))
        assert sorted(answers(mixed)) == sorted(expected)


def test_runs_are_numbered_as_they_began_and_a_single_one_is_the_whole_trace() -> None:
    spans = [ALL, *rag(1, "all", BUILT, (5, 9)), *rag(2, "all", DESIGNED, (1, 3))]
    assert [run.number for run in runs_of(spans)] == [1, 2]
    assert [run.spans[0]["id"] for run in runs_of(spans)] == ["rag2", "rag1"]
    assert [run.number for run in runs_of(spans[:4])] == [0]
    assert [run.number for run in runs_of([ALL])] == [0]


def test_what_lies_around_all_runs_says_whose_session_they_are() -> None:
    around = row("all")
    around["attributes"] = {
        "session.id": "s",
        "user.id": "Ann",
        "langfuse.trace.input": "all of it",
    }
    spans = [around, *rag(1, "all", BUILT, (1, 9)), *rag(2, "all", DESIGNED, (1, 8))]
    items = [record_of(run.spans, run.number).item for run in runs_of(spans)]
    assert [(item.meta["session"], item.meta["user"]) for item in items] == [("s", "Ann")] * 2
    assert [item.question for item in items] == [BUILT, DESIGNED]


def test_many_runs_are_told_apart_in_a_time_that_grows_as_they_do() -> None:
    """Each text is looked at once: 600 calls that share their first words, in seconds."""
    spans = [row("all", at=(0, 10**6))]
    for n in range(600):
        read = [("system", f"Answer from: text {n}. " * 20), ("user", f"What is number {n} like?")]
        spans.append(
            call(f"llm{n}", "all", (n, n + 50), *read, wrote=f"The answer to it is {n}, surely.")
        )
    assert len(runs_of(spans)) == 600
