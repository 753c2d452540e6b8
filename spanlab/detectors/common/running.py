"""Where a network is run; apart from what runs it, so that options are read without that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Device = Literal["cpu", "cuda", "coreml", "directml"]

BATCH: Final = 32  # rows at most that go through a network at once


@dataclass(frozen=True)
class DeviceOptions:
    """Where a network is run: on which device, with how many threads (0: one for each core)."""

    device: Device = "cpu"
    threads: int = 0
