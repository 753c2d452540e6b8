"""Labelled items: whose labels, no leak between the parts, every language served."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizers.examples import (
    LabelledItem,
    LabelSource,
    fingerprint,
    labelled_claims,
    labelled_items,
    target_spans,
)
from optimizers.held_out import split_by_language, split_in_folds, split_in_halves
from spanlab.base.errors import UsageError
from spanlab.formats import read
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Record, Span, Status, Verdict
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, SoftLabel

ANSWER = "Ada was born in Paris in 1816."


def by(
    name: str, kind: AnnotatorKind, *extents: tuple[int, int], status: Status = Status.DONE
) -> Annotation:
    spans = tuple(Span.of(ANSWER, start, end) for start, end in extents)
    return Annotation(annotator=name, kind=kind, spans=spans, status=status)


def record(*annotations: Annotation) -> Record:
    return Record(item=Item(id="ada", lang="en", answer=ANSWER), annotations=annotations)


def example(name: str, lang: str = "en", question: str | None = None) -> LabelledItem:
    item = Item(
        id=name, lang=lang, question=question or f"What of {name}?", answer=f"It is {name}."
    )
    return LabelledItem(item, ItemLabels(name, lang, (), (), (), len(item.answer)))


def test_gold_labels_are_taken_where_there_are_some() -> None:
    with_gold = record(
        by("gold", AnnotatorKind.GOLD, (16, 21)), by("Bo", AnnotatorKind.PERSON, (25, 29))
    )
    (only,) = labelled_items([with_gold, record(by("Bo", AnnotatorKind.PERSON))], LabelSource())
    assert only.labels.hard == (Extent(16, 21),)
    assert only.labels.raters == ((Extent(25, 29),),)


def test_reviews_count_when_they_are_finished_and_several_vote() -> None:
    reviewed = record(
        by("Ada", AnnotatorKind.PERSON, (16, 21), (25, 29)),
        by("Bo", AnnotatorKind.PERSON, (25, 29)),
        by("Cy", AnnotatorKind.PERSON, (0, 3), status=Status.NOT_ANNOTATED),
        by("offline", AnnotatorKind.DETECTOR, (0, 3)),
    )
    (both,) = labelled_items([reviewed], LabelSource(kind="reviewed"))
    assert both.labels.soft == (SoftLabel(16, 21, 0.5), SoftLabel(25, 29, 1.0))
    assert both.labels.hard == (Extent(25, 29),)
    assert both.labels.raters == ((Extent(16, 21), Extent(25, 29)), (Extent(25, 29),))
    (one,) = labelled_items([reviewed], LabelSource(kind="reviewed", annotators=("Ada",)))
    assert one.labels.hard == (Extent(16, 21), Extent(25, 29))
    assert list(labelled_items([reviewed], LabelSource(kind="reviewed", annotators=("Cy",)))) == []


def test_a_vote_takes_any_annotators_and_needs_their_names() -> None:
    mixed = record(
        by("a", AnnotatorKind.DETECTOR, (16, 21)),
        by("Bo", AnnotatorKind.PERSON, (16, 21), (25, 29)),
    )
    (voted,) = labelled_items([mixed], LabelSource(kind="vote", annotators=("a", "Bo")))
    assert voted.labels.soft == (SoftLabel(16, 21, 1.0), SoftLabel(25, 29, 0.5))
    with pytest.raises(UsageError, match="needs their names"):
        list(labelled_items([mixed], LabelSource(kind="vote")))


def test_a_target_is_a_hard_span_with_the_mean_of_its_soft_labels() -> None:
    soft = (SoftLabel(16, 18, 0.6), SoftLabel(18, 21, 0.9), SoftLabel(25, 29, 0.2))
    (target,) = target_spans(
        ItemLabels("ada", "en", soft, (Extent(16, 21),), (), len(ANSWER)), ANSWER
    )
    assert (target.start, target.end, target.text) == (16, 21, "Paris")
    assert target.prob == pytest.approx((2 * 0.6 + 3 * 0.9) / 5)


def judged(name: str, kind: AnnotatorKind, *verdicts: Verdict | None) -> Annotation:
    """Verdicts on the claims that she was born in Paris, and in 1816."""
    texts = ("Ada was born in Paris.", "Ada was  born in 1816.")
    pairs = zip(texts, verdicts, strict=True)
    claims = tuple(Claim(text=text, verdict=verdict) for text, verdict in pairs)
    return Annotation(annotator=name, kind=kind, claims=claims)


def test_claims_take_the_verdicts_of_the_source_and_most_of_several() -> None:
    several = record(
        judged("gold", AnnotatorKind.GOLD, "refuted", None),
        judged("Ada", AnnotatorKind.PERSON, "refuted", "supported"),
        judged("Bo", AnnotatorKind.PERSON, "supported", "supported"),
        judged("Cy", AnnotatorKind.PERSON, "refuted", "refuted"),
        judged("veritrail", AnnotatorKind.DETECTOR, "supported", "not-supported"),
    )

    def verdicts(*records: Record, **source: object) -> list[tuple[str, str]]:
        found = labelled_claims(records, LabelSource.model_validate(source))
        return [(each.part.text, each.part.verdict) for each in found if each.part]

    paris, year = "Ada was born in Paris.", "Ada was  born in 1816."
    assert verdicts(several) == [(paris, "refuted")]
    assert verdicts(several, kind="reviewed") == [(paris, "refuted"), (year, "supported")]
    pair = {"kind": "vote", "annotators": ("Bo", "veritrail")}
    assert verdicts(several, **pair) == [(paris, "supported")], "a tie is nobody's verdict"
    assert verdicts(record(by("gold", AnnotatorKind.GOLD, (0, 3))), record()) == []


def test_the_claims_of_an_item_stay_together() -> None:
    records = [
        Record(
            item=Item(id=name, lang="en", question=f"What of {name}?", answer=f"It is {name}."),
            annotations=(judged("gold", AnnotatorKind.GOLD, "supported", "refuted"),),
        )
        for name in ("a", "b", "c", "d")
    ]
    examples = list(labelled_claims(records, LabelSource()))
    assert len({each.key for each in examples}) == 8
    for part in split_in_folds(examples, 2, seed=9):
        assert (len(part.training), len(part.held_out)) == (4, 4)
        assert _names(part.training).isdisjoint(_names(part.held_out))
    assert fingerprint(examples) != fingerprint(examples[:-1])


def _names(part: Sequence[LabelledItem]) -> set[str]:
    return {each.item.id for each in part}


@given(
    st.lists(st.tuples(st.integers(0, 12), st.sampled_from("ab")), min_size=8, max_size=40),
    st.integers(2, 4),
    st.integers(0, 3),
)
def test_each_item_is_held_out_once_and_no_question_is_on_both_sides(
    drawn: list[tuple[int, str]], count: int, seed: int
) -> None:
    examples = [
        example(f"n{index}", "en" if lang == "a" else "de", f"Question {question}?")
        for index, (question, lang) in enumerate(drawn)
    ]
    if len({question for question, _ in drawn}) < count:
        with pytest.raises(UsageError, match="too few"):
            split_in_folds(examples, count, seed)
        return
    parts = split_in_folds(examples, count, seed)
    assert sorted(name for part in parts for name in _names(part.held_out)) == sorted(
        _names(examples)
    )
    for part in parts:
        asked = {each.item.question for each in part.training}
        assert asked.isdisjoint(each.item.question for each in part.held_out)
        assert _names(part.training) | _names(part.held_out) == _names(examples)
        if len(asked) < 2:
            continue
        learnt, chosen = split_in_halves(part.training, seed)
        assert _names(learnt).isdisjoint(_names(chosen))
        assert _names(learnt) | _names(chosen) == _names(part.training)
    assert split_in_folds(examples[::-1], count, seed) == parts


def test_every_fold_has_its_share_of_every_language() -> None:
    examples = [
        example(f"{lang}-{index}", lang) for lang in ("de", "en", "zh") for index in range(10)
    ]
    for part in split_in_folds(examples, 2, seed=9):
        held_out = [each.item.lang for each in part.held_out]
        assert {lang: held_out.count(lang) for lang in ("de", "en", "zh")} == {
            "de": 5,
            "en": 5,
            "zh": 5,
        }


def test_too_few_examples_are_said_so() -> None:
    with pytest.raises(UsageError, match="3 labelled items with 3 different questions are too few"):
        split_in_folds([example("a"), example("b"), example("c")], 2, seed=0)


def test_a_language_without_labels_learns_from_the_others() -> None:
    examples = [example("a", "de"), example("b", "de"), example("c", "fr")]
    seen, own = split_by_language(examples, "eu", "others")
    assert (_names(seen), own) == ({"a", "b", "c"}, ())
    seen, own = split_by_language(examples, "fr", "others")
    assert (_names(seen), _names(own)) == ({"a", "b"}, {"c"})
    seen, own = split_by_language(examples, "fr", "pooled")
    assert (_names(seen), _names(own)) == ({"a", "b", "c"}, {"c"})
    with pytest.raises(UsageError, match="no labelled item to learn from for 'eu'"):
        split_by_language(examples, "eu", "each")


def test_a_fingerprint_changes_with_a_label_and_not_with_the_order() -> None:
    samples = list(read(Path("data/samples.jsonl")))
    examples = list(labelled_items(samples, LabelSource()))
    first = next(example for example in examples if not example.labels.hard)
    rest = [example for example in examples if example is not first]
    other = ItemLabels(first.item.id, "en", (SoftLabel(0, 1, 1.0),), (Extent(0, 1),))
    assert fingerprint(examples) == fingerprint(examples[::-1])
    assert fingerprint(examples) != fingerprint([LabelledItem(first.item, other), *rest])
    assert fingerprint(examples) != fingerprint(rest)


def test_what_has_one_question_cannot_be_halved() -> None:
    with pytest.raises(UsageError, match="all 2 labelled examples have one question or answer"):
        split_in_halves(
            [example("a", "en", question="Why?"), example("b", "en", question="Why?")], 9
        )
