"""spanlab: find, review, vote on and export hallucinated spans of LLM outputs.

    import spanlab

    print(spanlab.check("Paris has 3 million people.", ["Paris has 2.1 million people."]))
    records = spanlab.load([{"question": q, "answer": a, "passages": [p]}])  # or files, a DataFrame
    records = spanlab.annotate(records, ["offline", my_function])
    print(spanlab.score(records, "offline"))
    spanlab.save(records, "annotated.csv")

The names below are loaded when they are first used, so that importing spanlab costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from spanlab import _former

if TYPE_CHECKING:
    from spanlab.integrations.notebook import annotate, check, detect, load, push, save, vote
    from spanlab.integrations.notebook_results import (
        agreement,
        compare,
        plot,
        rates,
        score,
        to_arrays,
        to_pandas,
    )
    from spanlab.schema import Annotation, Item, Passage, Record, Span
    from spanlab.systems.safe.notebook import reason
    from spanlab.traces.listening import record
    from spanlab.traces.recording import recorded

    __version__: str

__all__ = [
    "Annotation",
    "Item",
    "Passage",
    "Record",
    "Span",
    "agreement",
    "annotate",
    "check",
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
    "traces.listening": ("record",),
    "traces.recording": ("recorded",),
    "schema": ("Annotation", "Item", "Passage", "Record", "Span"),
    "integrations.notebook": ("annotate", "check", "detect", "load", "push", "save", "vote"),
    "integrations.notebook_results": (
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
if not (Path(__file__).parent / "systems" / "safe").is_dir():  # a system that was taken out
    globals()["__all__"].remove("reason")
_former.install()  # packages written for 1.0 import modules by the names of then
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
