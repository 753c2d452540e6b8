"""Training on labelled items, and cross-validation."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.schema import Item, Record
from spanlab.systems.offline.features import AnswerFeatures, describe, question_of
from spanlab.systems.offline.learners import (
    BoostingSettings,
    PerceptronSettings,
    boost,
    propagate,
)
from spanlab.systems.offline.lexicon import WordCounter, gather
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.model import ModeRaters, OfflineModel
from spanlab.systems.offline.passages import read_passages
from spanlab.systems.offline.raters import TrainingRows
from spanlab.systems.offline.synthetic import (
    ReplacementPool,
    SyntheticAnswer,
    injected,
    paraphrases,
    verbatim,
)
from spanlab.systems.offline.words import read
from spanlab.text.labels import ItemLabels, SoftLabel, labels_of

_LONG = re.compile(r"[A-Za-z0-9]{5,}")
_FEWEST = 10  # such words, from which on two items can be compared
_SAME = 0.5  # share of them that two items on one subject have in common


class FoldModel(NamedTuple):
    """A model, and the records that it was not trained on."""

    model: OfflineModel
    held_out: list[Record]


def folds(
    records: Sequence[Record],
    count: int,
    *,
    annotator: str = "gold",
    recipe: TrainingRecipe | None = None,
    on_progress: Progress = lambda task, done, total: None,
) -> Iterator[FoldModel]:
    """Train on all folds but one, for each fold in turn.

    Items on one subject, asked in several languages, are held out together, with everything that
    training makes of an item: its background words and the answers made from its passages. There
    are ``count`` folds, 2 or more; one without items is left out. The other arguments and errors
    are those of ``train_offline``.
    """
    subject = subjects([record.item for record in records])
    names = sorted(set(subject.values()), key=lambda name: hashlib.sha256(name.encode()).digest())
    number = {name: at % count for at, name in enumerate(names)}
    for fold in range(count):
        held_out = [r for r in records if number[subject[r.item.id]] == fold]
        if not held_out:
            continue
        seen = [r for r in records if number[subject[r.item.id]] != fold]

        def report(task: str, done: int, total: int, fold: int = fold) -> None:
            on_progress(f"fold {fold + 1} of {count}, {task}", done, total)

        model = train_offline(seen, annotator=annotator, recipe=recipe, on_progress=report)
        yield FoldModel(model, held_out)


def subjects(items: Sequence[Item]) -> dict[str, str]:
    """Return the subject of each item by item id, named by the id of one of the items on it.

    Two items of different languages are on one subject if most long Latin words and numbers of
    the passages of one are in those of the other (retrieved through English, say).
    """
    words = {
        item.id: {word for p in item.passages for word in _LONG.findall(p.text)} for item in items
    }
    subject = {item.id: item.id for item in items}
    for number, training_item in enumerate(items):
        for other in items[:number]:
            if training_item.lang == other.lang or subject[training_item.id] == subject[other.id]:
                continue
            fewest = min(len(words[training_item.id]), len(words[other.id]))
            shared = len(words[training_item.id] & words[other.id])
            if fewest >= _FEWEST and shared > _SAME * fewest:
                old, new = subject[training_item.id], subject[other.id]
                subject = {id_: new if name == old else name for id_, name in subject.items()}
    return subject


_LEAST_ITEMS = 20
_SPOKEN = 2  # items whose questions or answers hold a word of the language
_OWN_LANGUAGE = 0.6  # of the share of such words that the most readable passage has
_OTHERS = 6  # items whose passages lend the words of errors
_LENGTH = 0.25  # an answer of n words weighs n ** .25: long ones count more, but not n times
_MOST_ROWS = {"real": 120, "blind": 120, "made": 14, "paraphrase": 25}  # words drawn per answer
Progress = Callable[[str, int, int], None]  # what is being done, how far, of how many


@dataclass(frozen=True)
class TrainingRecipe:
    """Settings of a training; the defaults made the shipped model.

    ``boosting`` makes the trees, ``share`` the perceptrons that learn the same, ``anyone`` those
    that learn which words anyone marks at all. ``verbatim`` to ``wrong_paraphrase`` are the weights
    of one synthetic answer against 1.0 for a labelled one, ``copies`` how many of each kind an item
    gives at most.
    """

    boosting: BoostingSettings = field(default_factory=BoostingSettings)
    share: PerceptronSettings = field(default_factory=PerceptronSettings)
    anyone: PerceptronSettings = field(default_factory=lambda: PerceptronSettings(members=4))
    copies: int = 2
    verbatim: float = 0.003
    injected: float = 0.02
    paraphrase: float = 0.065
    wrong_paraphrase: float = 0.045
    seed: int = 0

    @property
    def models(self) -> int:
        """How many there are to train for one mode."""
        return self.boosting.bags + self.share.members + self.anyone.members


def train_offline(
    records: Sequence[Record],
    *,
    annotator: str = "gold",
    recipe: TrainingRecipe | None = None,
    on_progress: Progress = lambda task, done, total: None,
) -> OfflineModel:
    """Train a model on labelled items; the same records and recipe give the same bytes.

    Args:
        records: items with passages where there are any, and with labels.
        annotator: whose annotation is learnt, such as ``gold``, a vote or a reviewer.
        recipe: how to train; None for the shipped model's.
        on_progress: called with the task, and how many of how many steps of it are done.

    Raises:
        InputError: an item lacks the annotator's finished annotation, or there are too few items
            (with passages) to learn from.
        UsageError: scikit-learn is not installed.
    """
    recipe = recipe or TrainingRecipe()
    items = [(record.item, labels_of(record, annotator)) for record in records]
    with_passages = sum(bool(_texts(item)) for item, _ in items)
    if with_passages < _LEAST_ITEMS:
        raise InputError(
            "too little to learn from",
            found=f"{with_passages} items with passages, of {len(items)}",
            expected=f"at least {_LEAST_ITEMS} labelled items with passages",
        )
    examples = _Examples([item for item, _ in items], recipe)
    given, blind = list[_Example](), list[_Example]()
    for number, (item, labels) in enumerate(items, start=1):
        given += examples.given(item, labels)
        blind.append(examples.blind(item, labels))
        on_progress("reading", number, len(items))
    trainer = _ModelTrainer(recipe, on_progress)
    return OfflineModel(trainer.raters(given), trainer.raters(blind), examples.counting.whole())


def _texts(item: Item) -> tuple[str, ...]:
    return tuple(p.text for p in item.passages if p.text.strip())


class _Example(NamedTuple):
    """Some words of an answer: their features, the share that marks them, and their weight.

    ``anyone`` is the share of a word's characters that at least one annotator marks.
    """

    item: str
    names: tuple[str, ...]
    table: NDArray[np.float32]
    share: Column
    anyone: Column
    weight: Column


@dataclass
class _ModelTrainer:
    """Trains one part of the model after the other, and reports progress."""

    recipe: TrainingRecipe
    on_progress: Progress
    done: int = 0

    def raters(self, examples: Sequence[_Example]) -> ModeRaters:
        """Train the models of one mode."""
        filled = [example for example in examples if len(example.share)]
        if not filled:
            raise InputError("too little to learn from", expected="answers with words in them")
        recipe = self.recipe
        shares = _rows(filled, [example.share for example in filled])
        anyone = _rows(filled, [example.anyone for example in filled])
        return ModeRaters(
            boost(shares, recipe.boosting, recipe.seed, self._on_model),
            propagate(shares, recipe.share, recipe.seed, self._on_model),
            propagate(anyone, recipe.anyone, recipe.seed, self._on_model),
        )

    def _on_model(self) -> None:
        self.done += 1
        self.on_progress("learning", self.done, 2 * self.recipe.models)


class _Examples:
    """Turns items into examples; nothing of an item is in its own background."""

    def __init__(self, items: Sequence[Item], recipe: TrainingRecipe) -> None:
        self._items, self._recipe = items, recipe
        self.counting = WordCounter(gather())
        self._own: dict[str, frozenset[str]] = {}
        self._peers: dict[str, list[Item]] = {}
        self._spoken: dict[str, Counter[str]] = {}
        for item in items:
            texts = (item.question, item.answer, *(p.text for p in item.passages))
            self._own[item.id] = frozenset(form for text in texts for form in read(text).forms)
            self.counting.add(item.lang, self._own[item.id])
            self._peers.setdefault(item.lang, []).append(item)
            spoken = self._spoken.setdefault(item.lang, Counter())
            spoken.update({*read(item.question).forms, *read(item.answer).forms})

    def given(self, item: Item, labels: ItemLabels) -> Iterator[_Example]:
        """Yield the labelled answer and the synthetic ones; none of an item without passages."""
        passages = _texts(item)
        if not passages:
            return
        yield self._example(item, passages, labels, _WordSampler(1.0, _MOST_ROWS["real"]))
        for made, weight, rows in self._made(item, passages):
            right = replace(labels, soft=(), hard=(), raters=(), length=len(made.answer))
            answered = item.model_copy(update={"answer": made.answer})
            draw = _WordSampler(weight, rows, made.wrong)
            yield self._example(answered, made.passages, right, draw)

    def blind(self, item: Item, labels: ItemLabels) -> _Example:
        """Return the labelled answer as it is seen without passages."""
        return self._example(item, (), labels, _WordSampler(1.0, _MOST_ROWS["blind"]))

    def _made(
        self, item: Item, passages: tuple[str, ...]
    ) -> Iterator[tuple[SyntheticAnswer, float, int]]:
        recipe, rng = self._recipe, self._random(item, "made")
        peers = self._peers[item.lang]
        others = [peer for peer in rng.sample(peers, min(_OTHERS, len(peers))) if peer is not item]
        pool = ReplacementPool.of([p.text for other in others for p in other.passages[:1]])
        own = self._own[item.id]
        passages = self._own_language(item, passages)
        short, long = _MOST_ROWS["made"], _MOST_ROWS["paraphrase"]
        for _ in range(recipe.copies):
            right = verbatim(passages, item.lang, rng)
            if right is None:
                break
            yield right, recipe.verbatim, short
            wrong = injected(right, pool, own, rng)
            if wrong is not None:
                yield wrong, recipe.injected, short
        often = self.counting.without(item.lang, own).of(item.lang)
        for right in paraphrases(passages, often, rng)[: recipe.copies]:
            yield right, recipe.paraphrase, long
            wrong = injected(right, pool, own, rng)
            if wrong is not None:
                yield wrong, recipe.wrong_paraphrase, long

    def _own_language(self, item: Item, passages: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out passages in another language than the answers: no answer would read so."""
        spoken = self._spoken[item.lang]
        shares = []
        for text in passages:
            forms = read(text).forms
            shares.append(sum(spoken[form] >= _SPOKEN for form in forms) / max(len(forms), 1))
        least = _OWN_LANGUAGE * max(shares)
        return tuple(text for text, share in zip(passages, shares, strict=True) if share >= least)

    def _example(
        self, item: Item, passages: tuple[str, ...], labels: ItemLabels, draw: _WordSampler
    ) -> _Example:
        common = self.counting.without(item.lang, self._own[item.id])
        seen = describe(question_of(item), item.answer, read_passages(passages), item.lang, common)
        soft = [SoftLabel(start, end, 1.0) for start, end in draw.wrong] or labels.soft
        share = word_shares(seen, soft)
        anyone = word_shares(seen, [part._replace(prob=float(part.prob > 0)) for part in soft])
        rows = draw.choose(share, self._random(item, item.answer))
        weight = np.full(len(rows), draw.weight * len(share) ** _LENGTH / max(len(rows), 1))
        table = seen.table[rows]
        return _Example(item.id, seen.names, table, share[rows], anyone[rows], weight)

    def _random(self, item: Item, purpose: str) -> random.Random:
        key = f"{self._recipe.seed}/{item.lang}/{item.id}/{purpose}"
        return random.Random(hashlib.sha256(key.encode()).digest())


