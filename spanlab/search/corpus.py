"""The documents of a corpus (JSON Lines, or a directory of text and HTML), split into passages."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from spanlab.base.errors import InputError
from spanlab.formats.files import InputFile
from spanlab.formats.reader import input_error

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_HEAD = 4096  # bytes in which a file that is no text shows itself


@dataclass(frozen=True)
class CorpusDocument:
    """A text with what is known of it; ``source`` is the file or the id, for messages."""

    text: str
    source: str
    title: str | None = None
    url: str | None = None
    date: str | None = None


def _join_sentences(text: object) -> object:
    """Return the sentences of a document as one text, as AVeriTeC's knowledge store has them."""
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        return "\n".join(text)
    return text


class _CorpusLine(BaseModel):
    """A line of JSON Lines; what else stands in it is not for us."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    text: Annotated[
        str,
        Field(strict=True, validation_alias=AliasChoices("text", "url2text")),
        BeforeValidator(_join_sentences),
    ]
    title: str | None = None
    url: str | None = None
    date: str | None = None
    id: str | None = None


def read_documents(corpus: Path) -> Iterator[CorpusDocument]:
    """Yield the documents of a corpus, as they are read.

    Args:
        corpus: a file of JSON Lines (or a JSON array, also packed with gzip) with a field ``text``
            (or ``url2text``, a list of sentences) and, if there are any, ``title``, ``url``,
            ``date`` and ``id``; or a directory with
            ``.txt``, ``.md``, ``.html`` and ``.htm`` files, also in directories below it.

    Returns:
        The documents that have a text, files in the order of their paths.

    Raises:
        InputError: something cannot be read or is not what it should be; names file, line and
            field.
    """
    if corpus.is_dir():
        yield from _files(corpus)
    else:
        yield from _lines(InputFile(corpus, str(corpus)))


def _lines(file: InputFile) -> Iterator[CorpusDocument]:
    for row in file.rows():
        try:
            line = _CorpusLine.model_validate_json(row.raw)
        except ValidationError as error:
            raise input_error(error).at(file=file.name, line=row.line) from None
        if line.text.strip():
            source = line.id or f"{file.name}:{row.line}"
            yield CorpusDocument(line.text, source, title=line.title, url=line.url, date=line.date)


def _files(folder: Path) -> Iterator[CorpusDocument]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _READERS)
    if not paths:
        raise InputError(
            "the directory has no files to index",
            file=folder,
            expected=f"files ending in {', '.join(_READERS)}, here or in directories below",
        )
    for path in paths:
        if path.is_file():
            document = _READERS[path.suffix.lower()](path, path.relative_to(folder))
            if document.text.strip():
                yield document


def _text(path: Path, name: Path) -> CorpusDocument:
    return CorpusDocument(_read_text(path), str(name), title=name.stem)


def _html(path: Path, name: Path) -> CorpusDocument:
    from spanlab.search.html import read_html

    content = read_html(_bytes(path))
    return CorpusDocument(
        content.text, str(name), title=content.title or name.stem, url=content.url
    )


_READERS: dict[str, Callable[[Path, Path], CorpusDocument]] = {
    ".txt": _text,
    ".md": _text,
    ".html": _html,
    ".htm": _html,
}


def _read_text(path: Path) -> str:
    data = _bytes(path)
    if data.startswith(_UTF16):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        from spanlab.search.html import decode_by_guess

        return decode_by_guess(data)


def _bytes(path: Path) -> bytes:
    data = InputFile(path, str(path)).whole()
    if b"\0" in data[:_HEAD] and not data.startswith(_UTF16):
        raise InputError("the file is not text", file=path, expected="text in any encoding")
    return data


LONGEST = 1200  # characters: about eight sentences, of which a handful fit any prompt
_SPACE = re.compile(r"\s*")
_PARAGRAPH = re.compile(r"(?=\n[^\S\n]*\n)")
# A full stop ends a sentence before white space; the marks of scripts that are written without
# spaces, and those of Arabic, Urdu, Hindi and Armenian, end one anywhere.
_SENTENCE = re.compile(r"[.!?…]+[\"'»”’)\]]*(?=\s)|[。！？｡؟۔।॥։]+[」』”’)\]]*|(?=\n)")
_WORD = re.compile(r"\s+")


def split(text: str, longest: int = LONGEST) -> Iterator[str]:
    """Yield the passages of a text in order.

    Args:
        text: any text.
        longest: how long a passage may be, in characters, at least 1.

    Returns:
        Passages without white space around them; together they are the whole text but for that.
        One that fits is one passage; a text of white space has none.
    """
    start = 0
    while len(text) - start > longest:
        stop = _stop(text, start, longest)
        yield from _strip(text[start:stop])
        start = _space_after(text, stop)
    yield from _strip(text[start:])


def _stop(text: str, start: int, longest: int) -> int:
    """Return where the passage from ``start`` ends: late, and as little in mid-thought as can be.

    A paragraph's end counts if it makes at least half a passage, a sentence's if a quarter; then
    comes the last white space, and only in a word without end a place inside it.
    """
    limit = start + longest
    for kind, least in ((_PARAGRAPH, longest // 2), (_SENTENCE, longest // 4)):
        ends = [match.end() for match in kind.finditer(text, start, limit + 2)]
        fitting = [end for end in ends if start + least < end <= limit]
        if fitting:
            return fitting[-1]
    spaces = [match.start() for match in _WORD.finditer(text, start + 1, limit + 1)]
    return spaces[-1] if spaces else limit


def _space_after(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _strip(text: str) -> Iterator[str]:
    inner = text.strip()
    if inner:
        yield inner
