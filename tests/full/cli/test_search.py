"""`spanlab annotate … --search NAME`: searches on the command line, each paid for once."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_what_one_run_or_detector_searched_for_no_other_pays_for_again(
    spanlab: Run, tmp_path: Path, model_server: ModelServer
) -> None:
    """A run that stops at its budget of searches goes on where it was; so does another detector."""
    questions = ("Where is the tower?", "Who built it?", "How tall is it?")
    lines = [
        json.dumps({"id": f"i{n}", "lang": "en", "question": question, "answer": "In Rome."})
        for n, question in enumerate(questions)
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))

    def answer(ask: ModelRequest) -> ScriptedReply:
        if ask.path.startswith("/v1/search?"):
            found = {"title": "T", "url": "https://a.example", "content": "It is in Paris."}
            return ScriptedReply(body={"results": [found]})
        return say_fields(reasoning="so", parts=[], revised="In Rome.")

    model_server.script(answer)
    environment = {"OPENAI_BASE_URL": model_server.url, "SPANLAB_PRICE_PER_SEARCH": "0.002"}
    where = ("--search", "searxng", "--search-url", f"{model_server.url}/search", "--model", "m")

    def run(detector: str, *more: str) -> subprocess.CompletedProcess[str]:
        words = ("annotate", "items.jsonl", "--detector", detector, *where, *more)
        return spanlab(*words, "-o", "out.jsonl", "--concurrency", "1", **environment)

    def searched() -> int:
        return sum(ask.path.startswith("/v1/search?") for ask in model_server.requests)

    stopped = run("ucsc-extract", "--max-searches", "2")
    assert stopped.returncode == 3
    assert "the budget of 2 searches is used up" in stopped.stderr, stopped.stderr
    assert searched() == 2
    resumed = run("ucsc-extract")
    assert resumed.returncode == 0, resumed.stderr
    assert "1 search" in resumed.stderr
    assert searched() == 3
    other = run("ucsc-revise")
    assert other.returncode == 0, other.stderr
    assert searched() == 3


def test_a_search_model_is_asked_as_was_chosen_and_anew_where_that_differs(
    spanlab: Run, tmp_path: Path, model_server: ModelServer
) -> None:
    line = {"id": "i", "lang": "en", "question": "Where is the tower?", "answer": "In Rome."}
    (tmp_path / "items.jsonl").write_text(json.dumps(line))
    model_server.script(
        lambda ask: say("In Paris.") if ask.body["model"] == "s" else say_fields(parts=[])
    )
    address = model_server.url
    environment = {"OPENAI_BASE_URL": address, "SPANLAB_SEARCH_BASE_URL": address}

    def searched(*options: str) -> list[dict[str, object]]:
        before = len(model_server.requests)
        words = ("annotate", "items.jsonl", "--detector", "ucsc-extract", "--search", "web")
        done = spanlab(
            *words, "--model", "m", "-o", "out.jsonl", *options,
            **environment, SPANLAB_SEARCH_MODEL="s", SPANLAB_MODEL_OPTIONS="search.seed=1",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        bodies = (ask.body for ask in model_server.requests[before:])
        asked = [body for body in bodies if body["model"] == "s"]
        return [{name: body[name] for name in body.keys() - {"messages"}} for body in asked]

    assert searched() == [{"model": "s", "seed": 1}]
    assert searched() == [], "the same is not paid for again"
    general = ("--model-option", "temperature=0", "--model-option", "judge.seed=9")
    own = ("search.seed=2", "search.max_tokens=99", "search.top_p=0.5")
    chosen = [word for option in own for word in ("--model-option", option)]
    effort = ("--model-option", "search.reasoning_effort=low")
    assert searched(*general, *chosen, *effort) == [
        {"model": "s", "temperature": 0, "seed": 2, "max_tokens": 99, "top_p": 0.5}
        | {"reasoning_effort": "low"}
    ]


def test_a_search_service_without_its_key_says_what_to_set(spanlab: Run, items: Path) -> None:
    refused = spanlab(
        "annotate", items, "--detector", "ucsc-extract", "--model", "m", "--search", "tavily",
        OPENAI_BASE_URL="http://127.0.0.1:9/v1", TAVILY_API_KEY="",
    )  # fmt: skip
    assert refused.returncode != 0
    assert "no key for Tavily: set TAVILY_API_KEY" in refused.stderr
