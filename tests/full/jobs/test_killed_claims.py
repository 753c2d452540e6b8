"""A worker killed in the middle of a claim: what was answered and fetched is not asked again."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from paid import killed, put_away, signed
from prompts import prompt_of
from pursuit_answers import ITEM, PursuitModel, ScriptedWeb
from shared import item_line, node_lines, write_lines
from working_jobs import SECONDS, request, wait_until, working

from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.formats import read
from spanlab.jobs import Jobs, JobState
from spanlab.models import ModelChoice
from spanlab.schema import PairStep, Record
from spanlab.search.addresses import ALLOWED
from spanlab.search.spec import SearchSpec
from spanlab.storage import Store
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

ASKED_FOR = re.compile(r"`\[\[ ## (claims|chosen|ruling|words) ## \]\]`")


class Model:
    """Supports the claim by summaries and not by sources; hangs in the second round, once."""

    def __init__(self) -> None:
        self.hangs = True
        self.asked: list[str] = []

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        prompt = prompt_of(ask)
        found = ASKED_FOR.search(prompt)
        assert found, prompt
        self.asked.append(found[1])
        from_source = "Ada built the tower." in prompt
        if found[1] == "claims":
            return say_fields(claims=["Ada built it."])
        if found[1] == "chosen":
            if from_source and self.hangs:
                return ScriptedReply(hang=True)
            return say_fields(chosen=["1"], summary="Ada built it.")
        if found[1] == "words":
            return say_fields(words=["Ada"])
        verdict = "not-supported" if from_source else "supported"
        return say_fields(ruling={"reason": "so it says", "verdict": verdict})


@pytest.mark.system("veritrail")
def test_answers_of_a_claim_that_a_kill_cut_off_are_not_asked_for_again(
    settings: Settings, model: ModelServer, tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "one.jsonl", [*node_lines(), item_line("q1", "who")])
    with Store.open(settings) as store:
        store.import_records("d", read(path))
    choice = ModelChoice(model="scripted", base_url=model.url, retries=0)
    options = {"claims": "answer", "q": 2}
    spec = DetectorSpec(detector="veritrail", model=choice, options=options)
    script = Model()
    model.script(signed(script))
    job_id = Jobs(settings).submit(request(model, detectors=(spec,)))
    with working(settings, "w") as process:
        wait_until(lambda: len(script.asked) == 4, "the second round")
        wait_until(lambda: len(put_away(settings.home)) == 3, "the answers to be put away")
        killed(process, settings.home, model)
    assert script.asked == ["claims", "chosen", "ruling", "chosen"]
    script.hangs = False
    with working(settings, "w"):
        done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 1)
    assert script.asked[4:] == ["chosen", "ruling", "words"]
    repeated = [n for n in Counter(model.fingerprints()).values() if n > 1]
    assert repeated == [2], "only what was under way is asked again"
    with Store.open(settings) as store:
        said = store.record("d", "q1").by("veritrail")
    assert said is not None
    (claim,) = said.claims
    assert (claim.verdict, claim.error_stages) == ("not-supported", ("summary",))
    rounds = [step.model_dump().get("checked") for step in said.trace if step.kind == "trail"]
    assert rounds == [("A", "B"), ("a",)]


class HangingPursuit(PursuitModel):
    """Is open after the first question; hangs once in the answer to the second."""

    hangs = True

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        reply = super().__call__(ask)
        if self.hangs and self.wanted.count("answer") == 2:
            return ScriptedReply(hang=True)
        return reply


@pytest.mark.system("papelo")
def test_searches_and_pages_of_a_pursuit_that_a_kill_cut_off_are_not_asked_for_again(
    settings: Settings, model: ModelServer
) -> None:
    with Store.open(settings) as store:
        store.import_records("d", [Record(item=ITEM)])
    web = ScriptedWeb(model)
    settled = {"claim_is": "false", "question": ""}
    script = HangingPursuit({"claim_is": "open", "question": "Who had it built?"}, settled)
    pursue = signed(script)
    model.script(lambda ask: (pursue if ask.path.endswith("completions") else web.answer)(ask))
    spec = DetectorSpec(
        detector="papelo",
        model=ModelChoice(model="scripted", base_url=model.url, retries=0),
        options={"claims": "answer", "n": 2},
        retriever=SearchSpec(url=f"{web.root}/search?q={{query}}&n={{k}}"),
    )
    job_id = Jobs(settings).submit(request(model, detectors=(spec,)))
    allowed = {ALLOWED: f"127.0.0.1:{model.port}"}
    with working(settings, "w", environ=allowed) as process:
        wait_until(lambda: script.wanted.count("answer") == 2, "the second answer")
        wait_until(lambda: len(put_away(settings.home)) == 5, "the answers to be put away")
        killed(process, settings.home, model)
    script.hangs = False
    with working(settings, "w", environ=allowed):
        done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
    assert (done.state, done.progress.done) == (JobState.DONE, 1)
    again = script.wanted[6:]
    assert script.wanted[:6] == ["question", "picked", "answer", "next", "picked", "answer"]
    assert again == ["answer", "next", "ruling", "words"], "only what was under way is asked again"
    assert len(web.searched) == len(set(web.searched)) == 2
    assert web.read == ["/robots.txt", "/tower"]
    with Store.open(settings) as store:
        said = store.record("d", "tower").by("papelo")
    assert said is not None
    pairs = [step for step in said.trace if isinstance(step, PairStep)]
    assert [pair.settled for pair in pairs] == [None, "refuted"]
