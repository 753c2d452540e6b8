"""Packages that were written for 1.0 find what they import, and are told its name of now."""

import subprocess
import sys


def test_a_fresh_process_imports_a_class_once_under_both_names() -> None:
    code = (
        "from spanlab.detectors.entry import DetectorEntry as a\n"
        "from spanlab.detection.entry import DetectorEntry as b\n"
        "import spanlab, spanlab.errors\n"
        "assert a is b and callable(spanlab.detect)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"spanlab.detectors.entry is called spanlab.detection.entry now" in done.stderr
