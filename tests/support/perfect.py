"""Perfect models, made from gold labels: what mappers reach if the model makes no mistake."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Literal, NamedTuple

from spanlab.formats import ReadOptions, read
from spanlab.text.corrections import Refine, map_revision
from spanlab.text.extents import Extent, iou, merge
from spanlab.text.labels import hard_of
from spanlab.text.quotes import ModelQuote, map_quotes

Order = Literal["in order", "shuffled", "shuffled, words before", "each text once"]
Variant = Literal["deleted", "new words", "words from elsewhere"]
ORDERS: tuple[Order, ...] = ("in order", "shuffled", "shuffled, words before", "each text once")
_BEFORE = 4  # words named before a quote
VARIANTS: tuple[Variant, ...] = ("deleted", "new words", "words from elsewhere")
_RARE = "囧囍嘂嘦圐圙犇猋骉"


class Answer(NamedTuple):
    """An answer with its gold hard labels."""

    id: str
    lang: str
    text: str
    gold: list[Extent]


def answers(shared: Path) -> list[Answer]:
    """Read the validation split; languages in the order of their files."""
    found: list[Answer] = []
    for path in sorted((shared / "mushroom" / "val").glob("*.jsonl")):
        for record in read(path, ReadOptions(on_warning=lambda _: None)):
            gold = record.by("gold")
            assert gold is not None
            item = record.item
            found.append(Answer(item.id, item.lang.lower(), item.answer, hard_of(gold)))
    return found


def extraction(items: Iterable[Answer], order: Order) -> dict[str, float]:
    """Score quotes of exactly the gold spans: mean IoU per language."""

    def mapped(item: Answer) -> list[Extent]:
        quotes = [ModelQuote(item.text[start:end]) for start, end in item.gold]
        if order == "shuffled, words before":
            before = [" ".join(item.text[:at].split()[-_BEFORE:]) for at, _ in item.gold]
            quotes = [
                quote._replace(before=words) for quote, words in zip(quotes, before, strict=True)
            ]
        if order.startswith("shuffled"):
            random.Random(item.id).shuffle(quotes)
        elif order == "each text once":
            quotes = list(dict.fromkeys(quotes))
        return merge(map_quotes(item.text, quotes).spans)

    return _by_language(items, mapped)


def correction(items: Iterable[Answer], variant: Variant, refine: Refine) -> dict[str, float]:
    """Score a revision that changes exactly the gold spans: mean IoU per language."""

    def mapped(item: Answer) -> list[Extent]:
        spans = map_revision(item.text, revised(item, variant), lang=item.lang, refine=refine)
        return merge([span for span in spans if span.prob > 0.5])

    return _by_language(items, mapped)


def repeated(item: Answer) -> bool:
    """Say whether two gold spans have the same text, so that one quote cannot tell both."""
    texts = [item.text[start:end] for start, end in item.gold]
    return len(set(texts)) < len(texts)


def macro(scores: dict[str, float]) -> float:
    """Average over languages."""
    return fmean(scores.values())


def revised(item: Answer, variant: Variant) -> str:
    """Write the answer again with every gold span deleted or replaced."""
    draw = random.Random(f"{variant} {item.id}")
    parts: list[str] = []
    position = 0
    for start, end in item.gold:
        parts.append(item.text[position:start])
        if variant != "deleted":
            parts.append(_instead(item, item.text[start:end], variant, draw))
        position = end
    return "".join([*parts, item.text[position:]])


def _instead(item: Answer, span: str, variant: Variant, draw: random.Random) -> str:
    if item.lang == "zh":
        pool = [c for c in item.text if not c.isspace() and c not in span]
        if variant == "new words":
            pool = [c for c in _RARE if c not in item.text]
        return "".join(draw.choice(pool) for _ in range(max(1, len(span) // draw.choice((1, 2)))))
    count = max(1, len(span.split()) + draw.choice((-1, 0, 0, 1)))
    if variant == "new words":
        return " ".join("x" + "".join(draw.choices("qzwkvj", k=4)) for _ in range(count))
    gone = set(re.findall(r"\w+", span))
    pool = [word for word in item.text.split() if _letters(word) and not gone & _letters(word)]
    return " ".join(draw.choice(pool or ["xqx"]) for _ in range(count))


def _letters(word: str) -> set[str]:
    return set(re.findall(r"\w+", word))


def _by_language(
    items: Iterable[Answer], mapped: Callable[[Answer], Sequence[Extent]]
) -> dict[str, float]:
    scores: dict[str, list[float]] = defaultdict(list)
    for item in items:
        scores[item.lang].append(iou(item.gold, mapped(item)))
    return {lang: fmean(values) for lang, values in scores.items()}
