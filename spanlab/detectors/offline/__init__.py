"""The offline detector: words of the answer that passages and question do not support.

It needs no model and no network, and reads every language. It is a lexical evidence checker, no
fact checker: it knows which words, numbers and names stand where, not what they mean.

Steps, each a module of its own:

1. ``words``: answer, question and passages are cut into words and sentences (spaCy's blank
   pipelines); ``normal``: citation marks and Markdown are blanked first, and words are compared
   without regard to case, accents, digit scripts and number formats.
2. ``index``, ``rivals``, ``features``: every word is looked up, exactly, then by rapidfuzz among
   the words that share its rarest trigrams; for an unknown number, the number that stands in its
   place in the passages is found.
3. ``rules``: a probability per word, with constants measured on Mu-SHROOM's validation set.
4. ``spans``: neighbours are joined; ``closest``: the closest passage sentence is quoted.
"""

from __future__ import annotations

from spanlab.detectors.offline.closest import evidence
from spanlab.detectors.offline.features import features
from spanlab.detectors.offline.index import Index
from spanlab.detectors.offline.normal import blank_marks
from spanlab.detectors.offline.rules import FLOOR, FLOOR_WITHOUT_PASSAGES, probabilities
from spanlab.detectors.offline.spans import decided, stretches
from spanlab.detectors.offline.words import read
from spanlab.schema import Annotation, Item, Kind, Span, Status

NAME = "offline"
NO_PASSAGES = "no passages were given: the answer was compared with its question alone"


class OfflineDetector:
    """Marks what an item's passages and question do not support."""

    name = NAME

    def annotate(self, item: Item) -> Annotation:
        """Mark unsupported words of the item's answer, with the closest passage sentence each.

        Args:
            item: any item. Without passages (or with blank ones only) every word that the
                question does not hold is unknown, and numbers and names stand out.

        Returns:
            An annotation that is done: without spans if nothing stood out, with a note if there
            were no passages. ``hard`` holds the same words as the spans, with the gaps between
            neighbours.
        """
        answer = read(blank_marks(item.answer), item.lang)
        titles = [passage.title for passage in item.passages if passage.title]
        texts = [blank_marks(passage.text) for passage in item.passages]
        passages = Index([read(text, item.lang) for text in (*texts, *titles)], answer.words)
        question = Index([read(item.question, item.lang)], answer.words)
        described = features(answer, passages, question)
        probs = probabilities(described)
        blind = not any(text.strip() for text in texts)
        floor = FLOOR_WITHOUT_PASSAGES if blind else FLOOR
        spans = []
        for found in stretches(answer.words, probs, floor):
            start, end = answer.words[found.first].start, answer.words[found.last].end
            quotes = evidence(found, described, passages, item.passages)
            spans.append(Span.of(item.answer, start, end, prob=found.prob, evidence=quotes))
        return Annotation(
            annotator=NAME,
            kind=Kind.DETECTOR,
            status=Status.DONE,
            spans=tuple(spans),
            hard=decided(answer.words, probs, floor),
            note=NO_PASSAGES if blind else None,
        )


def create() -> OfflineDetector:
    """Build the detector; spaCy is loaded with the first item."""
    return OfflineDetector()
