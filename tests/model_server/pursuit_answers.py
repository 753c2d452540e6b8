"""A claim, a scripted web that knows better, and a model that pursues the claim on it."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from prompts import prompt_of

from spanlab.schema import Item
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail, say_fields

CLAIM = "The tower of Aldmere was built in 1989."
ITEM = Item(
    id="tower",
    lang="en",
    answer=CLAIM,
    meta={"speaker": "Ada Smith", "claim_date": "31-10-2020"},
)
SNIPPET = "The tower was finished in 1889."
PAGE = (
    "Old towers. Some stand by the sea. Aldmere is a town. "
    f"{SNIPPET} It was a gift of the guilds. Trees grow there. Ships pass by."
)
WINDOW = PAGE.removeprefix("Old towers. ").removesuffix(" Ships pass by.")
FIRST = "Was the tower of Aldmere built in 1989?"
SECOND = "Who had it built?"


class ScriptedWeb:
    """A search API and the pages it finds, on one scripted server."""

    def __init__(self, server: ModelServer) -> None:
        self.server = server
        self.root = server.url.removesuffix("/v1")
        self.searched: list[str] = []
        self.read: list[str] = []
        self.results: list[dict[str, str]] | None = None  # in place of the usual ones
        self.pages: dict[str, ScriptedReply] = {"/tower": html(PAGE)}
        server.script(self.answer)

    def answer(self, ask: ModelRequest) -> ScriptedReply:
        parts = urlsplit(ask.path)
        if parts.path == "/search":
            query = parse_qs(parts.query)["q"][0]
            self.searched.append(query)
            return ScriptedReply(body={"results": self.found(query)})
        self.read.append(parts.path)
        return self.pages.get(parts.path, fail(404, "no such page"))

    def found(self, query: str) -> list[dict[str, str]]:
        if "nowhere" in query:
            return []
        if self.results is not None:
            return self.results
        return [
            {"title": "Trees", "url": f"{self.root}/trees", "content": "Trees are green."},
            {
                "title": "Towers",
                "url": f"{self.root}/tower",
                "content": SNIPPET,
                "published_date": "2019-05-01",
            },
            {"title": "Late", "url": f"{self.root}/late", "content": "!", "date": "2020-11-02"},
        ]


def html(text: str) -> ScriptedReply:
    body = f"<html><title>Towers</title><p>{text}</p><script>alert(1)</script></html>"
    return ScriptedReply(body=body.encode(), headers={"Content-Type": "text/html; charset=utf-8"})


class PursuitModel:
    """Answers by what the prompt shows; ``follows`` are what it says after each answer.

    It notes which field it was asked for each time, what it was shown to answer from, and the
    pairs that it was shown.
    """

    def __init__(
        self,
        *follows: dict[str, str],
        document: str = "2",
        answer: str = "It was finished in 1889.",
        verdict: str = "Refuted",
    ) -> None:
        self.follows, self.document = list(follows), document
        self.answer, self.verdict = answer, verdict
        self.wanted: list[str] = []
        self.shown: list[str] = []
        self.listed: list[str] = []

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        wanted = re.findall(r"`\[\[ ## (\w+) ## \]\]`", prompt)[0]
        self.wanted.append(wanted)
        if wanted == "answer":
            self.shown.append(prompt)
        if wanted in {"next", "ruling"}:
            self.listed.append(prompt)
        said: dict[str, object] = {
            "question": f"Gladly! Here is one. {FIRST} I hope it helps.",
            "questions": [FIRST, SECOND],
            "picked": {"answer": "In 1889, it seems.", "document": self.document},
            "ways": [
                f"In other words, {'who' if SECOND in prompt else 'was it'} ({number})?"
                for number in range(1, 5)
            ],
            "answer": self.answer,
            "ruling": {"reason": "it is from 1889", "verdict": self.verdict},
            "words": ["1989"],
        }
        return say_fields(**{wanted: self.follows.pop(0) if wanted == "next" else said[wanted]})
