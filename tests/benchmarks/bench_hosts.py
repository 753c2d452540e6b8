"""Workers on hosts of their own, one cut off from the network and returned: what is lost.

Needs root, `ip` and PostgreSQL's programs. A number is for how many items, a second one for how
many seconds the cable is pulled. The same with relays in place of hosts, on any machine, is a test:
tests/full/jobs/test_cut_off.py.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "support"), str(ROOT / "model_server")]

from hosts import Host, Network, network, why_not
from paid import again_after_loss
from postgres import postgres
from working_jobs import NOTHING, fill, key_of, request, states, wait_until, working

from spanlab.base.settings import Settings
from spanlab.jobs import Jobs, JobState, job_store
from spanlab.schema import Status
from spanlab.testing import ModelRequest, ModelServer, caller_with, say

AT_ONCE = 8  # calls of each worker
LATENCY = 0.05
KNOWN = 1.0  # seconds before the cut; answered by then, an answer has to be known to the others


def main() -> None:
    """Print what became of a job for either worker that is cut off."""
    problem = why_not()
    if problem is not None:
        print(f"not run: {problem}")
        return
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 25.0
    print(f"{items:,} items, {LATENCY * 1e3:.0f} ms, {AT_ONCE} at once on each of two hosts")
    for follower in (True, False):
        with (
            network(2) as net,
            postgres(net.address) as new_database,
            ModelServer(lambda ask: say(NOTHING), latency=LATENCY, host=net.address) as model,
            tempfile.TemporaryDirectory() as folder,
        ):
            _cut_off(net, model, Path(folder), new_database(), (items, seconds, follower))


def _cut_off(
    net: Network, model: ModelServer, folder: Path, url: str, case: tuple[int, float, bool]
) -> None:
    items, seconds, follower = case
    here = Settings(home=folder, database_url=url)
    fill(here, items)
    with ExitStack() as stack:
        hosts: dict[str, Host] = {}
        for number, host in enumerate(net.hosts):
            home = folder / f"host-{number}"
            home.mkdir()
            theirs = Settings(home=home, database_url=url)
            stack.enter_context(working(theirs, home.name, host.inside))
            hosts[home.name] = host
        job_id = Jobs(here).submit(request(model, concurrency=AT_ONCE))
        where = job_store.shared_job_store(here)
        wait_until(lambda: model.count >= items * 2 // 5, "two fifths of the calls")
        leader = where.part(job_id).executor_id
        (name,) = [each for each in hosts if (each == leader) is follower]
        cut = time.time()
        hosts[name].cut()
        noticed = _noticed(job_id, here, name)
        print(f"  {name} ({'follows' if follower else 'does not follow'} the job) is cut off")
        print(f"    its work is queued again after {noticed - cut:.1f} s")
        wait_until(lambda: time.time() > cut + seconds, "the cut to last")
        hosts[name].mend()
        back = time.time()
        done = Jobs(here).store.wait(job_id, timeout=600)
        assert (done.state, done.progress.done) == (JobState.DONE, items), done
        assert states(here) == {Status.DONE: items}
        _tell_repeated(model, name, cut, back)
        _works_again(model, here, name, back)
        for line in Jobs(here).find(job_id).log:
            print(f"    log: {line.at:%H:%M:%S} {line.text}")


def _tell_repeated(model: ModelServer, name: str, cut: float, back: float) -> None:
    """Print what was asked twice: what the host had asked, and what it asked after another one."""
    asked: dict[str, list[ModelRequest]] = {}
    for ask in model.requests:
        asked.setdefault(ask.fingerprint, []).append(ask)
    assert all(len(asks) <= 2 for asks in asked.values())
    twice = [asks for asks in asked.values() if len(asks) == 2]
    caller = caller_with(key_of(name))
    again = again_after_loss(model, caller, cut, KNOWN, back)
    assert again.known == 0, again
    # What a host has sent into a cable that is cut reaches the model once that is back.
    late = [first for first, _ in twice if first.caller != caller or first.at >= back]
    assert len(again) + len(late) == len(twice)
    print(f"    {len(asked):,} items annotated once each, {len(twice)} of them asked for twice")
    print(f"    because of the cut: {again}")
    print(f"    by {name} since its return, though another had: {len(late)}")


def _noticed(job_id: str, here: Settings, name: str) -> float:
    """Return when nothing of a job is in the hands of a worker any more."""
    where = job_store.shared_job_store(here)

    def free() -> bool:
        rows = [where.part(job_id), *where.rows(parent_workflow_id=job_id)]
        return all(row.executor_id != name or row.status != "PENDING" for row in rows)

    wait_until(free, "the others to notice")
    return time.time()


def _works_again(model: ModelServer, here: Settings, name: str, back: float) -> None:
    """Give jobs until the worker that was cut off has done a part of one."""
    where = job_store.shared_job_store(here)
    for number in range(60):
        fill(here, 64, 1_000_000 + number * 64)
        job_id = Jobs(here).submit(request(model, concurrency=AT_ONCE))
        done = Jobs(here).store.wait(job_id, timeout=120)
        assert (done.state, done.progress.done) == (JobState.DONE, 64), done
        if name in {row.executor_id for row in where.rows(parent_workflow_id=job_id)}:
            print(f"    {name} works again {time.time() - back:.1f} s after its return")
            return
    raise AssertionError(f"{name} did not come back")


if __name__ == "__main__":
    main()
