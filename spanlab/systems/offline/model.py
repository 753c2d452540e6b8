"""The trained model: raters for answers with and without passages, and the words' background."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.base.settings import Settings
from spanlab.formats.files import check_file
from spanlab.systems.offline.features import AnswerFeatures
from spanlab.systems.offline.lexicon import EMPTY, Lexicon, WordBackground
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.raters import NetRater, TreeRater

FORMAT = "spanlab-offline"
SHIPPED = Path(__file__).with_name("model.npz")
_TOO_LONG = 50_000_000  # bytes of a model file or of what it unpacks to
# Set on Mu-SHROOM's validation set, each language with models of the others.
_ELSEWHERE = 0.7  # weight of how an answer is judged by itself where its passages seem to be …
_COVERED = 0.3  # … about something else, having less than this share of question and answer
_CLOSED_BOOK = 0.4  # that weight where the answer was written without its passages
_BEFORE_ALL = (1980, 1, 1, 0, 0, 0)  # a zip member needs a date; a constant keeps bytes the same


class WordProbabilities(NamedTuple):
    """The estimated share of annotators that would mark each word, and that ``anyone`` would."""

    share: Column
    anyone: Column


class MixedRater(NamedTuple):
    """Trees, and networks that learnt the same number, if any; what they say is averaged."""

    trees: TreeRater
    nets: NetRater | None = None

    def predict(self, table: NDArray[np.float32], names: tuple[str, ...]) -> Column:
        """Return one number per row of ``table``, not clipped; ``names`` are its columns."""
        said = self.trees.predict(table, names)
        return said if self.nets is None else (said + self.nets.predict(table, names)) / 2

    def arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return trees and networks as named arrays for a file."""
        return self.trees.arrays(prefix) | (self.nets.arrays(f"{prefix}.nets") if self.nets else {})

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> MixedRater:
        """Build both from the result of ``arrays``.

        Raises:
            InputError: something is missing or damaged.
        """
        nets = f"{prefix}.nets"
        has_nets = any(name.startswith(f"{nets}.") for name in arrays)
        return cls(TreeRater.of(arrays, prefix), NetRater.of(arrays, nets) if has_nets else None)


@dataclass(frozen=True)
class ModeRaters:
    """The models of one mode, with passages or without.

    ``share`` and ``anyone`` each learnt one number of ``WordProbabilities``.
    """

    share: MixedRater
    anyone: MixedRater

    def rate(self, described: AnswerFeatures) -> WordProbabilities:
        """Rate each word of an answer."""
        share, anyone = (
            np.clip(part.predict(described.table, described.names), 0.0, 1.0)
            for part in (self.share, self.anyone)
        )
        # The share of annotators is never more than the probability of any annotator.
        return WordProbabilities(share, np.maximum(share, anyone))

    def arrays(self, prefix: str) -> dict[str, NDArray[np.generic]]:
        """Return the models as named arrays for a file."""
        return self.share.arrays(f"{prefix}.share") | self.anyone.arrays(f"{prefix}.anyone")

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> ModeRaters:
        """Build the models from the result of ``arrays``.

        Raises:
            InputError: something is missing or damaged.
        """
        return cls(
            MixedRater.of(arrays, f"{prefix}.share"), MixedRater.of(arrays, f"{prefix}.anyone")
        )


