"""A corpus as a directory that can be searched: built once, whole or not at all.

    manifest.json     format, version, fingerprint of the corpus, size and hash of every other file
    passages.jsonl    the passages, one a line
    offsets.npy       where each line begins
    *.index.*         what bm25s keeps: scores as memory-mapped arrays, terms as JSON

Nothing in it is run when it is read (no pickle), and an index that is not whole is refused. It is
built to one side: documents are split, counted and written, then put in place.
"""

from __future__ import annotations

import hashlib
import mmap
import secrets
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from spanlab.base.errors import InputError, UsageError
from spanlab.base.fields import FrozenModel
from spanlab.schema import Count, Passage
from spanlab.search.corpus import LONGEST, CorpusDocument, read_documents, split
from spanlab.text.terms import terms

MANIFEST = "manifest.json"
PASSAGES = "passages.jsonl"
OFFSETS = "offsets.npy"
MOST_TERMS = 64  # of a query, the rarest: the others hardly change the order, but cost time
_DAMAGE = (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, ImportError)
_Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class IndexManifest(FrozenModel):
    """Describes an index: its format, its size, and the sizes and hashes of its files."""

    format: Literal["spanlab-bm25"] = "spanlab-bm25"
    version: Literal[1] = 1
    documents: Count
    passages: Annotated[int, Field(ge=1)]
    stems: bool
    fingerprint: _Hash
    files: dict[str, Count]
    hashes: dict[str, _Hash]  # SHA-256

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the manifest of the index in ``folder``.

        Raises:
            InputError: there is none, or it is another format's or version's.
        """
        path = folder / MANIFEST
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError:
            raise InputError(
                "there is no index", file=folder, expected="a directory that `spanlab index` wrote"
            ) from None
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            raise InputError(
                "this is not an index that this spanlab can read",
                file=path,
                field=".".join(map(str, problem["loc"])) or None,
                found=None if problem["type"] == "json_invalid" else problem["input"],
                expected="an index of format spanlab-bm25, version 1: build it again",
            ) from None


class IndexHit(NamedTuple):
    """A passage that was found, and its BM25 score, above 0."""

    passage: Passage
    score: float


class PassageIndex:
    """An index that is open; any number of threads may search it.

    Args:
        folder: where it is.

    Raises:
        InputError: there is none, it is another format's, or it is not whole.
    """

    def __init__(self, folder: Path) -> None:
        import bm25s

        self.manifest = IndexManifest.read(folder)
        self._folder = folder
        _check_files(folder, self.manifest)
        try:
            self._bm25 = bm25s.BM25.load(folder, mmap=True, allow_pickle=False, show_progress=False)
            self._starts: NDArray[np.int64] = np.load(
                folder / OFFSETS, mmap_mode="r", allow_pickle=False
            )
            with (folder / PASSAGES).open("rb") as stream:
                self._lines = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            if len(self._starts) != self.manifest.passages + 1:
                raise ValueError(f"{len(self._starts)} offsets")
        except _DAMAGE as error:
            raise self._damage_error(error) from error

    def search(self, query: str, k: int) -> list[IndexHit]:
        """Return the best passages for a query.

        Args:
            query: any text; of a long one the rarest terms count.
            k: how many at most.

        Returns:
            Passages that share a term with the query, best first, equally good ones in the order
            of the corpus; none if no term of the query is in the corpus.

        Raises:
            InputError: the index turns out to be damaged.
        """
        try:
            term_ids = self._rarest_terms(query)
            if not term_ids:
                return []
            scores = self._bm25.get_scores_from_ids(term_ids)
            return [IndexHit(self._passage(int(at)), float(scores[at])) for at in _best(scores, k)]
        except _DAMAGE as error:
            raise self._damage_error(error) from error

    def _rarest_terms(self, query: str) -> list[int]:
        vocabulary = self._bm25.vocab_dict
        ids = [
            vocabulary[term]
            for term in set(terms(query, stems=self.manifest.stems))
            if term in vocabulary
        ]
        starts = self._bm25.scores["indptr"]
        # Two terms that are as rare as each other always come in one order.
        return sorted(ids, key=lambda term: (starts[term + 1] - starts[term], term))[:MOST_TERMS]

    def _passage(self, at: int) -> Passage:
        return Passage.model_validate_json(self._lines[self._starts[at] : self._starts[at + 1]])

    def _damage_error(self, error: Exception) -> InputError:
        return InputError(
            f"the index is damaged ({type(error).__name__}: {str(error)[:120]})",
            file=self._folder,
            expected="an index as `spanlab index` writes it: build it again",
        )


def _best(scores: NDArray[np.float32], k: int) -> Sequence[int]:
    matching = np.flatnonzero(scores > 0)
    if len(matching) > k:
        least = np.partition(scores[matching], -k)[-k]
        matching = matching[scores[matching] >= least]
    ordered: list[int] = matching[np.argsort(-scores[matching], kind="stable")][:k].tolist()
    return ordered


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _check_files(folder: Path, manifest: IndexManifest) -> None:
    for name, size in manifest.files.items():
        path = folder / name
        if Path(name).name != name or not path.is_file() or path.stat().st_size != size:
            raise InputError(
                "the index is not whole",
                file=path,
                expected=f"a file of {size:,} bytes: build the index again",
            )
        if file_hash(path) != manifest.hashes.get(name):
            raise InputError(
                "the file was changed after the index was built",
                file=path,
                expected="the file as `spanlab index` wrote it: build the index again",
            )


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
        corpus: JSON Lines or a directory; see ``corpus.read_documents``.
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
            writer = _IndexWriter(stream, stems, on_progress)
            writer.write(read_documents(corpus), longest)
        if not writer.terms:
            raise InputError(
                "the corpus has nothing to search", file=corpus, expected="documents with words"
            )
        np.save(folder / OFFSETS, np.array(writer.starts, dtype=np.int64), allow_pickle=False)
        writer.index(folder)
        files = sorted(folder.iterdir())
        manifest = IndexManifest(
            documents=writer.documents,
            passages=len(writer.starts) - 1,
            stems=stems,
            fingerprint=writer.digest.hexdigest(),
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

    def write(self, corpus: Iterable[CorpusDocument], longest: int) -> None:
        """Split all documents of a corpus and write their passages."""
        for document in corpus:
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
        vocabulary = self.terms
        self.numbers.append(
            array("l", [vocabulary.setdefault(word, len(vocabulary)) for word in words])
        )
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
            f"{target} exists and is not an index of ours: name another place for the index"
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
