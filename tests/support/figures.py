"""Figures of the guide's tables: a benchmark keeps its own, and `make guide` reads all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "figures.json"


def figures(benchmark: str) -> Mapping[str, Any]:
    """Return what a benchmark measured when it last ran in full."""
    kept: Mapping[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))[benchmark]
    return kept


def keep(benchmark: str, measured: Mapping[str, object]) -> None:
    """Put what a benchmark has measured in the place of what it measured before."""
    kept = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    FILE.write_text(json.dumps(kept | {benchmark: measured}, indent=1) + "\n", encoding="utf-8")
