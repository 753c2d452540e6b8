"""What a detector learnt from the reviews of a dataset, as the dataset keeps it."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from spanlab.base.fields import Count, FrozenModel, Name

if TYPE_CHECKING:
    from spanlab.schema.item import Item

_ID_DIGITS = 8
_HASH_DIGITS = 16


def answer_hash(item: Item) -> str:
    """Return a hash by which an answer is recognised in another dataset or file.

    It is the first 16 hexadecimal digits of the SHA-256 of the JSON list of question and answer,
    in UTF-8, without spaces and with no character escaped that JSON does not require. The exact
    text counts: nothing is trimmed or normalised. Id, language and passages do not count.
    """
    text = json.dumps([item.question, item.answer], ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:_HASH_DIGITS]


class FitFigure(FrozenModel):
    """A figure on held-out answers, before and after a fit.

    ``low`` and ``high`` are the 95 % interval of the difference, after minus before, from a
    bootstrap over groups of related answers. All are None if the answers do not define the figure.
    """

    before: float | None = None
    after: float | None = None
    low: float | None = None
    high: float | None = None


class FitReport(FrozenModel):
    """How a fit does on answers that it did not learn from.

    ``answers`` were judged, each by a fit on the other ``folds``; related answers (the same
    question, answer or passages) are in one of ``groups`` and in one fold. ``iou`` is the mean over
    answers; ``precision`` the share of the marked characters that people marked; ``auroc`` tells
    answers with marks from those without by their likeliest word; ``right_marked`` is the share
    of the answers without marks that get one; ``calibration_error`` that of the characters'
    probabilities. All are in [0, 1].
    """

    answers: Count
    groups: Count
    folds: Count
    iou: FitFigure
    precision: FitFigure
    auroc: FitFigure
    right_marked: FitFigure
    calibration_error: FitFigure


class DetectorFit(FrozenModel):
    """What a detector learnt from the reviews of a dataset.

    ``name`` is the dataset's name when it was made, ``base`` the SHA-256 of the detector's own
    model, below which it does not work. ``numbers`` are what it learnt: the detector's JSON, packed
    by zlib and written in Base64; empty if it did not gain and nothing was kept. ``learnt_from``
    has the ``answer_hash`` of each answer; ``annotators`` are those whose labels were learnt.
    ``reviews`` counts what people had finished by then. ``in_use`` says whether runs over the
    dataset use it.
    """

    detector: Name
    name: Name
    base: str
    numbers: str
    learnt_from: tuple[str, ...]
    annotators: tuple[Name, ...]
    reviews: Count
    made: datetime
    report: FitReport
    in_use: bool

    @property
    def id(self) -> str:
        """The dataset's name and eight digits of a hash of what the fit computes with."""
        content = f"{self.detector}\0{self.base}\0{self.numbers}"
        return f"{self.name}@{sha256(content.encode()).hexdigest()[:_ID_DIGITS]}"
