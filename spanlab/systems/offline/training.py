"""Training on labelled items, and cross-validation."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.schema import Item, Record, answer_hash
from spanlab.systems.offline.features import AnswerFeatures, describe, question_of
from spanlab.systems.offline.learners import BoostingSettings, NetSettings, boost, perceptrons
from spanlab.systems.offline.lexicon import WordBackground, WordCounter, gather
from spanlab.systems.offline.links import Column
from spanlab.systems.offline.model import MixedRater, ModeRaters, OfflineModel
from spanlab.systems.offline.passages import read_passages
from spanlab.systems.offline.raters import TrainingRows
from spanlab.systems.offline.synthetic import SyntheticAnswer, paraphrases, verbatim
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

    Items on one subject, asked in several languages or made from the same passages, are held out
    together. There are ``count`` folds, 2 or more; one without items is left out. The other
    arguments and errors are those of ``train_offline``.
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

    Items with the same passages are on one subject. So are two of different languages if most long
    Latin words and numbers of the passages of one are in those of the other (retrieved through
    English, say).
    """
    first: dict[tuple[str, ...], Item] = {}
    subject = {}
    for item in items:
        texts = tuple(passage.text for passage in item.passages) or (item.id,)
        subject[item.id] = first.setdefault(texts, item).id
    documents = list(first.values())
    words = {
        item.id: {word for p in item.passages for word in _LONG.findall(p.text)}
        for item in documents
    }
    for number, training_item in enumerate(documents):
        for other in documents[:number]:
            if training_item.lang == other.lang or subject[training_item.id] == subject[other.id]:
                continue
            fewest = min(len(words[training_item.id]), len(words[other.id]))
            shared = len(words[training_item.id] & words[other.id])
            if fewest >= _FEWEST and shared > _SAME * fewest:
                old, new = subject[training_item.id], subject[other.id]
                subject = {id_: new if name == old else name for id_, name in subject.items()}
    return subject


_LEAST_ITEMS = 20
_FIRST_WORDS = 300  # of the passages, that a made question takes words from
_LENGTH = 0.25  # an answer of n words weighs n ** .25: long ones count more, but not n times
_MOST_ROWS = 80  # words drawn per answer
_SPOKEN = 2  # items whose questions or answers hold a word of the language
_OWN_LANGUAGE = 0.6  # of the share of such words that the most readable passage has
_COPIES = 2  # of each kind of synthetic answer that an item gives at most
_MOST_BALANCE = 8.0  # no answer weighs more than so many of the others
_ASKED_WORDS = (3, 12)  # of a made question, fewest and most
Progress = Callable[[str, int, int], None]  # what is being done, how far, of how many


@dataclass(frozen=True)
class TrainingRecipe:
    """Settings of a training; the defaults made the shipped model.

    ``verbatim`` and ``paraphrase`` are the weights of one synthetic answer against 1.0 for the
    labelled one that lends its question and passages.
    """

    boosting: BoostingSettings = field(default_factory=BoostingSettings)
    nets: NetSettings = field(default_factory=NetSettings)
    verbatim: float = 0.03
    paraphrase: float = 0.065
    seed: int = 0


# Of a cross-validation: with one bag of trees it takes a third of the time and errs a little more.
HELD_OUT = TrainingRecipe(BoostingSettings(bags=1))


