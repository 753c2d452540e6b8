"""What was learnt from a team's corrections, on top of what the model says of each word.

Two numbers move and stretch the logit of the model's probability, and small trees then correct it
by what else is known of the word. ``fitting`` learns both.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.systems.offline.features import AnswerFeatures
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.model import WordProbabilities
from spanlab.systems.offline.raters import TreeRater

SHIPPED_LOGIT = "shipped"  # the column beside the features: the model's own logit
_EDGE = 0.01  # probabilities nearer to 0 or 1 are as sure
_LONGEST = 2_000_000  # bytes that the numbers of a fit unpack to


@dataclass(frozen=True)
class WordFit:
    """Corrects the probabilities of words.

    The logit of a corrected probability is ``intercept`` + ``slope`` · the model's logit + what the
    ``trees`` say.
    """

    intercept: float
    slope: float
    trees: TreeRater

    def apply(self, described: AnswerFeatures, rated: WordProbabilities) -> WordProbabilities:
        """Return the corrected probabilities of an answer's words, in [0, 1]."""
        share = self.share(described.table, described.names, rated.share)
        moved = logits(rated.anyone) + logits(share) - logits(rated.share)
        return WordProbabilities(share, np.maximum(share, sigmoid(moved)))

    def share(self, table: NDArray[np.float32], names: tuple[str, ...], share: Column) -> Column:
        """Correct the shares of words with these features, whose columns have these ``names``."""
        if not len(share):  # an answer without words has no features
            return share
        before = logits(share)
        more = self.trees.predict(with_logits(table, before), (*names, SHIPPED_LOGIT))
        return sigmoid(self.intercept + self.slope * before + more)

    def dump(self) -> str:
        """Return the numbers as text for ``DetectorFit.numbers``; the same fit, the same text."""
        trees = self.trees.arrays("trees")
        arrays = {name: [array.dtype.str, array.tolist()] for name, array in trees.items()}
        content = {"intercept": self.intercept, "slope": self.slope, "arrays": arrays}
        text = json.dumps(content, separators=(",", ":"), sort_keys=True)
        return b64encode(zlib.compress(text.encode(), 9)).decode()

    @classmethod
    def parse(cls, numbers: str) -> WordFit:
        """Read the result of ``dump``, in which no code is ever run.

        Raises:
            InputError: it is something else, or damaged.
        """
        try:
            packed = zlib.decompressobj()
            text = packed.decompress(b64decode(numbers, validate=True), _LONGEST)
            if packed.unconsumed_tail:
                raise InputError("too large for a fit", expected=f"{_LONGEST:,} bytes at most")
            content = json.loads(text)
            intercept, slope = float(content["intercept"]), float(content["slope"])
            arrays = {
                name: np.array(values, dtype=np.dtype(kind))
                for name, (kind, values) in content["arrays"].items()
                if np.dtype(kind).kind in "ifU"
            }
        except (ValueError, KeyError, TypeError, zlib.error, OverflowError) as error:
            raise InputError("not a fit of the offline detector", found=error) from error
        if not (np.isfinite([intercept, slope]).all() and slope > 0):
            raise InputError("the fit is damaged", found=f"{intercept}, {slope}")
        return cls(intercept, slope, TreeRater.of(arrays, "trees"))


def logits(probs: Column) -> Column:
    """Return the logits of probabilities, those of the nearly sure cut."""
    inside = np.clip(probs, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(inside / (1 - inside)), dtype=np.float64)


def sigmoid(numbers: Column) -> Column:
    """Return the probabilities of which ``numbers`` are the logits."""
    return np.asarray(1 / (1 + np.exp(-numbers)), dtype=np.float64)


def with_logits(table: NDArray[np.float32], before: Column) -> NDArray[np.float32]:
    """Return features with the model's logits as the last column."""
    return np.column_stack([table, before]).astype(np.float32)
