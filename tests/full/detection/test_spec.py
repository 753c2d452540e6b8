"""A detector is chosen by data: written as JSON, read back, and built with what it names."""

from __future__ import annotations

import subprocess
import sys


def test_naming_detectors_and_reading_specifications_loads_no_model_library() -> None:
    code = (
        "import sys; from spanlab.detection import entries, spec_of;"
        "[spec_of(entry.name) for entry in entries()];"
        "sys.exit(any(name in sys.modules for name in ('dspy', 'openai', 'spacy', 'numpy')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
