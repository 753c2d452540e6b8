"""A crew makes ready before its run, so that nothing holds up the calls under way."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from dataclasses import dataclass
from spanlab.schema import Annotation, Item, Kind, Record
from spanlab.workflows.crew import Crew

@dataclass
class Asking:
    name: str = "asking"
    async def detect(self, item): ...

@dataclass
class Simple:
    name: str = "simple"
    def annotate(self, item): ...

crew = Crew([{detectors}])
crew.prepare([Record(item=Item(id=lang, lang=lang, answer="x")) for lang in ("fi", "ga-IE")])
print(*(name for name in ("spacy", "spacy.lang.fi", "spacy.lang.ga") if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("detectors", "loaded"),
    [
        pytest.param("Simple(), Asking()", "spacy spacy.lang.fi spacy.lang.ga", id="asks a model"),
        pytest.param("Simple()", "", id="asks none"),
    ],
)
def test_the_languages_of_items_to_come_are_loaded_for_detectors_that_ask_models(
    detectors: str, loaded: str
) -> None:
    """In a process of its own: here others have loaded them."""
    program = PROGRAM.format(detectors=detectors)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == loaded
