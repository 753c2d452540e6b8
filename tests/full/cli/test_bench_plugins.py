"""The plug-in that the page for authors of packages documents runs other people's detectors."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from guide_blocks import text_of

from spanlab.testing import ModelServer, say

Run = Callable[..., subprocess.CompletedProcess[str]]
_NAMES = ("ragas", "deepeval", "hhem", "lettucedetect")

# Stand-ins that are called as the libraries are (RAGAS 0.4, DeepEval 4.3, LettuceDetect 0.2), and
# ask the scripted model for the score.
_STUBS = {
    "ragas/llms.py": "def llm_factory(model, client):\n    return model, client\n",
    "ragas/metrics/collections.py": """
import asyncio
from types import SimpleNamespace

class Faithfulness:
    def __init__(self, llm):
        self.model, self.client = llm

    def score(self, user_input, response, retrieved_contexts):
        ask = [{"role": "user", "content": f"ragas: {response}"}]
        calling = self.client.chat.completions.create(model=self.model, messages=ask)
        async def call():
            return await calling
        said = asyncio.run(call())
        return SimpleNamespace(value=float(said.choices[0].message.content))
""",
    "deepeval/metrics.py": """
from openai import OpenAI

class FaithfulnessMetric:
    def __init__(self, model, async_mode):
        self.model = model

    def measure(self, case):
        ask = [{"role": "user", "content": f"deepeval: {case['actual_output']}"}]
        said = OpenAI().chat.completions.create(model=self.model, messages=ask)
        return float(said.choices[0].message.content)
""",
    "deepeval/test_case.py": "LLMTestCase = dict\n",
    "transformers/__init__.py": """
class AutoModelForSequenceClassification:
    @classmethod
    def from_pretrained(cls, name, trust_remote_code):
        return cls()

    def predict(self, pairs):
        return [0.9 if "1889" in hypothesis else 0.2 for _, hypothesis in pairs]
""",
    "lettucedetect/models/inference.py": """
class HallucinationDetector:
    def __init__(self, method, model_path):
        pass

    def predict(self, context, question, answer, output_format):
        start = answer.find("1925")
        found = {"start": start, "end": start + 4, "confidence": 0.8, "text": "1925"}
        return [found] if start >= 0 else []
""",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the documented module, its entry points, and the libraries' stand-ins."""
    _, _, text = text_of("adding").partition("## Detectors of other libraries")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert code
    folder = tmp_path / "site"
    points = "".join(f"{name} = judges:{name.upper()}\n" for name in _NAMES)
    files = {
        **_STUBS,
        "judges.py": code[1],
        "judges-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: judges\nVersion: 1\n",
        "judges-1.dist-info/entry_points.txt": f"[spanlab.detectors]\n{points}",
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_other_people_s_detectors_are_rows_of_the_table(
    spanlab: Run, tmp_path: Path, site: Path, items: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: say("1" if "1889" in str(ask.messages) else "0.25"))
    (tmp_path / "cards.toml").write_text(
        '[[dataset]]\nname = "towers"\ntitle = "Towers"\nlicence = "ours"\nsource = "here"\n'
        f'files = ["{items.name}"]\n',
        encoding="utf-8",
    )
    command = ["bench", "--data", ".", "--cards", "cards.toml", "--dataset", "towers"]
    command += [part for name in _NAMES for part in ("--detector", name)]
    environ = {
        "PYTHONPATH": str(site),
        "OPENAI_BASE_URL": model_server.url,
        "OPENAI_API_KEY": "sk-of-the-tests",
        "SPANLAB_MODEL": "scripted",
    }
    done = spanlab(
        *command, "--controls", "nothing", "-o", "table", stdout=subprocess.PIPE, **environ
    )
    assert done.returncode == 0, done.stderr
    marked = {}
    for name in _NAMES:
        lines = (tmp_path / f"table/predictions/towers/{name}.jsonl").read_text().splitlines()
        assert len(lines) == 3, done.stdout
        marked[name] = [json.loads(line)["soft_labels"] for line in lines]
    year = {"start": 48, "end": 52, "prob": 0.8}
    assert marked["lettucedetect"] == [[year], [], []]
    assert [labels[0]["prob"] for labels in marked["hhem"]] == pytest.approx([0.8, 0.1, 0.1])
    for name in ("ragas", "deepeval"):
        assert [[label["prob"] for label in labels] for labels in marked[name]] == [
            [0.75],
            [],
            [],
        ]