def train_offline(
    records: Sequence[Record],
    *,
    annotator: str = "gold",
    recipe: TrainingRecipe | None = None,
    on_progress: Progress = lambda task, done, total: None,
) -> OfflineModel:
    """Train a model on labelled items; the same records and recipe give the same bytes.

    Answers to a question weigh as much together as answers without one, which were made from their
    passages; among the latter, right ones weigh as much together as wrong ones. Without more, a
    question would be the sign of a wrong answer. So an item without one also comes with a question
    made of its own words, each of the two with half of the weight, and one with a question lends
    its passages to short right answers.

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
    labelled = [LabelledItem(record.item, labels_of(record, annotator)) for record in records]
    with_passages = sum(bool(_texts(one.item)) for one in labelled)
    if with_passages < _LEAST_ITEMS:
        raise InputError(
            "too little to learn from",
            found=f"{with_passages} items with passages, of {len(labelled)}",
            expected=f"at least {_LEAST_ITEMS} labelled items with passages",
        )
    reader = _ExampleReader(labelled, recipe)
    given, alone = list[_Example](), list[_Example]()
    for number, (one, weight) in enumerate(zip(labelled, balanced(labelled), strict=True), start=1):
        given += reader.given(one, weight)
        if one.is_asked or not reader.any_asked:
            alone.append(reader.alone(one))
        on_progress("reading", number, len(labelled))
    trainer = _ModelTrainer(recipe, on_progress)
    learnt_from = frozenset(answer_hash(one.item) for one in labelled)
    # Beside passages, networks would gain on some kinds of answers and lose on others, and doubt
    # what one of many passages says.
    beside, by_itself = (
        trainer.raters(given, with_nets=False),
        trainer.raters(alone, with_nets=True),
    )
    return OfflineModel(beside, by_itself, reader.background, learnt_from)


class LabelledItem(NamedTuple):
    """An item, and what is marked in it."""

    item: Item
    labels: ItemLabels

    @property
    def is_asked(self) -> bool:
        """Whether it answers a question."""
        return bool(self.item.question.strip())

    @property
    def is_right(self) -> bool:
        """Whether nothing in it is taken for hallucinated."""
        return not self.labels.hard


def balanced(labelled: Sequence[LabelledItem]) -> list[float]:
    """Return the weight of each answer, as ``train_offline`` says."""
    counts = Counter((one.is_asked, one.is_right) for one in labelled)
    right = min(_MOST_BALANCE, max(1.0, counts[False, False] / max(counts[False, True], 1)))
    made = counts[False, False] + right * counts[False, True]
    answers = counts[True, False] + counts[True, True]
    asked = min(_MOST_BALANCE, max(1.0, made / max(answers, 1)))
    unasked = min(_MOST_BALANCE, max(1.0, answers / max(made, 1.0)))
    return [asked if one.is_asked else unasked * (right if one.is_right else 1) for one in labelled]


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

    def raters(self, examples: Sequence[_Example], *, with_nets: bool) -> ModeRaters:
        """Train the models of one mode."""
        filled = [example for example in examples if len(example.share)]
        if not filled:
            raise InputError("too little to learn from", expected="answers with words in them")
        shares = _rows(filled, [example.share for example in filled])
        anyone = _rows(filled, [example.anyone for example in filled])
        return ModeRaters(self._learn(shares, with_nets), self._learn(anyone, with_nets))

    def _learn(self, rows: TrainingRows, with_nets: bool) -> MixedRater:
        recipe = self.recipe
        trees = boost(rows, recipe.boosting, recipe.seed, self._on_model)
        return MixedRater(trees, perceptrons(rows, recipe.nets, recipe.seed) if with_nets else None)

    def _on_model(self) -> None:
        self.done += 1
        self.on_progress("learning", self.done, 4 * self.recipe.boosting.bags)


class _ExampleReader:
    """Turns items into examples; nothing of an item is in its own background.

    Only answers to questions are counted for the background: several of the others share a
    document, whose words would seem common.
    """

    def __init__(self, labelled: Sequence[LabelledItem], recipe: TrainingRecipe) -> None:
        self.any_asked = any(one.is_asked for one in labelled)
        self.counting = WordCounter(gather())
        self._recipe = recipe
        self._own: dict[str, frozenset[str]] = {}
        self._spoken: dict[str, Counter[str]] = {}
        for one in labelled:
            if self.any_asked and not one.is_asked:
                continue
            item = one.item
            texts = (item.question, item.answer, *(p.text for p in item.passages))
            self._own[item.id] = frozenset(form for text in texts for form in read(text).forms)
            self.counting.add(item.lang, self._own[item.id])
            spoken = self._spoken.setdefault(item.lang, Counter())
            spoken.update({*read(item.question).forms, *read(item.answer).forms})

    @cached_property
    def background(self) -> WordBackground:
        """How common words are in all items that are counted."""
        return self.counting.whole()

    def given(self, one: LabelledItem, weight: float) -> Iterator[_Example]:
        """Yield the answer beside its passages, as it is asked for; none without passages."""
        passages = _texts(one.item)
        if not passages:
            return
        if one.is_asked:
            yield self._example(one.item, passages, one.labels, weight)
            for made, share in self._made(one.item, passages):
                item = one.item.model_copy(update={"answer": made.answer})
                right = replace(one.labels, soft=(), hard=(), raters=(), length=len(made.answer))
                yield self._example(item, made.passages, right, weight * share)
            return
        question = self._question(one, passages)
        for item in (one.item, one.item.model_copy(update={"question": question})):
            yield self._example(item, passages, one.labels, weight / 2)

    def alone(self, one: LabelledItem) -> _Example:
        """Return the answer as it is seen without passages."""
        return self._example(one.item, (), one.labels, 1.0)

    def _made(
        self, item: Item, passages: tuple[str, ...]
    ) -> Iterator[tuple[SyntheticAnswer, float]]:
        """Yield synthetic answers with their weights."""
        recipe, rng = self._recipe, self._random(item, "made")
        passages = self._own_language(item, passages)
        for _ in range(_COPIES):
            right = verbatim(passages, item.lang, rng)
            if right is not None:
                yield right, recipe.verbatim
        often = self.counting.without(item.lang, self._own[item.id]).of(item.lang)
        for right in paraphrases(passages, often, rng)[:_COPIES]:
            yield right, recipe.paraphrase

    def _own_language(self, item: Item, passages: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out passages in another language than the answers: no answer would read so."""
        spoken = self._spoken[item.lang]
        shares = []
        for text in passages:
            forms = read(text).forms
            shares.append(sum(spoken[form] >= _SPOKEN for form in forms) / max(len(forms), 1))
        least = _OWN_LANGUAGE * max(shares)
        return tuple(text for text, share in zip(passages, shares, strict=True) if share >= least)

    def _question(self, one: LabelledItem, passages: Sequence[str]) -> str:
        """Return words of the passages and right ones of the answer, as if they were asked."""
        rng = self._random(one.item, "question")
        answer = read(one.item.answer)
        right = {
            answer.text[start:end]
            for start, end in zip(answer.starts, answer.ends, strict=True)
            if not any(start < hard.end and hard.start < end for hard in one.labels.hard)
        }
        beside = set(passages[0].split()[:_FIRST_WORDS])
        words = sorted(right)
        rng.shuffle(words)
        others = sorted(beside)
        rng.shuffle(others)
        count = rng.randint(*_ASKED_WORDS)
        return " ".join([*words[: count // 2], *others[: count - count // 2]]) + "?"

    def _example(
        self, item: Item, passages: tuple[str, ...], labels: ItemLabels, weight: float
    ) -> _Example:
        common = (
            self.counting.without(item.lang, self._own[item.id])
            if item.id in self._own
            else self.background
        )
        seen = describe(question_of(item), item.answer, read_passages(passages), item.lang, common)
        share = word_shares(seen, labels.soft)
        anyone = word_shares(
            seen, [part._replace(prob=float(part.prob > 0)) for part in labels.soft]
        )
        rows = self._draw(item, len(share))
        weights = np.full(len(rows), weight * len(share) ** _LENGTH / max(len(rows), 1))
        table = seen.table[rows]
        return _Example(item.id, seen.names, table, share[rows], anyone[rows], weights)

    def _draw(self, item: Item, count: int) -> NDArray[np.int64]:
        """Choose the words of an answer to learn from: all, or a random sample of a long one's."""
        if count <= _MOST_ROWS:
            return np.arange(count)
        drawn = self._random(item, item.answer).sample(range(count), _MOST_ROWS)
        return np.array(sorted(drawn), dtype=np.int64)

    def _random(self, item: Item, purpose: str) -> random.Random:
        key = f"{self._recipe.seed}/{item.lang}/{item.id}/{purpose}"
        return random.Random(hashlib.sha256(key.encode()).digest())


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
