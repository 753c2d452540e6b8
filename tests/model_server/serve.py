"""The scripted endpoint as a process of its own: ``python tests/model_server/serve.py --help``.

It prints its base URL as the first line and serves until it is ended.
"""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from gold_answers import GoldAnswers, better_when_asked

from spanlab.testing import ModelServer, Script, ScriptedReply, say_fields


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds of every reply")
    parser.add_argument("--log", type=Path, help="JSON lines of what was asked and answered")
    parser.add_argument("--field", default="answer", help="output field that gets --value")
    parser.add_argument("--value", default="[]")
    parser.add_argument("--records", type=Path, help="answer from these records' gold labels")
    parser.add_argument("--noise", type=float, default=0.0, help="0 is gold, 1 of little use")
    parser.add_argument("--better", action="store_true", help="less noise for better prompts")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    script: Script = _constant(say_fields(**{given.field: given.value}))
    if given.records:
        from spanlab.formats import read

        noise = better_when_asked() if given.better else given.noise
        script = GoldAnswers(read(given.records), noise=noise, seed=given.seed)
    with ModelServer(
        script, latency=given.latency, port=given.port, log=given.log, keep=False
    ) as server:
        print(server.url, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


def _constant(reply: ScriptedReply) -> Script:
    return lambda ask: reply


if __name__ == "__main__":
    main()
