"""Where a network is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    pass


Device = Literal["cpu", "cuda", "coreml", "directml"]


BATCH: Final = 32  # rows at most that go through a network at once


@dataclass(frozen=True)
class DeviceOptions:
    """Where a network is run: on which device, with how many threads (0: one for each core)."""

    device: Device = "cpu"
    threads: int = 0
