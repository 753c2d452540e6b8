"""A worker killed in the middle of a claim: what models have answered is not asked again."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from paid import killed, put_away, signed
from shared import item_line, node_lines, write_lines
from working_jobs import SECONDS, request, wait_until, working

from spanlab import jobs
from spanlab.datasets import read
from spanlab.detectors import DetectorSpec
from spanlab.jobs import JobState
from spanlab.lm import ModelChoice
from spanlab.settings import Settings
from spanlab.storage import Store
from spanlab.testing import Ask, ModelServer, Reply, say_fields
from spanlab.trace import TrailStep

ASKED_FOR = re.compile(r"`\[\[ ## (claims|chosen|ruling|words) ## \]\]`")


class Model:
    """Supports the claim by summaries and not by sources; hangs in the second round, once."""

    def __init__(self) -> None:
        self.hangs = True
        self.asked: list[str] = []

    def __call__(self, ask: Ask) -> Reply:
        prompt = ask.messages[-1]["content"]
        found = ASKED_FOR.search(prompt)
        assert found, prompt
        self.asked.append(found[1])
        from_source = "Ada built the tower." in prompt
        if found[1] == "claims":
            return say_fields(claims=["Ada built it."])
        if found[1] == "chosen":
            if from_source and self.hangs:
                return Reply(hang=True)
            return say_fields(chosen=["1"], summary="Ada built it.")
        if found[1] == "words":
            return say_fields(words=["Ada"])
        verdict = "not-supported" if from_source else "supported"
        return say_fields(ruling={"reason": "so it says", "verdict": verdict})


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
    job_id = jobs.submit_detection(request(model, detectors=(spec,)), settings)
    with working(settings, "w") as process:
        wait_until(lambda: len(script.asked) == 4, "the second round")
        wait_until(lambda: len(put_away(settings.home)) == 3, "the answers to be put away")
        killed(process, settings.home, model)
    assert script.asked == ["claims", "chosen", "ruling", "chosen"]
    script.hangs = False
    with working(settings, "w"):
        done = jobs.wait(job_id, timeout=SECONDS, settings=settings)
    assert (done.state, done.progress.done) == (JobState.DONE, 1)
    assert script.asked[4:] == ["chosen", "ruling", "words"]
    repeated = [n for n in Counter(model.fingerprints()).values() if n > 1]
    assert repeated == [2], "only what was under way is asked again"
    with Store.open(settings) as store:
        said = store.record("d", "q1").by("veritrail")
    assert said is not None
    (claim,) = said.claims
    assert (claim.verdict, claim.error_stages) == ("not-supported", ("summary",))
    rounds = [step.checked for step in said.trace if isinstance(step, TrailStep)]
    assert rounds == [("A", "B"), ("a",)]
