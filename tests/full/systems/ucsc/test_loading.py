"""A language is loaded while models answer; the event loop waits for neither."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spanlab.testing import ModelServer, say_fields

PROGRAM = """
import asyncio, sys
from pathlib import Path
from spanlab.detection import DetectorSpec, build
from spanlab.models import Meter, ModelChoice
from spanlab.schema import Item
from spanlab.base.settings import Settings

choice = ModelChoice(model="scripted", base_url=sys.argv[1], retries=0)
home = Settings(home=Path(sys.argv[2]), database_url="sqlite://")
detector = build(DetectorSpec(detector="ucsc-extract", model=choice), Meter(), home)
item = Item(id="i", lang="fr", answer="La tour Eiffel date de 1989.")
assert "spacy" not in sys.modules

async def main():
    meanwhile, found = 0, asyncio.create_task(detector.detect(item))
    while not found.done():
        meanwhile += "spacy" in sys.modules
        await asyncio.sleep(0.01)
    print(*(span.text for span in found.result().annotation.spans), meanwhile)

asyncio.run(main())
"""


def test_the_event_loop_goes_on_while_a_language_is_loaded(
    model_server: ModelServer, tmp_path: Path
) -> None:
    """In a process of its own: here others have loaded it."""
    model_server.script(lambda ask: say_fields(parts=[{"text": "1989", "probability": 0.9}]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, model_server.url, str(tmp_path)],
        env=os.environ | {"OPENAI_API_KEY": "sk-test"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text, meanwhile = done.stdout.split()
    assert text == "1989"
    assert int(meanwhile) >= 10
