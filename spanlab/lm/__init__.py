"""Language models: the one place where they are chosen, built, paid for and kept within limits.

    choice = ModelChoice.read()                 # SPANLAB_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY
    meter = Meter(Budget(calls=1000))
    lm = language_model(choice, meter, cache=answer_cache(settings, "models"))
    prediction = await predict(module, lm, question="…")   # any dspy module

What goes wrong on the way ends as one of spanlab's own errors (``translate``). Nothing of dspy is
loaded before ``language_model`` is called.
"""

from spanlab.lm.building import language_model, predict, predicting
from spanlab.lm.cache import AnswerCache, answer_cache
from spanlab.lm.choice import DetectorModelOptions, ModelChoice, ModelOptions, TokenPrice
from spanlab.lm.failures import translate
from spanlab.lm.meter import CallTotals, Meter, count_tokens
from spanlab.lm.secrets import key_of
from spanlab.lm.usage import Budget, CallLimits, Usage
from spanlab.redaction import redact

__all__ = [
    "AnswerCache",
    "Budget",
    "CallLimits",
    "CallTotals",
    "DetectorModelOptions",
    "Meter",
    "ModelChoice",
    "ModelOptions",
    "TokenPrice",
    "Usage",
    "answer_cache",
    "count_tokens",
    "key_of",
    "language_model",
    "predict",
    "predicting",
    "redact",
    "translate",
]
