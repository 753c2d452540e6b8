"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return ``1 item``, ``2,000 items``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
