"""spanlab: find, review, vote on and export hallucinated spans of LLM outputs.

    import spanlab

    print(spanlab.detect("Paris has 3 million people.", passages=["Paris has 2.1 million."]))
    records = spanlab.load([{"question": q, "answer": a, "passages": [p]}])  # or files, a DataFrame
    records = spanlab.annotate(records, ["offline", my_function])
    print(spanlab.score(records, "offline"))
    spanlab.save(records, "annotated.csv")

The names below are loaded when they are first used, so that importing spanlab costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spanlab.listening import record
    from spanlab.recording import recorded
    from spanlab.schema import Annotation, Item, Passage, Record, Span
    from spanlab.systems.safe.notebook import reason
    from spanlab.workflows.notebook import annotate, detect, load, push, save, vote
    from spanlab.workflows.notebook_results import (
        agreement,
        compare,
        plot,
        rates,
        score,
        to_arrays,
        to_pandas,
    )

    __version__: str

__all__ = [
    "Annotation",
    "Item",
    "Passage",
    "Record",
    "Span",
    "agreement",
    "annotate",
    "compare",
    "detect",
    "load",
    "plot",
    "push",
    "rates",
    "reason",
    "record",
    "recorded",
    "save",
    "score",
    "to_arrays",
    "to_pandas",
    "vote",
]
_NAMES = {
    "listening": ("record",),
    "recording": ("recorded",),
    "schema": ("Annotation", "Item", "Passage", "Record", "Span"),
    "workflows.notebook": ("annotate", "detect", "load", "push", "save", "vote"),
    "workflows.notebook_results": (
        "agreement",
        "compare",
        "plot",
        "rates",
        "score",
        "to_arrays",
        "to_pandas",
    ),
    "systems.safe.notebook": ("reason",),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("spanlab")
    if name in _HOMES:
        return getattr(import_module(f"spanlab.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'spanlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
