"""One model call on the way to a query."""

from __future__ import annotations

import dspy

from spanlab.lm import predicting, translate


async def predict(module: dspy.Predict, lm: dspy.LM, **fields: object) -> dspy.Prediction:
    """Return what a module answers on a model.

    Raises:
        SpanlabError: there is no answer; the message holds no key.
    """
    try:
        with predicting(lm):
            return await module.acall(**fields)
    except Exception as error:  # noqa: BLE001 - dspy raises of all kinds; each has its translation
        raise translate(error) from None
