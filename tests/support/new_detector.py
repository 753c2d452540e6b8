"""`make new-detector NAME=…`: a detector with its options, test and page of the guide, to change.

What is written works: it marks words that no passage has.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from string import Template

ROOT = Path(__file__).resolve().parents[2]
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST = 24  # characters of a name; with more the lines of what is written are too long

_FILES = {
    "spanlab/systems/$module/__init__.py": '''\
"""``$name``: words that no passage has.

Say here what it does, step by step, and where that was published.
"""

from typing import Annotated

from pydantic import Field

from spanlab.detection.entry import DetectorEntry, DetectorOptions


class ${Class}Options(DetectorOptions):
    """Which words are looked for."""

    letters: Annotated[
        int, Field(ge=1, description="A word with fewer letters is never marked.")
    ] = 4


ENTRY = DetectorEntry(
    name="$name",
    title="Finds words of no passage",
    what="marks words that no passage has",
    needs="passages or a retriever",
    create="spanlab.systems.$module.detector:create",
    options=${Class}Options,
)
''',
    "spanlab/systems/$module/detector.py": '''\
"""The detector: which words of an answer are marked."""

from __future__ import annotations

import re

from spanlab.detection.base import DetectorKit
from spanlab.schema import Annotation, AnnotatorKind, Item, Span
from spanlab.systems.$module import ${Class}Options


class ${Class}Detector:
    """Marks words that no passage has.

    Args:
        letters: a word with fewer is never marked.
    """

    name = "$name"

    def __init__(self, letters: int) -> None:
        self._word = re.compile(rf"\\w{{{letters},}}")

    def annotate(self, item: Item) -> Annotation:
        """Return an annotation that is done; an item without passages has no span."""
        known = {word for passage in item.passages for word in self._word.findall(passage.text)}
        words = self._word.finditer(item.answer) if item.passages else ()
        spans = (Span.of(item.answer, *word.span()) for word in words if word.group() not in known)
        return Annotation(annotator=self.name, kind=AnnotatorKind.DETECTOR, spans=tuple(spans))


def create(kit: DetectorKit) -> ${Class}Detector:
    """Build the detector from its options."""
    return ${Class}Detector(${Class}Options.model_validate(kit.spec.options).letters)
''',
    "spanlab/systems/$module/doors.py": '''\
"""What is offered here, at the doors of the app."""

from spanlab.doors import Room

ROOM = Room(
    offers={
        "detectors": {
            "$name": ":ENTRY",
        }
    }
)
''',
    "tests/systems/$module/test_$module.py": '''\
"""Words that no passage has are marked."""

from __future__ import annotations

import pytest

import spanlab
from spanlab.detection import DetectorSpec


@pytest.mark.parametrize(
    ("letters", "marked"), [(4, ["1925"]), (2, ["It", "1925"]), (5, [])], ids=str
)
def test_words_of_no_passage_are_marked(letters: int, marked: list[str]) -> None:
    item = spanlab.Item(
        id="tower",
        answer="It was built in 1925.",
        passages=(spanlab.Passage(text="The tower was built in 1889."),),
    )
    spec = DetectorSpec(detector="$name", options={"letters": letters})
    (record,) = spanlab.annotate([spanlab.Record(item=item)], spec)
    assert [span.text for span in record.annotations[0].spans] == marked
''',
    "spanlab/systems/$module/detector-$name.md": """\
# $name: words that no passage has
<!-- listed: $name: words that no passage has. -->

<!-- made: entry $name -->
<!-- end -->

## What it does

`$name` marks every word of an answer that no passage has.

```sh
spanlab annotate mine --detector $name --limit 3
```
""",
}


def write(name: str, root: Path = ROOT) -> list[Path]:
    """Write the files of a new detector; return all of them.

    Args:
        name: what it will be asked for by, such as ``odd-words``.
        root: the folder of the repository.

    Raises:
        ValueError: it cannot be called so, or something is called so.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise ValueError(
            f"NAME={name}: expected at most {_LONGEST} small letters, digits and single dashes,"
            " a letter first, such as odd-words"
        )
    words = {
        "name": name,
        "module": name.replace("-", "_"),
        "Class": "".join(part.capitalize() for part in name.split("-")),
    }
    files = {root / Template(at).substitute(words): text for at, text in _FILES.items()}
    for path in files:
        if path.exists() or (path.parent.name == words["module"] and any(path.parent.glob("*.py"))):
            raise ValueError(f"NAME={name}: {path.relative_to(root).parent} has one of this name")
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(Template(text).substitute(words), encoding="utf-8")
    return [*files]


def main(name: str) -> None:
    """Write a detector, and what is generated of it: the form of its lines, parts of the guide."""
    files = write(name)
    python = [str(path) for path in files if path.suffix == ".py"]
    ruff = Path(sys.executable).with_name("ruff")
    subprocess.run([ruff, "format", "--quiet", *python], check=True)
    subprocess.run([sys.executable, Path(__file__).with_name("guide_parts.py")], check=True)
    print(*(path.relative_to(ROOT) for path in files), sep="\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except ValueError as error:
        sys.exit(str(error))
