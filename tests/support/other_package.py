"""A small package that brings detectors, as somebody else would write and install it."""

from __future__ import annotations

from pathlib import Path

_ENTRY_POINTS = """
[spanlab.detectors]
shouting = shouting.entry:ENTRY
broken = shouting.broken:ENTRY
offline = shouting.entry:ENTRY
odd = shouting.odd:ENTRY

[spanlab.cards]
shouting = shouting.cards:FILE

[spanlab.formats]
shouts = shouting.more:FORMAT
csv = shouting.more:FORMAT

[spanlab.retrievers]
library = shouting.more:create
nowhere = shouting.broken:create

[spanlab.metrics]
same = shouting.more:same
nothing = shouting.broken:nothing
"""

_ENTRY = """
from typing import Literal

from pydantic import Field

from spanlab.detection.entry import DetectorEntry, DetectorOptions


class ShoutingOptions(DetectorOptions):
    letters: int = Field(3, ge=1, description="How many capital letters a word has at least.")
    mark: Literal["word", "answer"] = "word"


def create(kit):
    from shouting.detector import PanicException, Shouting

    options = ShoutingOptions.model_validate(kit.spec.options)
    if options.letters == 99:
        raise PanicException("no such letters")
    return Shouting(options)


ENTRY = DetectorEntry(
    name="shouting",
    what="marks words in capital letters",
    needs="nothing",
    create=create,
    options=ShoutingOptions,
)
"""

_DETECTOR = """
import re

from spanlab.schema import Annotation, AnnotatorKind, Span


class PanicException(BaseException):
    pass  # of pyo3, for a panic of Rust: no Exception


class Shouting:
    name = "shouting"

    def __init__(self, options):
        self._options = options

    def annotate(self, item):
        if "PANIC" in item.answer:
            raise PanicException("index out of bounds")
        words = re.compile(r"\\\\b[A-Z]{%d,}\\\\b" % self._options.letters)
        found = [match.span() for match in words.finditer(item.answer)]
        if found and self._options.mark == "answer":
            found = [(0, len(item.answer))]
        spans = [
            Span(start=start, end=end, text=item.answer[start:end], prob=1.0)
            for start, end in found
        ]
        return Annotation(annotator="shouting", kind=AnnotatorKind.DETECTOR, spans=tuple(spans))
"""


_ODD = """
from collections.abc import Callable

from spanlab.detection.entry import DetectorEntry, DetectorOptions


class OddOptions(DetectorOptions):
    what: Callable[[], int] = int


ENTRY = DetectorEntry(name="odd", what="", needs="", create=print, options=OddOptions)
"""


_MORE = """
import json

from spanlab.formats.reader import FormatEntry, FormatReader
from spanlab.search.base import RetrievedPassages
from spanlab.schema import Item, Passage, Record


class ShoutsReader(FormatReader):
    def rows(self):
        with self._file.open() as stream:
            for row, _ in self._file.lines(stream):
                yield row

    def _record(self, row):
        return Record(item=Item(id=str(row.line), answer=row.raw.decode().strip()))


def chunks(records):
    for record in records:
        yield (record.item.answer.upper() + "\\n").encode()


FORMAT = FormatEntry(reader=ShoutsReader, chunks=chunks)


class Library:
    name = "library"

    def __init__(self, k):
        self.k = k

    async def search(self, query):
        found = [Passage(text=f"Of {query.text} {n}.") for n in range(self.k)]
        return RetrievedPassages((query.text,), tuple(found))


create = Library


def same(right, scored):
    return float(right.hard == scored.hard)
"""


_CARDS = """
from pathlib import Path

FILE = Path(__file__).with_name("cards.toml")
"""

_CARD = """
[[dataset]]
name = "acronyms"
title = "Acronyms"
licence = "theirs"
source = "the package shouting"
files = ["acronyms.jsonl"]
"""


def install(folder: Path) -> Path:
    """Write the package as pip leaves it, which takes pip two seconds.

    Args:
        folder: an empty folder, or where to make one.

    Returns:
        Where it is installed; a path for ``PYTHONPATH``.
    """
    package, information = folder / "shouting", folder / "shouting-1.0.dist-info"
    package.mkdir(parents=True)
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(_ENTRY_POINTS, encoding="utf-8")
    (package / "__init__.py").touch()
    (package / "entry.py").write_text(_ENTRY, encoding="utf-8")
    (package / "detector.py").write_text(_DETECTOR.replace("\\\\", "\\"), encoding="utf-8")
    (package / "more.py").write_text(_MORE.replace("\\\\", "\\"), encoding="utf-8")
    (package / "odd.py").write_text(_ODD, encoding="utf-8")
    (package / "cards.py").write_text(_CARDS, encoding="utf-8")
    (package / "cards.toml").write_text(_CARD, encoding="utf-8")
    (package / "broken.py").write_text("import nowhere_to_be_found\n", encoding="utf-8")
    return folder
