"""Votes: hand-made tables, a naive count per character, and the shared task's own labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paris import ITEM, TEXT, by, unfinished

from spanlab.base.errors import UsageError
from spanlab.formats import ReadOptions, read
from spanlab.schema import Annotation, AnnotatorKind, Interval, Item, Record, Span, Status
from spanlab.text.extents import Extent, mushroom_extents
from spanlab.text.labels import flatten, hard_of, vote

extents = st.lists(
    st.tuples(st.integers(0, 24), st.integers(0, 24)).map(lambda p: Extent(min(p), max(p)))
)


def shares(annotation: Annotation) -> list[tuple[int, int, float]]:
    return [(span.start, span.end, span.prob) for span in annotation.spans]


def test_a_vote_is_each_characters_share() -> None:
    """Several annotators per item become one annotation that names its voters."""
    found = vote(ITEM, [by("a", (0, 5)), by("b", (3, 8)), by("c"), by("d", (3, 5))], name="all")
    # 0-3 a; 3-5 a, b, d; 5-8 b: of four
    assert shares(found) == [(0, 3, 0.25), (3, 5, 0.75), (5, 8, 0.25)]
    assert hard_of(found) == [(3, 5)]
    assert (found.annotator, found.kind, found.status) == ("all", AnnotatorKind.VOTE, Status.DONE)
    assert found.voters == ("a", "b", "c", "d")
    assert found.note is None


def test_votes_on_a_repeated_word_stay_at_their_own_place() -> None:
    """Repeated text maps to its own occurrence."""
    found = vote(ITEM, [by("a", (18, 23)), by("b", (18, 23))])
    assert shares(found) == [(18, 23, 1.0)]
    assert found.spans[0].text == "Paris"


def test_overlapping_and_adjacent_spans_of_one_annotator_are_one_vote() -> None:
    """Overlapping selections count each character once."""
    found = vote(ITEM, [by("a", (0, 5), (2, 8), (8, 12), (0, 5)), by("b")])
    assert shares(found) == [(0, 12, 0.5)]
    assert hard_of(found) == []


def test_a_detector_votes_for_what_it_decided() -> None:
    unsure = by("offline", (0, 5), kind=AnnotatorKind.DETECTOR, prob=0.5)
    sure = by("other", (9, 12), kind=AnnotatorKind.DETECTOR, prob=0.51)
    assert shares(vote(ITEM, [unsure, sure])) == [(9, 12, 0.5)]


def test_only_finished_annotations_vote() -> None:
    """Not annotated is not the same as annotated without spans: only the second votes."""
    found = vote(
        ITEM,
        [
            by("a", (0, 5)),
            by("nothing-found"),
            unfinished("b", Status.FAILED),
            unfinished("c", Status.SKIPPED),
            unfinished("d", Status.NOT_ANNOTATED),
        ],
    )
    assert shares(found) == [(0, 5, 0.5)]
    assert found.voters == ("a", "nothing-found")
    assert found.note == "did not vote: b (failed), c (skipped), d (not-annotated)"


def test_a_vote_of_annotators_that_found_nothing_has_no_spans() -> None:
    found = vote(ITEM, [by("a"), by("b")])
    assert (found.spans, found.status) == ((), Status.DONE)


def test_weights_are_shares_of_the_whole_weight() -> None:
    voters = [by("a", (0, 5)), by("b", (3, 8)), by("c", (9, 12))]
    found = vote(ITEM, voters, weights={"a": 3, "b": 1, "c": 0, "absent": 7})
    assert shares(found) == [(0, 3, 0.75), (3, 5, 1.0), (5, 8, 0.25)]


def test_half_of_the_weight_is_not_more_than_half() -> None:
    # As binary fractions 0.1 + 0.2 is more than 0.3; as weights it is the same.
    voters = [by("a", (0, 5)), by("b", (0, 5)), by("c")]
    found = vote(ITEM, voters, weights={"a": 0.1, "b": 0.2, "c": 0.3})
    assert shares(found) == [(0, 5, 0.5)]
    assert hard_of(found) == []


@pytest.mark.parametrize(
    ("annotations", "weights", "message"),
    [
        pytest.param([], None, "no finished annotation.*given: none", id="nobody"),
        pytest.param(
            [unfinished("a", Status.FAILED)], None, r"given: a \(failed\)", id="all-failed"
        ),
        pytest.param([by("a"), by("a")], None, "a would vote more than once", id="twice"),
        pytest.param([by("a")], {"anna": 1}, "'a' votes but has no weight", id="no-weight"),
        pytest.param([by("a")], {"a": -1}, "weight of 'a' is -1", id="negative"),
        pytest.param([by("a")], {"a": float("nan")}, "weight of 'a' is nan", id="not-a-number"),
        pytest.param([by("a"), by("b")], {"a": 0, "b": 0}, "a, b have weight 0", id="all-zero"),
    ],
)
def test_a_vote_that_cannot_be_held(
    annotations: list[Annotation], weights: dict[str, float] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        vote(ITEM, annotations, weights=weights)


@given(st.lists(st.tuples(extents, st.integers(0, 3)), min_size=1, max_size=5))
def test_votes_equal_a_count_per_character(weighted: list[tuple[list[Extent], int]]) -> None:
    total = sum(weight for _, weight in weighted)
    if total == 0:
        return
    item = Item(id="x", answer="abcdefgh" * 3)
    voters = [
        Annotation(
            annotator=str(index),
            kind=AnnotatorKind.PERSON,
            spans=tuple(Span.of(item.answer, *span) for span in spans if span.end > span.start),
        )
        for index, (spans, _) in enumerate(weighted)
    ]
    found = vote(item, voters, weights={str(i): weight for i, (_, weight) in enumerate(weighted)})
    expected = [
        sum(weight for spans, weight in weighted if any(s <= place < e for s, e in spans)) / total
        for place in range(24)
    ]
    probabilities = [0.0] * 24
    for start, end, prob in shares(found):
        assert not any(probabilities[start:end])
        probabilities[start:end] = [prob] * (end - start)
    assert probabilities == expected


# --- the shared task's clean-up ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        pytest.param([(5, 8)], [(6, 8)], id="start-skips-the-space"),
        pytest.param([(9, 13)], [(9, 12)], id="comma-at-the-end-goes"),
        pytest.param([(12, 14)], [], id="nothing-but-punctuation-goes"),
        pytest.param([(4, 4), (9, 12)], [(9, 12)], id="empty-span-goes"),
        pytest.param([(9, 12), (14, 17)], [(9, 17)], id="neighbours-over-a-comma-merge"),
        # "big, and" is one pair; the space after it is dropped before "Paris"
        pytest.param(
            [(9, 12), (14, 17), (18, 23)], [(9, 17), (18, 23)], id="third-neighbour-begins-anew"
        ),
        pytest.param(
            [(9, 12), (14, 17), (18, 23), (24, 26)],
            [(9, 17), (18, 26)],
            id="third-and-fourth-are-a-pair",
        ),
        pytest.param([(14, 17), (9, 12)], [(9, 17)], id="order-does-not-matter"),
        pytest.param([(27, 31)], [(27, 30)], id="full-stop-at-the-end-of-the-text"),
        pytest.param([(9, 17), (14, 20)], [(9, 20)], id="overlapping-spans-count-once"),
    ],
)
def test_raw_spans_are_cleaned_as_the_shared_task_did(
    raw: list[tuple[int, int]], cleaned: list[tuple[int, int]]
) -> None:
    assert mushroom_extents(TEXT, [[Extent(*pair) for pair in raw]]) == [cleaned]


def test_a_cleaned_vote_counts_the_cleaned_spans() -> None:
    raw = [by("a", (8, 13)), by("b", (9, 12))]
    assert shares(vote(ITEM, raw)) == [(8, 9, 0.5), (9, 12, 1.0), (12, 13, 0.5)]
    assert shares(vote(ITEM, raw, cleanup="mushroom")) == [(9, 12, 1.0)]
    decided = by("c").model_copy(update={"hard": (Interval(start=8, end=13),)})
    assert shares(vote(ITEM, [decided], cleanup="mushroom")) == [(9, 12, 1.0)]


def test_votes_reproduce_exactly_the_published_labels_that_follow_from_the_raw_spans(
    shared: Path,
) -> None:
    options = ReadOptions(on_warning=lambda _: None)  # a span past its answer, and empty ones
    files = sorted((shared / "mushroom" / "val").glob("*.jsonl"))
    records = [record for file in files for record in read(file, options)]
    assert len(records) == 499
    reproduced = {record.item.id for record in records if votes_match(record)}
    expected = json.loads((shared / "mushroom" / "golden" / "votes_reproduced.json").read_text())
    assert reproduced == set(expected)
    assert len(expected) == 416


def votes_match(record: Record) -> bool:
    raters = [a for a in record.annotations if a.kind is AnnotatorKind.PERSON]
    gold = record.by("gold")
    assert gold is not None
    found, published = vote(record.item, raters, cleanup="mushroom"), flatten(gold.spans)
    same_soft = [s[:2] for s in shares(found)] == [s[:2] for s in published] and all(
        abs(a[2] - b.prob) < 1e-9 for a, b in zip(shares(found), published, strict=True)
    )
    return same_soft and hard_of(found) == hard_of(gold)


def test_a_vote_has_the_median_of_numbers_and_the_choice_of_more_than_half() -> None:
    given = {"a": (5, "x"), "b": (1, "x"), "c": (2, "y"), "d": (4, "x")}
    voters = [
        by(name).model_copy(update={"responses": {"n": number, "choice": choice}})
        for name, (number, choice) in given.items()
    ]
    voters[0] = voters[0].model_copy(update={"responses": {**voters[0].responses, "why": "as"}})
    assert vote(ITEM, voters).responses == {"n": 2, "choice": "x", "why": "as"}
    assert vote(ITEM, voters[1:3]).responses == {"n": 1}  # nobody is more than half
    weights = {"a": 3.0, "b": 1.0, "c": 1.0, "d": 0.5}
    assert vote(ITEM, voters, weights=weights).responses == {"n": 5, "choice": "x", "why": "as"}
