"""What a pursuit costs beside its waiting: 100 claims, 16 at once, against their critical path.

A search takes 300 ms, a page 1 s, a model call 200 ms; every answer is read on a page of its own,
on a host of its own. Two questions settle a claim, three more are paraphrases.

Run with: python tests/benchmarks/bench_papelo.py
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

_TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_TESTS / "model_server"))

if TYPE_CHECKING:
    from spanlab.testing import ModelRequest, ScriptedReply

_CLAIMS, _AT_ONCE, _PAIRS = 100, 16, 5
_SEARCH, _PAGE, _MODEL = 0.3, 1.0, 0.2  # seconds
# First question; thrice search, pick, page and answer; two follow-ups; paraphrases; verdict; words.
_PATH = 12 * _MODEL + 3 * (_SEARCH + _PAGE)


def main() -> None:
    """Print wall time, critical path and processor time."""
    from spanlab.search.addresses import ALLOWED
    from spanlab.testing import ModelServer

    with tempfile.TemporaryDirectory() as home, ModelServer(host="0.0.0.0", keep=False) as server:
        web = _Web(server.port)
        server.script(web.reply)
        hosts = ",".join(
            f"{_host(number)}:{server.port}" for number in range((_CLAIMS + 1) * _PAIRS)
        )
        os.environ |= {
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{server.port}/v1",
            "SPANLAB_HOME": home,
            ALLOWED: hosts,
        }
        asyncio.run(_pursue(server.port, range(-1, 0)))  # what is loaded once is loaded then
        began, computed = time.perf_counter(), time.process_time()
        done = asyncio.run(_pursue(server.port, range(_CLAIMS)))
        wall, processor = time.perf_counter() - began, time.process_time() - computed
    assert done == _CLAIMS, "the scripted replies do not fit the prompts any more"
    ideal = _PATH * math.ceil(_CLAIMS / _AT_ONCE)
    print(f"{done} of {_CLAIMS} claims refuted, {_AT_ONCE} at once; {web.pages} pages read")
    print(f"critical path of a claim {_PATH:.1f} s; of all {ideal:.1f} s, claims being equal")
    print(f"wall {wall:.1f} s, {wall / ideal:.2f} of it; processor {processor:.1f} s")


async def _pursue(port: int, numbers: range) -> int:
    from spanlab.base.settings import Settings
    from spanlab.detection import DetectorSpec, build
    from spanlab.models import Meter, ModelChoice
    from spanlab.schema import Item
    from spanlab.search.spec import SearchSpec

    spec = DetectorSpec(
        detector="papelo",
        model=ModelChoice(model="scripted"),
        options={"claims": "answer", "n": _PAIRS},
        retriever=SearchSpec(url=f"http://127.0.0.1:{port}/search?q={{query}}"),
    )
    detector = build(spec, Meter(), Settings.read())
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> bool:
        item = Item(id=f"c{number}", lang="en", answer=f"Tower {number} was built in 1989.")
        async with slots:
            said = (await detector.detect(item)).annotation
        return bool(said.claims) and said.claims[0].verdict == "refuted"

    return sum(await asyncio.gather(*map(one, numbers)))


class _Web:
    """Search, pages and model on one server."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pages = 0
        self._found: dict[str, int] = {}

    def reply(self, ask: ModelRequest) -> ScriptedReply:
        """Answer in the time that each takes."""
        from spanlab.testing import ScriptedReply, fail

        parts = urlsplit(ask.path)
        if ask.path.endswith("completions"):
            return replace(_said(ask), delay=_MODEL)
        if parts.path == "/search":
            query = parse_qs(parts.query)["q"][0]
            number = self._found.setdefault(query, len(self._found))
            url = f"http://{_host(number)}:{self.port}/page"
            found = {"title": "T", "url": url, "content": f"Fact {number} is from 1889."}
            return ScriptedReply(body={"results": [found]}, delay=_SEARCH)
        if parts.path == "/robots.txt":
            return fail(404)
        self.pages += 1
        number = _number(ask.headers["host"].partition(":")[0])
        text = f"<p>It is old. {'Much is said here. ' * 200} Fact {number} is from 1889. So it is."
        headers = {"Content-Type": "text/html"}
        return ScriptedReply(body=text.encode(), headers=headers, delay=_PAGE)


def _said(ask: ModelRequest) -> ScriptedReply:
    from spanlab.testing import say_fields

    prompt = ask.text  # the form of the reply is in the system message, the claim in the last one
    wanted = re.findall(r"`\[\[ ## (\w+) ## \]\]`", prompt)[0]
    tower = re.findall(r"Tower (\d+)", prompt)
    name = tower[0] if tower else "?"
    asked = "Who built" in prompt
    said: dict[str, object] = {
        "question": f"Was Tower {name} built in 1989?",
        "picked": {"answer": "In 1889.", "document": "1"},
        "answer": "It is from 1889.",
        "next": {"claim_is": "false" if asked else "open", "question": f"Who built Tower {name}?"},
        "ways": [f"{'Who' if asked else 'When'}, way {way}, Tower {name}?" for way in range(4)],
        "ruling": {"reason": "it is from 1889", "verdict": "refuted"},
        "words": ["1989"],
    }
    return say_fields(**{wanted: said[wanted]})


def _host(number: int) -> str:
    return f"127.1.{number // 200}.{number % 200 + 1}"


def _number(host: str) -> int:
    _, _, high, low = map(int, host.split("."))
    return high * 200 + low - 1


if __name__ == "__main__":
    main()
