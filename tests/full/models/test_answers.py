"""A question is paid for once: while it is being asked, and ever after from the answers on disk."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_task import Task

from spanlab.models import Meter, ModelChoice
from spanlab.models.cache import answer_file
from spanlab.schema.usage import Usage
from spanlab.testing import ModelServer

pytestmark = pytest.mark.usefixtures("four")

Choose = Callable[..., ModelChoice]


def test_an_answer_is_on_disk_when_the_call_returns(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    """A process that is killed right after its call has not paid for nothing."""
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from model_task import Task\n"
        "from spanlab.models import Meter, ModelChoice\n"
        "choice = ModelChoice.model_validate_json(sys.argv[1])\n"
        "Task(choice, Meter(), Path(sys.argv[2])).ask('?')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    tests = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PYTHONPATH": str(tests / "model_server")}
    command = [sys.executable, "-c", program, choose().model_dump_json(), str(cache)]
    ended = subprocess.run(command, env=environ, timeout=240, check=False)
    assert ended.returncode == -9
    meter = Meter()
    assert Task(choose(), meter, cache).ask("?") == "4"
    assert meter.usage == Usage(from_cache=1)
    assert model_server.count == 1


def test_calls_that_are_cancelled_at_any_moment_stop_no_other(
    model_server: ModelServer, choose: Choose, cache: Path
) -> None:
    """Ten thousand are, also while their answers are being stored; the next answer is stored."""
    answers = answer_file(cache)
    dice = random.Random(7)

    async def storing(number: int) -> None:
        await answers.put(f"answer {number}", {"said": number})

    async def cancel_at_random() -> None:
        for _ in range(100):
            calls = [asyncio.create_task(storing(dice.randrange(1000))) for _ in range(100)]
            for call in dice.sample(calls, 100):
                if dice.random() < 0.1:
                    await asyncio.sleep(dice.random() / 1000)
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    asyncio.run(cancel_at_random())
    meter = Meter()
    assert asyncio.run(Task(choose(), meter, cache).aask("?")) == "4"
    assert asyncio.run(Task(choose(), meter, cache).aask("?")) == "4"
    assert meter.usage.calls == meter.usage.from_cache == model_server.count == 1
