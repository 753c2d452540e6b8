"""Answers to the detectors' prompts that come from gold labels, made worse by as much as is asked.

For benchmarks, the demonstration of voting, and the optimiser's tests: nothing of it says how good
a model is. The same member gives the same answer to the same item, in whichever form it is asked
for (marked sections or a JSON object).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from prompts import TASK, demonstrations, prompt_of

from spanlab.schema import AnnotatorKind, Record
from spanlab.testing import ModelRequest, ScriptedReply, say, say_fields
from spanlab.text.extents import Extent
from spanlab.text.labels import flatten, hard_of

INSTRUCTIONS = (  # proposed in turn; all but one ask for short quotes
    "Quote the wrong parts of the answer. Keep every quote as short as possible.",
    "List whatever the passages do not say, in the shortest words that say it.",
    "You are a careful editor. Name the mistakes of the answer, with a reason each.",
    "Return the shortest words that carry each error, one by one, in their order.",
    "Read the answer sentence by sentence and copy what is wrong, in short quotes.",
)
_SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\]\n?", re.MULTILINE)
_ASKED = re.compile(r"^- `(?:\[\[ ## )?(\w+)(?: ## \]\])?`(?: \((a JSON \w+)\))?", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_ALWAYS = {  # what is said of every step of a reasoning and every claim, and the step itself
    "step": "####ANSWER: Oslo (Final Answer)",
    "ruling": {
        "diagnosis": "It follows.",
        "errors": [],
        "guidance": "Go on.",
        "reason": "The page says so.",
        "verdict": "supported",
    },
    "picked": {"answer": "So it is.", "document": "1"},
    "next": {"claim_is": "true", "question": ""},
}
_ELSE = {"zh": "别的", "ja": "別の", "th": "อื่น"}


@dataclass(frozen=True)
class Noise:
    """Chances from 0 to 1: to miss a span, invent one, move its borders, quote it twice."""

    drop: float = 0.0
    invent: float = 0.0
    shift: float = 0.0
    double: float = 0.0

    @classmethod
    def level(cls, level: float) -> Noise:
        """Everything in proportion: 0 is gold, 1 is of little use."""
        return cls(drop=0.5 * level, invent=0.5 * level, shift=0.7 * level, double=0.2 * level)


@dataclass(frozen=True)
class _Item:
    id: str
    lang: str
    answer: str
    spans: tuple[Extent, ...]
    probs: tuple[float, ...]


def by_model(ask: ModelRequest) -> str:
    """Tell the members of an ensemble apart by their model."""
    return str(ask.body.get("model", ""))


def by_prompt(ask: ModelRequest) -> str:
    """Tell members apart by model and instruction, for two prompts of one model."""
    return f"{by_model(ask)} {instruction(ask)}"


def better_when_asked(worst: float = 0.8) -> Callable[[ModelRequest], Noise]:
    """Less noise when the instruction asks for short quotes, and with every demonstration."""

    def noise(ask: ModelRequest) -> Noise:
        asked = re.search(r"\bshort", instruction(ask), re.IGNORECASE) is not None
        shown = demonstrations(ask)
        return Noise.level(max(worst - 0.45 * asked - 0.08 * min(shown, 4), 0.0))

    return noise


def instruction(ask: ModelRequest) -> str:
    """Return the task's instruction out of a dspy prompt."""
    return ask.text.partition(TASK)[2].partition("\n\nThe inputs:")[0].strip()


class GoldAnswers:
    """A script for ``ModelServer``.

    Args:
        records: items with gold labels.
        noise: how far to be from gold, for all prompts alike or prompt by prompt.
        seed: another seed is another ensemble.
        member: which member asks; members differ in what they get wrong.
    """

    def __init__(
        self,
        records: Iterable[Record],
        *,
        noise: Noise | Callable[[ModelRequest], Noise] | float = 0.0,
        seed: int = 0,
        member: Callable[[ModelRequest], str] = by_model,
    ) -> None:
        self._items = {item.answer.strip(): item for item in map(_gold, records)}
        self._by_sentence = {
            item.answer[extent.start : extent.end]: item
            for item in self._items.values()
            for extent in _sentences(item.answer)
        }
        self._noise = Noise.level(noise) if isinstance(noise, float | int) else noise
        self._seed = seed
        self._proposed: dict[str, int] = {}  # whose turn it was when it was first asked for
        self._member = member

    def __call__(self, ask: ModelRequest) -> ScriptedReply:
        """Answer every field that the prompt asks for."""
        prompt = prompt_of(ask)
        given, wanted, as_json = _fields(prompt)
        if not wanted:
            return say("ok")
        values = {name: self._value(name, kind, given, ask) for name, kind in wanted.items()}
        if as_json:
            return say(json.dumps(values, ensure_ascii=False))
        return say_fields(**values)

    def _value(self, name: str, kind: str, given: Mapping[str, str], ask: ModelRequest) -> Any:
        if name == "proposed_instruction":
            turn = self._proposed.setdefault(ask.fingerprint, len(self._proposed))
            return INSTRUCTIONS[turn % len(INSTRUCTIONS)]
        if name in _ALWAYS:
            return _ALWAYS[name]
        item = self._item(given)
        builder = _BUILDERS.get(name)
        if builder is None or item is None:
            return _anything(kind)
        return builder(item, self._seen(item, ask), given)

    def _item(self, given: Mapping[str, str]) -> _Item | None:
        found = self._items.get(given.get("answer", "").strip())
        fact = given.get("fact", given.get("claim"))
        if found is None and fact is not None:
            found = self._by_sentence.get(fact)
        return found

    def _seen(self, item: _Item, ask: ModelRequest) -> list[tuple[Extent, float]]:
        """Return the spans as this member sees them, in order."""
        noise = self._noise if isinstance(self._noise, Noise) else self._noise(ask)
        random = Random(f"{self._seed} {self._member(ask)} {item.id}")
        # Where no spaces stand between words, a whole answer would be one.
        word = r"\S{1,3}" if item.lang in _ELSE else r"\S+"
        words = [Extent(*match.span()) for match in re.finditer(word, item.answer)]
        seen: list[tuple[Extent, float]] = []
        for span, prob in zip(item.spans, item.probs, strict=True):
            dropped, moved, doubled = (random.random() for _ in range(3))
            by, side = random.randint(1, 8), random.random()
            if dropped < noise.drop:
                continue
            place = span
            if moved < noise.shift:
                place = _moved(span, by, side < 0.5, len(item.answer))
            seen += [(place, prob)] * (2 if doubled < noise.double else 1)
        if words and random.random() < noise.invent:
            seen.append((random.choice(words), 0.5))
        return sorted(seen)


