"""Mappers: from a model's quotes, corrections and facts to spans of the answer.

Pure functions. Offsets are code points of the untouched answer, start inclusive, end exclusive.

- ``map_quotes``: quotes of the answer, each to its own place (``quotes``).
- ``map_revision``: a corrected answer, by what it deleted and replaced (``corrections``).
- ``map_fact``: the words that state a fact, within the sentence it came from (``facts``).
- ``tokens``, ``sentences``: words and sentences by the rules of the language.
- ``load``: loads a language's tokenizer ahead of its first text.
- ``closest_sentence``: the sentence of some passages that comes closest to a text.
"""

from spanlab.extents import Extent
from spanlab.mappers.corrections import Refine, map_revision
from spanlab.mappers.facts import ClosestSentence, closest_sentence, map_fact
from spanlab.mappers.quotes import MappedQuote, MappedSpan, ModelQuote, QuoteMapping, map_quotes
from spanlab.mappers.tokens import load, sentences, tokens

__all__ = [
    "ClosestSentence",
    "Extent",
    "MappedQuote",
    "MappedSpan",
    "ModelQuote",
    "QuoteMapping",
    "Refine",
    "closest_sentence",
    "load",
    "map_fact",
    "map_quotes",
    "map_revision",
    "sentences",
    "tokens",
]
