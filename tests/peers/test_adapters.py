"""The adapters of `spanlab.integrations` within the programs that they are for.

The guide's page on integrations shows code, which is run, and the reason that is given.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from guide_blocks import is_shown, of_section

ASKED = "When was the Eiffel Tower built?"
RIGHT = "The Eiffel Tower was completed in 1889."
WRONG = "The Eiffel Tower was completed in 1989."
SCORE = 1 - len("1989") / len(WRONG)
REASON = of_section("integrations", "In your tests")[1].strip()
CONFIG = {
    "prompts": ["{{answer}}"],
    "providers": ["echo"],
    "tests": [
        {
            "vars": {"question": ASKED, "context": RIGHT, "answer": answer},
            "assert": [
                {"type": "python", "value": "file://grounded.py", "config": {"threshold": 1}}
            ],
        }
        for answer in (WRONG, RIGHT)
    ],
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a directory of the test's own: these programs write logs and caches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))


def defined(code: str) -> dict[str, Any]:
    """Run code that the page shows; return what it defines."""
    Path("shown.py").write_text(code, "utf-8")
    return runpy.run_path("shown.py")


def test_deepeval() -> None:
    from deepeval import assert_test, evaluate
    from deepeval.test_case import LLMTestCase

    from spanlab.integrations.deepeval_metric import GroundedMetric

    wrong, right = (
        LLMTestCase(input=ASKED, actual_output=answer, retrieval_context=[RIGHT])
        for answer in (WRONG, RIGHT)
    )
    results = evaluate([wrong, right], [GroundedMetric(threshold=1)]).test_results
    scores = {result.actual_output: result.metrics_data[0].score for result in results}
    assert scores == {WRONG: SCORE, RIGHT: 1}
    assert_test(right, [GroundedMetric(threshold=1)])
    (code,) = of_section("integrations", "DeepEval")
    with pytest.raises(AssertionError, match=re.escape(REASON)):
        defined(code)["test_tower"]()


def test_ragas(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = of_section("integrations", "RAGAS")
    metric = defined(code)["metric"]
    assert is_shown(f"…\n[{{'grounded': {SCORE}}}, {{'grounded': 1.0}}]", capsys.readouterr().out)
    assert metric.reasons[WRONG] == REASON
    assert metric.reasons[RIGHT] == "offline marks nothing"


def test_inspect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from inspect_ai import eval  # noqa: A004 - its name for it
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    import spanlab

    (code,) = of_section("integrations", "Inspect")
    used = {"usage": ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)}
    says = [ModelOutput.from_content("m", text).model_copy(update=used) for text in (WRONG, RIGHT)]
    model = get_model("mockllm/model", custom_outputs=says)
    (log,) = eval(
        defined(code)["towers"](), model=model, display="plain", log_dir="logs", max_samples=1
    )
    assert log.status == "success"
    assert [sample.scores["grounded"].value for sample in log.samples] == [SCORE, 1]
    assert is_shown("…\ngrounded\nmean      0.949\nstderr    0.051\n…", capsys.readouterr().out)
    (file,) = tmp_path.glob("logs/*.eval")
    items = [record.item for record in spanlab.load(file)]
    assert [(item.answer, item.passages[0].text) for item in items] == [
        (WRONG, RIGHT),
        (RIGHT,) * 2,
    ]


def test_promptfoo(tmp_path: Path) -> None:
    program = os.environ.get("PROMPTFOO") or shutil.which("promptfoo")
    if program is None:
        pytest.skip("promptfoo is not installed (npm install promptfoo); PROMPTFOO names it")
    line = "from spanlab.integrations.promptfoo_assertion import get_assert\n"
    Path("grounded.py").write_text(line, "utf-8")
    Path("promptfooconfig.json").write_text(json.dumps(CONFIG), "utf-8")
    own = {
        "PROMPTFOO_CONFIG_DIR": str(tmp_path / "promptfoo"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_PYTHON": sys.executable,
    }
    words = [program, "eval", "--no-cache", "-c", "promptfooconfig.json", "-o", "out.json"]
    subprocess.run(words, env=os.environ | own, check=False, capture_output=True, timeout=300)
    results = json.loads(Path("out.json").read_text("utf-8"))["results"]["results"]
    found = {result["response"]["output"]: result["gradingResult"] for result in results}
    assert (found[WRONG]["pass"], found[RIGHT]["pass"]) == (False, True)
    assert "most likely “1989”" in found[WRONG]["reason"]
