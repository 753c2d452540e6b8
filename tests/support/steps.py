"""Steps of systems' traces by their kinds, as files have them."""

from __future__ import annotations

from pydantic_core import to_jsonable_python

from spanlab.schema import Annotation, Step


def step(kind: str, **fields: object) -> Step:
    """Return a step; of a system that was taken out it is an ``OtherStep``."""
    said = {
        "annotator": "a",
        "kind": "detector",
        "trace": [{"kind": kind, **to_jsonable_python(fields)}],
    }
    return Annotation.model_validate(said).trace[0]
