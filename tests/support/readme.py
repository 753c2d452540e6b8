"""The lines that the README shows, by the section that shows them."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


def blocks(language: str, section: str = "") -> list[str]:
    """Return the blocks of code in a language, of one section or of all."""
    text = README.partition(f"## {section}\n")[2].partition("\n## ")[0] if section else README
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(section: str = "") -> list[str]:
    """Return the lines of the blocks for a terminal."""
    return [line for block in blocks("sh", section) for line in block.splitlines()]
