"""Optimisation jobs: kills at random moments, the search's own cost, and review beside a search.

Every model here is scripted: no figure says anything of a language model.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "support"), str(ROOT / "model_server")]

from gold_answers import GoldAnswers, better_when_asked
from paid import again_after_kills, signed
from paid import killed as kill
from working_jobs import wait_until, working

from optimizers.examples import LabelSource, labelled_items
from optimizers.preparing import build_tuner, resolve
from optimizers.request import Optimisation, PromptSearch
from optimizers.watching import StoppableMeter
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.formats import read
from spanlab.jobs import Jobs
from spanlab.jobs.worker import WorkerPace
from spanlab.models import ModelChoice
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Record
from spanlab.storage import Store
from spanlab.testing import ModelServer

ITEMS = 50
THREADS = 8
KILLS = 10
LATENCY = 0.2  # seconds; what a small hosted model takes for an answer this short
SAMPLES = ROOT.parent / "data" / "samples.jsonl"


def main() -> None:
    records = [record for record in read(SAMPLES) if record.by("gold")][:ITEMS]
    os.environ.setdefault("OPENAI_API_KEY", "sk-bench")
    overhead(records)
    for latency in (0.02, LATENCY):  # the first keeps the worker busy with answers throughout
        kills(records, latency)


def overhead(records: list[Record]) -> None:
    """A light run on 50 items against the latency of its calls at its concurrency."""
    print(f"\nA light MIPROv2 run on {len(records)} items, {LATENCY:g} s a call, {THREADS} at once")
    script = GoldAnswers(records, noise=better_when_asked())
    with ModelServer(script, latency=LATENCY) as server, tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder), database_url="sqlite://")
        request = resolve(Optimisation(dataset="bench", search=_search(server, folds=0)))
        examples = list(labelled_items(records, LabelSource()))
        began, spent = time.monotonic(), time.process_time()
        build_tuner(request, settings, StoppableMeter(), lambda event: None).run(examples)
        took, computed = time.monotonic() - began, time.process_time() - spent
        waited = _open_seconds(server)
    print(f"  calls {server.count}; wall {took:.1f} s, some call was open for {waited:.1f} s")
    print(f"  own overhead (wall − open) / wall: {(took - waited) / took:.1%}")
    print(f"  processor time, the scripted server's included: {computed:.1f} s")


def kills(records: list[Record], latency: float) -> None:
    """Ten kills at random moments against an undisturbed run."""
    print(f"\nOne optimisation job, {latency} s a call, killed {KILLS} times at random moments")
    with (
        ModelServer(
            signed(GoldAnswers(records, noise=better_when_asked())), latency=latency
        ) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        quiet = _settings(Path(folder) / "quiet")
        job_id = _submit(quiet, server, records)
        with working(quiet, "w", pace=WorkerPace()):
            Jobs(quiet).store.wait(job_id)
        calls, anew = server.count, _repeated(server)
        server.requests.clear()
        killed = _settings(Path(folder) / "killed")
        job_id = _submit(killed, server, records)
        dice, ends = random.Random(5), []
        for share in sorted(dice.random() for _ in range(KILLS)):
            with working(killed, "w", pace=WorkerPace()) as process:
                until = calls + int(share * calls)
                wait_until(lambda until=until: server.count >= until, "calls")  # type: ignore[misc]  # a default is no parameter to mypy
                time.sleep(dice.random() * 0.2)
                ends.append(kill(process, killed.home, server))
        with working(killed, "w", pace=WorkerPace()):
            view = Jobs(killed).store.wait(job_id)
        first, second = (ProgramRegistry(each.programs).load("tuned") for each in (quiet, killed))
        same = first.predictors == second.predictors and first.held_out == second.held_out
        print(f"  state {view.state}; the same program as undisturbed: {same}")
        again = again_after_kills(server, ends, killed.home)
        assert len(again) == _repeated(server) - anew, (len(again), _repeated(server), anew)
        print(f"  calls {calls} undisturbed, {server.count - calls} killed; {again}")
        print(f"  (at most {KILLS * THREADS} could be under way at the kills)")


def _search(server: ModelServer, **more: object) -> PromptSearch:
    choice = ModelChoice(model="scripted", base_url=server.url, retries=0)
    fields = {
        "name": "tuned",
        "detector": DetectorSpec(detector="ucsc-extract", model=choice),
        "threads": THREADS,
        **more,
    }
    return PromptSearch.model_validate(fields)


def _settings(home: Path) -> Settings:
    home.mkdir()
    url = f"sqlite:///{home / 'spanlab.db'}"
    return Settings(home=home, database_url=url)


def _submit(settings: Settings, server: ModelServer, records: list[Record]) -> str:
    with Store.open(settings) as store:
        store.import_records("d", records)
    return Jobs(settings).submit(
        Optimisation(dataset="d", search=_search(server, auto=None, trials=6))
    )


def _repeated(server: ModelServer) -> int:
    return sum(count - 1 for count in Counter(server.fingerprints()).values())


def _open_seconds(server: ModelServer) -> float:
    """For how long at least one call was open: the wall time that a search cannot save."""
    total = last = 0.0
    for start in sorted(ask.at for ask in server.requests):
        total += max(start + LATENCY - max(start, last), 0.0)
        last = max(last, start + LATENCY)
    return total


if __name__ == "__main__":
    main()
