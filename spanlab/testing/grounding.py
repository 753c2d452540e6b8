"""An assertion for tests of pipelines: what an answer says is in its passages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spanlab.base.errors import InputError
from spanlab.base.fields import check_share
from spanlab.base.redaction import visible
from spanlab.integrations.notebook import AnyDetector, AnyPassage, detect, passages_in
from spanlab.output.figures import percent
from spanlab.schema import Annotation, Status
from spanlab.text.extents import length
from spanlab.text.labels import hard_of

usual: AnyDetector = "offline"  # which `pytest --spanlab-detector` replaces


class UngroundedError(AssertionError):
    """More of an answer is marked than may be, or it could not be checked.

    ``spanlab_annotation`` says what is marked; the pytest plugin writes it into the report.
    """

    def __init__(self, message: str, annotation: Annotation) -> None:
        super().__init__(visible(message))
        self.spanlab_annotation = annotation


def assert_grounded(
    answer: str,
    passages: AnyPassage | Iterable[AnyPassage],
    *,
    detector: AnyDetector | None = None,
    at_most: float = 0.1,
    **options: Any,
) -> None:
    """Fail a test if a detector marks more of an answer than it may.

    Args:
        answer: the text to check.
        passages: the evidence, as for ``spanlab.detect``: also what a retriever returned.
        detector: as for ``spanlab.annotate``; None for what ``pytest --spanlab-detector`` names,
            else "offline".
        at_most: the share of the answer's characters, in [0, 1], that may be marked as
            hallucinated; `offline` marks some words of correct paraphrases, too.
        **options: ``question``, ``lang`` and what else ``spanlab.detect`` takes.

    Raises:
        UngroundedError: more is marked, or the detector failed; it is an AssertionError.
        UsageError: ``at_most`` is no share; see also ``spanlab.detect``.
        InputError: no passage has a text: nothing would be found against the answer.
        InputError, BudgetError, ConfigurationError: see ``spanlab.detect``.
    """
    __tracebackhide__ = True
    check_share("at_most", at_most)
    given = passages_in(passages)
    if not any(passage.text.strip() for passage in given):
        raise InputError(
            "passages: none has a text", expected="at least one, as the answer is held against them"
        )
    annotation = detect(answer, passages=given, detector=detector or usual, **options)
    if annotation.status is not Status.DONE:
        raise UngroundedError(
            f"{annotation.annotator} could not check it: {annotation.note}", annotation
        )
    share = length(hard_of(annotation)) / max(len(annotation.answer), 1)
    if share > at_most:
        found = f"marks {percent(share)} of the answer, more than {percent(at_most)}"
        raise UngroundedError(f"{annotation.annotator} {found}: {annotation}", annotation)
