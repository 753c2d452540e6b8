"""Building an index: documents are split, counted and written to one side, then put in place."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from spanlab.errors import InputError, UsageError
from spanlab.retrievers.corpus import CorpusDocument, documents
from spanlab.retrievers.index import MANIFEST, OFFSETS, PASSAGES, IndexManifest, file_hash
from spanlab.retrievers.splitting import LONGEST, split
from spanlab.schema import Passage
from spanlab.text import terms


def build(
    corpus: Path,
    target: Path,
    *,
    longest: int = LONGEST,
    stems: bool = True,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> IndexManifest:
    """Index a corpus; the index appears whole, in the place of an older one, or not at all.

    Args:
        corpus: JSON Lines or a directory; see ``corpus.documents``.
        target: the directory to make.
        longest: characters of a passage at most, at least 1.
        stems: let forms of a word find each other.
        on_progress: called with the number of passages so far.

    Returns:
        What the index says of itself.

    Raises:
        InputError: the corpus cannot be read, has nothing to search, or the index not be written.
        UsageError: something else lies at ``target``.
    """
    _check_target(target)
    with _replacing(target) as folder:
        with (folder / PASSAGES).open("wb") as stream:
            writing = _IndexWriter(stream, stems, on_progress)
            writing.take(documents(corpus), longest)
        if not writing.terms:
            raise InputError(
                "the corpus has nothing to search", file=corpus, expected="documents with words"
            )
        np.save(folder / OFFSETS, np.array(writing.starts, dtype=np.int64), allow_pickle=False)
        writing.index(folder)
        files = sorted(folder.iterdir())
        manifest = IndexManifest(
            documents=writing.documents,
            passages=len(writing.starts) - 1,
            stems=stems,
            fingerprint=writing.digest.hexdigest(),
            files={path.name: path.stat().st_size for path in files},
            hashes={path.name: file_hash(path) for path in files},
        )
        (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")
    return manifest


@dataclass
class _IndexWriter:
    """Passages on their way to disk, and the terms of each as numbers."""

    stream: BinaryIO
    stems: bool
    report: Callable[[int], None]
    documents: int = 0
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    terms: dict[str, int] = field(default_factory=dict)
    numbers: list[array[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.digest = hashlib.sha256(f"stems={self.stems}\n".encode())

    def take(self, source: Iterable[CorpusDocument], longest: int) -> None:
        """Split and write all documents."""
        for document in source:
            self.documents += 1
            for text in split(document.text, longest):
                self._add(
                    Passage(text=text, title=document.title, url=document.url, date=document.date)
                )

    def _add(self, passage: Passage) -> None:
        line = passage.model_dump_json(exclude_defaults=True).encode() + b"\n"
        self.stream.write(line)
        self.digest.update(line)
        self.starts.append(self.starts[-1] + len(line))
        # A passage from the middle of a document is found by its title too.
        words = terms(f"{passage.title or ''}\n{passage.text}", stems=self.stems)
        known = self.terms
        self.numbers.append(array("l", [known.setdefault(word, len(known)) for word in words]))
        self.report(len(self.numbers))

    def index(self, folder: Path) -> None:
        """Score every term in every passage and write the arrays."""
        import bm25s

        bm25 = bm25s.BM25(method="lucene")
        bm25.index((self.numbers, self.terms), create_empty_token=False, show_progress=False)
        bm25.save(folder, show_progress=False)


def _check_target(target: Path) -> None:
    if not target.exists() or (target / MANIFEST).is_file():
        return
    if not target.is_dir() or any(target.iterdir()):
        raise UsageError(
            f"{target} is there already and is no index of ours: name another place for the index"
        )


@contextmanager
def _replacing(target: Path) -> Iterator[Path]:
    """Give a directory to write into, which takes the place of ``target`` if all goes well."""
    place = target.resolve()
    mark = secrets.token_hex(6)
    new, old = (place.with_name(f".{place.name}.{mark}.{kind}") for kind in ("new", "old"))
    try:
        new.mkdir(parents=True)
        try:
            yield new
            if place.exists():
                place.rename(old)
            new.rename(place)
        finally:
            for folder in (new, old):
                shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=target) from error
