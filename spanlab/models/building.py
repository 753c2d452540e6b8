"""Building ``dspy.LM`` objects, and the context in which dspy modules run on one."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from spanlab.base.errors import UsageError
from spanlab.base.redaction import bound_logs
from spanlab.models.choice import ModelChoice
from spanlab.models.failures import translate
from spanlab.models.meter import Meter
from spanlab.models.secrets import headers_of, key_of

if TYPE_CHECKING:
    import dspy

    from spanlab.models.cache import AnswerCache
    from spanlab.models.client import EndpointClient
    from spanlab.models.model import LanguageModel


def language_model(
    choice: ModelChoice, meter: Meter, *, cache: AnswerCache | None
) -> LanguageModel:
    """Build the ``dspy.LM`` for a choice; it may be called from any thread and event loop.

    Args:
        choice: model, endpoint and how to call it.
        meter: counts the calls and stops them at its budget.
        cache: the answers so far, from ``answer_cache``; None asks anew every time.

    Returns:
        An LM whose calls raise one of spanlab's errors, wrapped by dspy: see ``translate``.

    Raises:
        MissingKeyError: the endpoint is OpenAI's and no key is set.
        UsageError: a budget in money is set and no price.
    """
    client = endpoint_client(choice, meter, cache)
    from spanlab.models.model import LanguageModel

    lm = LanguageModel(client)
    lm.kwargs.update(choice.sent)
    return lm


def endpoint_client(
    choice: ModelChoice,
    meter: Meter,
    cache: AnswerCache | None = None,
) -> EndpointClient:
    """Build the client of a choice's endpoint.

    Args:
        choice: model, endpoint and how to call it.
        meter: counts the calls and stops them at its budget.
        cache: the answers so far, from ``answer_cache``; None asks anew every time.

    Raises:
        MissingKeyError: the endpoint is OpenAI's and no key is set.
        UsageError: a budget in money is set and no price.
    """
    # Keep dspy from fetching model metadata over the network when it is imported.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from spanlab.models.client import EndpointClient

    if meter.budget.cost is not None and choice.price is None:
        raise UsageError(
            f"a budget in US dollars needs the price of {choice.model}: "
            f"set {choice.origins.price}=input,cached,output (per million tokens)"
        )
    logging.getLogger("dspy").setLevel(logging.ERROR)
    bound_logs()
    return EndpointClient(
        choice,
        meter,
        key=key_of(choice),
        headers=headers_of(choice),
        cache=cache,
    )


def dspy_has_model() -> bool:
    """Say whether ``dspy.configure`` names a model, which is asked where nothing else does."""
    return "dspy" in sys.modules and sys.modules["dspy"].settings.lm is not None


@contextmanager
def predicting(lm: dspy.LM) -> Iterator[None]:
    """Run the dspy modules inside the block on a model.

    A prompt begins with the inputs in their order, and the task follows (``adapters``): put
    passages, question and answer first, and every call on one item begins with the same long
    text, which providers cache. An answer that cannot be read is asked for once more, as JSON,
    and stays in no cache. Endpoints that take JSON schemas (``structured``) are asked for JSON at
    once.

    Args:
        lm: from ``language_model``, or one that dspy is configured with.
    """
    import dspy

    from spanlab.models.adapters import ChatAnswers

    adapter = getattr(lm, "adapter", None) or ChatAnswers()
    with dspy.context(lm=lm, adapter=adapter, disable_history=True):
        yield


async def predict(module: dspy.Module, lm: dspy.LM, **fields: object) -> dspy.Prediction:
    """Return what a module answers on a model.

    Args:
        module: any dspy module.
        lm: from ``language_model``.
        fields: the module's inputs.

    Raises:
        SpanlabError: there is no answer that can be used; the message holds no key.
    """
    try:
        with predicting(lm):
            return await module.acall(**fields)
    except Exception as error:  # noqa: BLE001 - dspy raises of all kinds; each has its translation
        raise translate(error) from None
