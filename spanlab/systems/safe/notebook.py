"""Questions answered step by step, from a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from spanlab.base.errors import UsageError
from spanlab.base.options import problem
from spanlab.detection.selection import DetectorSelection
from spanlab.models import ModelChoice
from spanlab.schema import Record
from spanlab.schema.usage import Budget
from spanlab.search.spec import RetrieverSpec

if TYPE_CHECKING:
    pass


def reason(
    records: Iterable[Record],
    verification: Literal["none", "self", "safe"] = "safe",
    *,
    model: str | ModelChoice | None = None,
    generator: str | ModelChoice | None = None,
    retriever: RetrieverSpec | None = None,
    budget: Budget | None = None,
    **options: object,
) -> list[Record]:
    """Answer the questions of records step by step, with every step verified (SAFE).

    Args:
        records: items with a question, and the passages to answer it from.
        verification: who verifies: nobody, the generator itself, or the verifier.
        model: the model that verifies and reasons; None takes SPANLAB_MODEL.
        generator: the model that reasons, if it is another one.
        retriever: searched for evidence that the passages lack; None for nobody.
        budget: limits on the model calls.
        options: ``steps``, ``retries``, ``feedback`` and ``judge``, see ``ReasonOptions``.

    Returns:
        A record for each: its answer is the steps, ``meta["reasoning"]`` has the final answer, and
        steps that stayed wrong are marked.

    Raises:
        UsageError: there is no such option, or something that is needed is missing.
        BudgetError: the budget is used up; what was paid for is in the cache of answers.
        ConfigurationError: key, address or name of the model is wrong.
    """
    from spanlab.systems.safe.reasoner import ReasonOptions
    from spanlab.systems.safe.reasoning import QuestionReasoner

    choice = DetectorSelection(detectors=("safe",), model=model or "", retriever=retriever)
    try:
        way = ReasonOptions.model_validate({"verification": verification, **options})
    except ValidationError as error:
        raise UsageError(f"reason: {problem(error)}") from None
    work = QuestionReasoner(choice, [way], generator=generator, budget=budget)
    answered = list(work.answer(records))
    if work.spent is not None:
        raise work.spent
    return answered
