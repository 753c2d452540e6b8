"""The kinds of value that the schema's fields hold, and the base of its types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Offset = Annotated[int, Field(strict=True, ge=0)]
Count = Annotated[int, Field(strict=True, ge=0)]
Probability = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0.0, le=1_000_000.0)]  # model calls a minute
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,8}(-[A-Za-z0-9]{1,8})*$")]


class Frozen(BaseModel):
    """Immutable, and without fields that nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def unique(names: Iterable[str], what: str) -> None:
    """Refuse a name that stands twice.

    Raises:
        ValueError: says which, and what it names.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} stands twice")
        seen.add(name)
