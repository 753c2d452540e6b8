"""spanlab: find, review, vote on and export hallucinated spans of LLM outputs.

    import spanlab

    records = spanlab.load("val.jsonl", contexts="contexts/")
    records = spanlab.annotate(records, "offline")
    print(spanlab.score(records, "offline").macro)
    spanlab.save(records, "annotated.jsonl")

The names below are loaded when they are first used, so that importing spanlab costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spanlab.listening import record
    from spanlab.recording import recorded
    from spanlab.workflows.notebook import annotate, load, reason, save, score, vote

    __version__: str

__all__ = ["annotate", "load", "reason", "record", "recorded", "save", "score", "vote"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("spanlab")
    if name in __all__:
        homes = {"record": "listening", "recorded": "recording"}
        home = homes.get(name, "workflows.notebook")
        return getattr(import_module(f"spanlab.{home}"), name)
    raise AttributeError(f"module 'spanlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
