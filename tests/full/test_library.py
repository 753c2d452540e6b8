"""Rows in, frames out: the few functions of the library, as a notebook calls them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
from mypy import api

ROOT = Path(__file__).resolve().parents[2]


SCRIPT = """
import pandas as pd, spanlab
from collections.abc import Iterator
from spanlab.text.labels import ItemLabels

def my_function(item: spanlab.Item) -> Iterator[spanlab.Span]:
    at = item.answer.find("3")
    yield spanlab.Span.of(item.answer, at, at + 9)

def my_metric(right: ItemLabels, scored: ItemLabels) -> float:
    return float(right.hard == scored.hard)

print(spanlab.detect(
    "Paris has 3 million people.", passages=["Paris has 2.1 million inhabitants."]))
q, a, p = "How many?", "Paris has 3 million people.", "Paris has 2.1 million inhabitants."
label = [{"start": 10, "end": 19}]
rows = [{"question": q, "answer": a, "passages": [p], "label": label, "model": "m"}] * 2
records = spanlab.load(rows)
records = spanlab.load(pd.DataFrame(rows))
records = spanlab.annotate(records, ["offline", my_function], max_cost=2)
records = spanlab.vote(records)
report = spanlab.score(records, "vote", against="gold", metrics=[my_metric])
print(report.to_pandas())
print(report)
print(spanlab.agreement(records), spanlab.rates(records, by="meta.model"))
print(spanlab.compare(records, "vote", "offline"))
spanlab.save(records, "x.csv")
print(spanlab.to_pandas(records), spanlab.plot(records[0]))
item = spanlab.Item(id="1", answer=a, passages=[spanlab.Passage(text=p)])
annotation = spanlab.Annotation(
    annotator="mine", kind="detector", status="done", spans=[spanlab.Span.of(a, 10, 19)])
record = spanlab.Record(item=item, annotations=[annotation])
print(spanlab.__version__)
"""


def test_what_the_documentation_promises_runs_as_a_script(tmp_path: Path) -> None:
    Path(tmp_path, "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "error", "script.py"],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "⟦" in done.stdout.splitlines()[0]
    assert len(pd.read_csv(tmp_path / "x.csv")) == 2 * 4


def test_a_script_is_typed_for_those_who_check_it_strictly(tmp_path: Path) -> None:
    """With mypy's own rules alone, as nobody who uses spanlab need know of pydantic's plugin.

    Other packages that spanlab is made of are not read: that takes four times as long.
    """
    Path(tmp_path, "script.py").write_text(SCRIPT)
    Path(tmp_path, "mypy.ini").write_text(
        "[mypy]\nstrict = true\nfollow_imports = skip\n"
        "[mypy-spanlab.*,optimizers.*,pydantic.*,pydantic_core.*]\nfollow_imports = silent\n"
    )
    told, broken, status = api.run(
        [
            *("--config-file", str(tmp_path / "mypy.ini"), str(tmp_path / "script.py")),
            *("--cache-dir", str(ROOT / ".mypy_cache" / "without_plugins")),
        ]
    )
    assert (status, broken) == (0, ""), told


def test_importing_it_loads_nothing_slow() -> None:
    code = """
import sys, time
before = time.process_time()
import spanlab
print({"pydantic", "numpy", "dspy"} & set(sys.modules), time.process_time() - before < 0.1)
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stdout == "set() True\n", done.stderr
