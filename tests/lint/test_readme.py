"""What the README names is there; what it shows is typed in ``walks``."""

from __future__ import annotations

import re
from pathlib import Path

from guide_blocks import is_ours
from PIL import Image
from readme import README, blocks, commands

from spanlab.base.guide import FOLDER

ROOT = Path(__file__).resolve().parents[2]


def test_every_other_command_is_a_target_of_make() -> None:
    others = [command for command in commands() if not is_ours(command)]
    assert others == ["make run"]
    walked: tuple[str, ...] = ("Start", "You have a file", "You have traces", "You have a team")
    assert commands() == [command for section in walked for command in commands(section)]
    walked = ("You have a notebook", "You have tests")
    assert blocks("python") == [block for each in walked for block in blocks("python", each)]


def test_every_picture_of_it_and_of_the_guide_is_a_window_and_small() -> None:
    """`make pictures` takes them anew, and shows that the pages are as they say."""
    for picture in (FOLDER / "pictures").iterdir():
        with Image.open(picture) as image:
            assert image.size == (1280, 800), picture.name
        assert picture.stat().st_size < 1 << 18, picture.name


def test_every_figure_of_its_table_is_on_the_page_that_the_row_names() -> None:
    table = README.partition("## Measured results")[2].partition("\n## ")[0]
    compared = 0
    for row in (line for line in table.splitlines() if line.startswith("| ")):
        for figure in re.findall(r"(?<![\w.])\.\d{2,3}\b", row):
            (page,) = re.findall(r"\]\(([^)]+)\) \|$", row)
            assert figure in (ROOT / page).read_text(encoding="utf-8"), (figure, page)
            compared += 1
    assert compared > 20


def test_it_is_one_page() -> None:
    assert len(README.splitlines()) <= 120


def test_every_file_and_page_that_it_names_is_there() -> None:
    found = re.findall(r"\]\(([^)]+)\)", README) + re.findall(r'src(?:set)?="([^"]+)', README)
    assert len(found) > 20
    for path in found:
        assert (ROOT / path).is_file(), path


def test_the_layout_names_only_what_is_there() -> None:
    pages = ("README.md", *(f"developers/{page}.md" for page in ("house", "adding", "security")))
    layout = "".join((ROOT / "spanlab" / page).read_text(encoding="utf-8") for page in pages)
    decisions = sorted((ROOT / "design").glob("*.md"))
    layout += "".join(page.read_text(encoding="utf-8") for page in decisions)
    for page in decisions:
        for path in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / path).is_file(), path
    names = set(re.findall(r"`?\b((?:spanlab|optimizers|tests)/[\w/]*(?:\.\w+)?|app\.py)", layout))
    packages = (
        r"app|base|bench|campaigns|cli|comparison|data|detection|formats|integrations|jobs|measure"
        r"|memory|models|networks|oplog|output|people|review|schema|scoring|search|storage|systems"
        r"|text|tools|ui"
    )
    inside = set(re.findall(rf"`((?:{packages})/[\w/]*(?:\.py)?)[`:]", layout))
    assert len(names) >= 15
    assert len(inside) >= 15
    for name in names | {f"spanlab/{name}" for name in inside}:
        if re.match(r"tests/(full/)?systems/", name) and not (ROOT / name).parent.is_dir():
            continue  # of a system that was taken out
        assert (ROOT / name).exists(), name
