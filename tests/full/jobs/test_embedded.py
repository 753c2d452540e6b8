"""The worker inside another program's process, as the app has it."""

from __future__ import annotations

import subprocess
import sys

from working_jobs import SECONDS, environment, fill, request, states

from spanlab.base.settings import Settings
from spanlab.jobs import Jobs, JobState
from spanlab.schema import Status
from spanlab.testing import ModelServer

PROGRAM = """
import sys, threading
from spanlab.jobs import Jobs
from spanlab.jobs.worker import start_embedded_worker

def main():
    starting = [threading.Thread(target=start_embedded_worker) for _ in range(5)]
    for each in starting:
        each.start()
    for each in starting:
        each.join()
    start_embedded_worker()
    for job_id in sys.argv[1:]:
        print(Jobs().store.wait(job_id, timeout=100).state.value)

if __name__ == "__main__":
    main()
"""


def test_it_starts_once_works_on_every_kind_of_detector_and_says_nothing(
    settings: Settings, model: ModelServer
) -> None:
    fill(settings, 40)
    offline = {"detectors": ({"detector": "offline"},)}
    asked = [request(model), request(model, **offline)]
    ids = [Jobs(settings).submit(each) for each in asked]
    program = settings.home / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, program, *ids],
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (ran.stdout.split(), ran.stderr) == (["done", "done"], "")
    assert {Jobs(settings).find(each).state for each in ids} == {JobState.DONE}
    begun = [line.text for each in ids for line in Jobs(settings).find(each).log]
    assert all(text.startswith("app begins") for text in begun)
    assert states(settings) == states(settings, "offline") == {Status.DONE: 40}
