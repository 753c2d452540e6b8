"""Short replies against the sentence that answers the question: "No, there is not", or a name.

The model rates words, and a word such as "no" stands in every passage. But where a sentence of the
passages speaks of all that the question asks, a plain yes or no has to agree with it, and a reply
that is a rare name has to be in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz

from spanlab.systems.offline.features import AnswerFeatures
from spanlab.systems.offline.lexicon import base
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.neighbours import folded
from spanlab.systems.offline.words import TokenizedText, WordKind, read

_LEAST_ASKED = 2  # words that a question has to ask about: one alone stands in many sentences
_LONGEST_REPLY = 5  # words of a reply that gives a name or number and says nothing else
_SAME = 80  # rapidfuzz ratio in [0, 100] from which two words are forms of one
_SHORTEST = 4  # letters from which on a word may match a similar one
_SURE = 0.6  # all four such replies in Mu-SHROOM's validation set are wrong, but they are only four


class _Polarity(NamedTuple):
    """How a language says yes and no, and the words that turn a sentence round."""

    yes: frozenset[str]
    no: frozenset[str]
    negations: frozenset[str]


# Languages that negate by words alone; one of another language, as French "en", may mean anything.
_POLARITY = {
    lang: _Polarity(folded(yes), folded(no), folded(f"{no} {negations}"))
    for lang, yes, no, negations in (
        ("ar", "نعم بلى أجل", "لا كلا", "لم ليس ليست لن غير"),
        ("ca", "sí", "no", "mai cap ningú"),
        ("de", "ja", "nein", "nicht kein keine keinen keinem keiner keines nie niemals"),
        ("en", "yes", "no", "not never none nobody nothing neither nor cannot t without"),
        ("es", "sí", "no", "nunca jamás ningún ninguno ninguna nadie nada tampoco"),
        ("eu", "bai", "ez", "inoiz"),
        ("fi", "kyllä joo", "ei", "eivät en et emme ette eikä eivätkä"),
        ("fr", "oui si", "non", "ne n pas jamais aucun aucune"),
        ("hi", "हाँ हां", "नहीं", "न मत"),
        ("it", "sì si", "no", "non mai nessun nessuno nessuna né"),
        ("nl", "ja", "nee", "niet geen nooit"),
        ("pt", "sim", "não", "nunca nenhum nenhuma ninguém"),
        ("sv", "ja jo", "nej", "inte ej aldrig ingen inget inga"),
    )
}
_SILENT = _Polarity(frozenset(), frozenset(), frozenset())


class RefutedReply(NamedTuple):
    """Words of an answer, and a position in the passages' sentence that says otherwise."""

    words: range
    position: int
    is_sure: bool = True  # a name may be another one's, as "Britain" is the United Kingdom's

    def doubt(self, probs: Column) -> Column:
        """Raise the probabilities of the reply's words; their order stays."""
        doubted = probs.copy()
        inside = slice(self.words.start, self.words.stop)
        doubted[inside] = _SURE + (1 - _SURE) * probs[inside]
        return doubted


def refuted_reply(described: AnswerFeatures, question: str, lang: str) -> RefutedReply | None:
    """Return what an answer replies in its first sentence if the passages reply otherwise.

    Args:
        described: the answer.
        question: without titles; one with a "not" in it is not judged.
        lang: language code of the answer.
    """
    answer, asked = described.answer, read(question)
    polarity = _POLARITY.get(base(lang), _SILENT)
    yes_or_no = _says_yes_or_no(answer, polarity)
    short = 0 < len(answer) <= _LONGEST_REPLY and answer.sentence[-1] == 0
    if not (yes_or_no or short) or not polarity.negations.isdisjoint(asked.forms):
        return None
    topic = _content(described, asked)
    sentences = _about(described, topic) if len(topic) >= _LEAST_ASKED else []
    if not sentences:
        return None
    position = described.passages.positions(sentences[0])[0]
    if not yes_or_no:
        is_other = _names_another(described, asked, sentences)
        return RefutedReply(range(len(answer)), position, is_sure=False) if is_other else None
    if not _turned(described, sentences, polarity):
        return None
    first = range(answer.sentence.count(0))
    more = [at for at in first[1:] if not (described.stop[at] or _like(answer.forms[at], topic))]
    return RefutedReply(first[:1] if more else first, position)


def _says_yes_or_no(answer: TokenizedText, polarity: _Polarity) -> bool:
    """Return whether an answer begins with yes or no, before a sign: "No idea" says neither."""
    if not len(answer) or answer.forms[0] not in polarity.yes | polarity.no:
        return False
    return len(answer) == 1 or bool(answer.text[answer.ends[0] : answer.starts[1]].strip())


def _names_another(
    described: AnswerFeatures, asked: TokenizedText, sentences: Sequence[int]
) -> bool:
    """Return whether a reply of rare names alone is in no sentence, and these have another one.

    Of other words, such as "unknown" or "two", nobody can tell that they are not meant there.
    """
    answer, passages = described.answer, described.passages
    frequency = described.table[:, described.names.index("frequency")]
    stated = [at for at in range(len(answer)) if not described.stop[at]]
    words = [answer.text[answer.starts[at] : answer.ends[at]] for at in stated]
    are_names = bool(words) and all(
        word[0].isupper() and not word.isupper() and not frequency[at]  # "UK" is short for others
        for at, word in zip(stated, words, strict=True)
    )
    known = described.stops.union(asked.forms)
    there = [at for number in sentences for at in passages.positions(number)]
    has_other = any(passages.capital[at] and passages.forms[at] not in known for at in there)
    forms = _forms(described, sentences)
    return are_names and has_other and not any(_like(answer.forms[at], forms) for at in stated)


def _content(described: AnswerFeatures, text: TokenizedText) -> list[str]:
    """Return the words that carry a statement, none of scripts without spaces."""
    words = dict(zip(text.forms, text.kinds, strict=True)).items()
    return [form for form, kind in words if kind != WordKind.SIGN and form not in described.stops]


def _about(described: AnswerFeatures, topic: Sequence[str]) -> list[int]:
    """Return the numbers of the passages' sentences that have each of these words."""
    places, sentence = described.passages.places, described.passages.sentence
    held = [
        {sentence[place] for form in places if _like(word, (form,)) for place in places[form]}
        for word in topic
    ]
    return sorted(set.intersection(*held))


def _forms(described: AnswerFeatures, sentences: Iterable[int]) -> set[str]:
    passages = described.passages
    return {passages.forms[at] for number in sentences for at in passages.positions(number)}


def _like(form: str, others: Iterable[str]) -> bool:
    """Return whether a word or a form of it is among others."""
    return any(
        form == other or (len(form) >= _SHORTEST and fuzz.ratio(form, other) >= _SAME)
        for other in others
    )


def _turned(described: AnswerFeatures, sentences: Sequence[int], polarity: _Polarity) -> bool:
    """Return whether all these sentences say yes where the answer says no, or the other way."""
    turned = [not polarity.negations.isdisjoint(_forms(described, [at])) for at in sentences]
    return not any(turned) if described.answer.forms[0] in polarity.no else all(turned)