def _gold(record: Record) -> _Item:
    gold = next(each for each in record.annotations if each.kind is AnnotatorKind.GOLD)
    spans = tuple(hard_of(gold))
    soft = flatten(gold.spans)
    probs = tuple(_mean_prob(span, soft) for span in spans)
    item = record.item
    return _Item(item.id, item.lang, item.answer, spans, probs)


def _mean_prob(span: Extent, soft: Iterable[Any]) -> float:
    total = sum(
        max(min(span.end, part.end) - max(span.start, part.start), 0) * part.prob for part in soft
    )
    return round(total / (span.end - span.start), 2) or 1.0


def _moved(span: Extent, by: int, left: bool, length: int) -> Extent:
    if left:
        return Extent(max(span.start - by, 0), span.end)
    return Extent(span.start, min(span.end + by, length))


def _sentences(answer: str) -> list[Extent]:
    found = []
    for match in _SENTENCE.finditer(answer):
        text = match.group()
        start = match.start() + len(text) - len(text.lstrip())
        if text.strip():
            found.append(Extent(start, start + len(text.strip())))
    return found


def _fields(prompt: str) -> tuple[dict[str, str], dict[str, str], bool]:
    """Return the prompt's input fields, the output fields asked for with their types, the form."""
    body = prompt.partition(TASK)[0]
    asked = prompt.rpartition("Respond with ")[2]
    wanted = dict(_ASKED.findall(asked))
    pieces = _SECTION.split(body)[1:]
    given = {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}
    return given, wanted, asked.startswith("a JSON object")


def _anything(kind: str) -> Any:
    return [] if kind == "a JSON list" else "As the passages say."


Seen = list[tuple[Extent, float]]


def _parts(item: _Item, seen: Seen, given: Mapping[str, str]) -> Any:
    return [
        {
            "text": item.answer[span.start : span.end],
            "reason": "not so",
            "probability": prob,
        }
        for span, prob in seen
    ]


def _revised(item: _Item, seen: Seen, given: Mapping[str, str]) -> Any:
    text, end = "", 0
    for span, _ in seen:
        if span.start >= end:
            text += item.answer[end : span.start] + _ELSE.get(item.lang, "otherwise")
            end = span.end
    return text + item.answer[end:]


def _relations(item: _Item, seen: Seen, given: Mapping[str, str]) -> Any:
    return [{"subject": "the passages", "relation": "speak of", "object": given["question"][:60]}]


def _facts(item: _Item, seen: Seen, given: Mapping[str, str]) -> Any:
    texts = [item.answer[place.start : place.end] for place in _sentences(item.answer)]
    return [{"fact": text, "sentence": text} for text in texts]


def _judgement(item: _Item, seen: Seen, given: Mapping[str, str]) -> Any:
    if given.get("rounds_left", "0") != "0" and "nothing looked up" in given.get("seen", ""):
        return {"look_up": ["the passages"], "verdict": "not-enough-evidence"}
    wrong = _within(item, seen, given["fact"])
    verdict = "refuted" if wrong else "supported"
    return {"look_up": [], "verdict": verdict, "reason": "the graph says", "confidence": 0.9}


def _words(item: _Item, seen: Seen, given: Mapping[str, str]) -> Any:
    return [{"text": text} for text in _within(item, seen, given["claim"])]


def _within(item: _Item, seen: Seen, sentence: str) -> list[str]:
    start = item.answer.find(sentence)
    end = start + len(sentence)
    return [
        item.answer[max(span.start, start) : min(span.end, end)]
        for span, _ in seen
        if span.start < end and start < span.end
    ]


_BUILDERS: dict[str, Callable[[_Item, Seen, Mapping[str, str]], Any]] = {
    "parts": _parts,
    "revised": _revised,
    "relations": _relations,
    "facts": _facts,
    "judgement": _judgement,
    "words": _words,
}