class _WordSampler(NamedTuple):
    """The words of an answer to learn from: those around errors first, then a random sample."""

    weight: float
    most: int
    wrong: tuple[tuple[int, int], ...] = ()

    def choose(self, target: Column, rng: random.Random) -> NDArray[np.int64]:
        count = len(target)
        if count <= self.most:
            return np.arange(count)
        errors = np.flatnonzero(target > 0) if self.wrong else np.zeros(0, dtype=np.int64)
        near = {int(at) + step for at in errors for step in (-2, -1, 0, 1, 2)}
        near &= set(range(count))
        rest = sorted(set(range(count)) - near)
        drawn = rng.sample(rest, min(len(rest), max(0, self.most - len(near))))
        return np.array(sorted(near | set(drawn)), dtype=np.int64)


def word_shares(seen: AnswerFeatures, soft: Sequence[SoftLabel]) -> Column:
    """Mean probability of each word's characters."""
    edges = np.zeros(len(seen.answer.text) + 1)
    for start, end, prob in soft:
        edges[start:end] = prob
    total = np.r_[0.0, np.cumsum(edges)]
    starts, ends = np.array(seen.answer.starts), np.array(seen.answer.ends)
    if not len(starts):
        return np.zeros(0)
    return np.asarray((total[ends] - total[starts]) / (ends - starts), dtype=np.float64)


def _rows(examples: Sequence[_Example], targets: Sequence[Column]) -> TrainingRows:
    numbers: dict[str, int] = {}
    groups = [numbers.setdefault(example.item, len(numbers)) for example in examples]
    return TrainingRows(
        names=examples[0].names,
        table=np.concatenate([example.table for example in examples]),
        target=np.concatenate(targets),
        weight=np.concatenate([example.weight for example in examples]),
        group=np.repeat(groups, [len(target) for target in targets]),
    )