@dataclass(frozen=True)
class OfflineModel:
    """The result of training: ``given`` rates answers with passages, ``blind`` those without.

    ``learnt_from`` has the ``answer_hash`` of each answer that it was trained on.
    """

    given: ModeRaters
    blind: ModeRaters
    background: WordBackground
    learnt_from: frozenset[str] = frozenset()

    def rate(
        self,
        described: AnswerFeatures,
        alone: AnswerFeatures,
        coverage: float,
        *,
        closed_book: bool = False,
    ) -> WordProbabilities:
        """Rate each word of an answer beside its passages and ``alone``, without them.

        Passages about something else, whose ``coverage`` is small, make every word look wrong, so
        they count less. ``closed_book`` says that the answer was written without the passages: then
        its own form counts, too, as that of one without any.
        """
        if not described.names:
            return WordProbabilities(np.zeros(0), np.zeros(0))
        if described.passages.empty:
            return self.blind.rate(alone)
        weight = _ELSEWHERE if coverage < _COVERED else _CLOSED_BOOK * closed_book
        if not weight:
            return self.given.rate(described)
        given, blind = self.given.rate(described), self.blind.rate(alone)
        share, anyone = (
            (1 - weight) * beside + weight * by_itself
            for beside, by_itself in zip(given, blind, strict=True)
        )
        return WordProbabilities(share, anyone)

    def dump(self) -> bytes:
        """Return the model as the bytes of an .npz file; the same model gives the same bytes."""
        words = [
            f"{code} {count} {form}"
            for code, counts in sorted(self.background.counts.items())
            for form, count in sorted(counts.items())
        ]
        head = {
            "format": FORMAT,
            "items": dict(sorted(self.background.items.items())),
        }
        return _zip(
            {
                "head": np.array(json.dumps(head)),
                "lexicon": np.frombuffer(self.background.lexicon.dump(), dtype=np.uint8),
                "words": np.array("\n".join(words)),
                "learnt_from": np.array([int(each, 16) for each in sorted(self.learnt_from)], "u8"),
                **self.given.arrays("given"),
                **self.blind.arrays("blind"),
            }
        )


def load(path: Path = SHIPPED) -> OfflineModel:
    """Read a model from a file of ``spanlab train-offline``; it is kept in memory.

    Raises:
        InputError: there is no such file, or it is something else.
    """
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(
            "no model here", file=path, expected="a file of `spanlab train-offline`"
        ) from error
    return _load(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4)
def _load(path: Path, _written: int, size: int) -> OfflineModel:
    check_file(path)
    if size > _TOO_LONG:
        raise InputError("too large for a model", file=path, found=f"{size:,} bytes")
    return parse(path.read_bytes(), str(path))


def parse(data: bytes, name: str) -> OfflineModel:
    """Build a model from a file's bytes, in which no code is ever run.

    Raises:
        InputError: the bytes are not a model; the message calls them ``name``.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if sum(member.file_size for member in packed.infolist()) > _TOO_LONG:
                raise InputError("too large for a model", file=name)
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            return _build({key: file[key] for key in file.files})
    except InputError as error:
        raise error.at(file=name) from error
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            "not a model of the offline detector",
            file=name,
            found=error,
            expected="a file of `spanlab train-offline`",
        ) from error


class InstalledModel(NamedTuple):
    """The model that the detector has on this machine, and the SHA-256 of its file."""

    model: OfflineModel
    digest: str


def installed() -> InstalledModel:
    """Return the model that ``SPANLAB_OFFLINE_MODEL`` names, or the shipped one.

    Raises:
        InputError: the file it names is not there or is no model.
    """
    path = Settings.read().offline_model or SHIPPED
    return InstalledModel(load(path), digest(path.read_bytes()))


def digest(data: bytes) -> str:
    """Return the SHA-256 of a model file."""
    return hashlib.sha256(data).hexdigest()


def _build(arrays: Mapping[str, NDArray[np.generic]]) -> OfflineModel:
    head = json.loads(str(arrays["head"]))
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise InputError("not a model of the offline detector", expected=FORMAT)
    items = {str(code): int(count) for code, count in head["items"].items()}
    counts: dict[str, dict[str, int]] = {code: {} for code in items}
    words = str(arrays["words"])
    for line in words.split("\n") if words else ():
        code, count, form = line.split(" ", 2)
        counts[code][form] = int(count)
    packed = arrays.get("lexicon")
    lexicon = EMPTY if packed is None else Lexicon.parse(packed.astype(np.uint8).tobytes())
    background = WordBackground(items, counts, lexicon)
    return OfflineModel(
        ModeRaters.of(arrays, "given"),
        ModeRaters.of(arrays, "blind"),
        background,
        frozenset(f"{each:016x}" for each in arrays.get("learnt_from", np.zeros(0, "u8")).tolist()),
    )


def _zip(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", _BEFORE_ALL)
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, member.getvalue(), compresslevel=9)
    return target.getvalue()
