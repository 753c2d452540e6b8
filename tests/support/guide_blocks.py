"""What stands on the guide's pages to be typed, and the variables with which tests type it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from spanlab.base.guide import FOLDER, guide_pages
from spanlab.cli.app import app

PAGES = {page.topic: page.path for page in guide_pages()}
TOPICS = [*PAGES]
_DEVELOPERS = FOLDER.with_name("developers").glob("*.md")  # pages of the repository alone
FOR_DEVELOPERS = sorted(path.stem for path in _DEVELOPERS)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MADE = re.compile(r"<!-- made: .*?<!-- end -->", re.DOTALL)


def text_of(topic: str) -> str:
    """Return a page of the guide, or one for developers."""
    return path_of(topic).read_text(encoding="utf-8")


def path_of(topic: str) -> Path:
    """Return the file of a page of the guide, or of one for developers."""
    folder = FOLDER.with_name("developers") if topic in FOR_DEVELOPERS else FOLDER
    return PAGES.get(topic, folder / f"{topic}.md")


def blocks(topic: str, *languages: str) -> list[str]:
    """Return the blocks of a page in some languages, without those that the code makes."""
    text = _MADE.sub("", text_of(topic))
    return [block for kind, block in BLOCK.findall(text) if kind in languages]


def of_section(topic: str, title: str) -> list[str]:
    """Return the blocks of one section of a page, in any language."""
    section = text_of(topic).partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [block for _, block in BLOCK.findall(section)]


def is_shown(shown: str, said: str) -> bool:
    """Return whether a program said what a page shows of it.

    A line `…` stands for other lines, and `…` at the end of a line for the rest of it.
    """
    lines = "\n".join(["", *map(re.escape, shown.strip().splitlines()), ""])
    pattern = lines.replace("\n…\n", r"\n(?:.*\n)*").replace("…", ".*")
    said = "\n".join(["", *map(str.rstrip, said.strip().splitlines()), ""])
    return re.fullmatch(pattern, said) is not None


def commands(topic: str) -> list[str]:
    """Return the lines of a page's blocks for a terminal."""
    return [line for block in blocks(topic, "sh") for line in block.splitlines()]


def helps() -> Iterator[tuple[str, str]]:
    """Yield every command by its name, such as `jobs`, and `jobs list`, with its help."""
    group: Any = get_command(app)
    for name in group.commands:
        command = group.get_command(None, name)
        yield name, command.help or ""
        for inner, of in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", of.help or ""


def is_ours(command: str) -> bool:
    """Return whether a line starts spanlab, maybe with environment variables."""
    words = (word for word in command.split() if not re.match(r"[A-Z_]+=", word))
    return next(words) == "spanlab"


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of somebody who works in a folder."""
    # Without the real data, over which `spanlab bench` would run for minutes: a reader has none.
    here = {"SPANLAB_HOME": str(folder / "home"), "SPANLAB_SHARED": "", "COLUMNS": "100"}
    return os.environ | here
