"""Language models: the one place where they are chosen, built, paid for and kept within limits.

    choice = ModelLayers().resolve()            # SPANLAB_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY
    meter = Meter(Budget(calls=1000))
    lm = language_model(choice, meter, cache=answer_cache(settings, "models"))
    prediction = await predict(module, lm, question="…")   # any dspy module

What goes wrong on the way ends as one of spanlab's own errors (``translate``). Nothing of dspy is
loaded before ``language_model`` is called.
"""

from spanlab.base.redaction import redact
from spanlab.models.building import language_model, predict, predicting
from spanlab.models.cache import AnswerCache, answer_cache
from spanlab.models.choice import DetectorModelOptions, ModelChoice, ModelOptions, TokenPrice
from spanlab.models.failures import translate
from spanlab.models.meter import CallTotals, Meter, count_tokens
from spanlab.models.resolving import ModelLayers
from spanlab.models.secrets import key_of

__all__ = [
    "AnswerCache",
    "CallTotals",
    "DetectorModelOptions",
    "Meter",
    "ModelChoice",
    "ModelLayers",
    "ModelOptions",
    "TokenPrice",
    "answer_cache",
    "count_tokens",
    "key_of",
    "language_model",
    "predict",
    "predicting",
    "redact",
    "translate",
]
