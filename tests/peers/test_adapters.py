"""The adapters of `spanlab.integrations` within the programs that they are for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ASKED = "When was the Eiffel Tower built?"
RIGHT = "The Eiffel Tower was completed in 1889."
WRONG = "The Eiffel Tower was completed in 1989."
SCORE = 1 - len("1989") / len(WRONG)
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
    with pytest.raises(AssertionError, match=r"Grounded.*most likely “1989”"):
        assert_test(wrong, [GroundedMetric(threshold=1)])


def test_ragas() -> None:
    from ragas import EvaluationDataset, evaluate

    from spanlab.integrations.ragas_metric import Grounded

    rows = [
        {"user_input": ASKED, "response": answer, "retrieved_contexts": [RIGHT]}
        for answer in (WRONG, RIGHT)
    ]
    metric = Grounded()
    scored = evaluate(EvaluationDataset.from_list(rows), metrics=[metric], show_progress=False)
    assert [row["grounded"] for row in scored.scores] == [SCORE, 1]
    assert "most likely “1989”" in metric.reasons[WRONG]


def test_inspect(tmp_path: Path) -> None:
    from inspect_ai import Task, eval  # noqa: A004 - its name for it
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    import spanlab
    from spanlab.integrations.inspect_scorer import grounded

    used = {"usage": ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)}
    says = [ModelOutput.from_content("m", text).model_copy(update=used) for text in (WRONG, RIGHT)]
    samples = [Sample(input=ASKED, id=name, metadata={"passages": [RIGHT]}) for name in ("a", "b")]
    task = Task(dataset=samples, scorer=grounded())
    model = get_model("mockllm/model", custom_outputs=says)
    (log,) = eval(task, model=model, display="none", log_dir="logs", max_samples=1)
    assert log.status == "success"
    assert [sample.scores["grounded"].value for sample in log.samples] == [SCORE, 1]
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
