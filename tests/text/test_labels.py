"""Interval code against hand-made tables and against naive character sets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paris import ITEM, TEXT, by, unfinished

from spanlab.base.errors import InputError
from spanlab.schema import Annotation, AnnotatorKind, Interval, Record, Status
from spanlab.text.extents import (
    Extent,
    WeightedExtent,
    coverage,
    intersection,
    iou,
    length,
    merge,
    mushroom_extents,
    overlap,
)
from spanlab.text.labels import (
    ItemLabels,
    SoftLabel,
    disagreement,
    flatten,
    hard_of,
    harden,
    labels_of,
)

SIZE = 24  # characters in the texts that properties are checked on
extents = st.lists(
    st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda p: Extent(min(p), max(p)))
)
softs = st.lists(
    st.tuples(
        st.integers(0, SIZE), st.integers(0, SIZE), st.sampled_from([0.0, 0.2, 0.5, 0.6, 1.0])
    ).map(lambda p: SoftLabel(min(p[:2]), max(p[:2]), p[2]))
)


def characters(spans: list[Extent]) -> set[int]:
    return {place for start, end in spans for place in range(start, end)}


def runs(places: set[int]) -> list[Extent]:
    """The merged extents of a character set, found character by character."""
    starts = [place for place in sorted(places) if place - 1 not in places]
    ends = [place + 1 for place in sorted(places) if place + 1 not in places]
    return [Extent(start, end) for start, end in zip(starts, ends, strict=True)]


# --- extents -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "merged"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([(3, 3)], [], id="empty-extent-goes"),
        pytest.param([(0, 2), (4, 6)], [(0, 2), (4, 6)], id="a-gap-stays"),
        pytest.param([(0, 2), (2, 6)], [(0, 6)], id="touching"),
        pytest.param([(0, 4), (2, 6)], [(0, 6)], id="overlapping"),
        pytest.param([(0, 9), (2, 3), (4, 5)], [(0, 9)], id="nested"),
        pytest.param([(4, 6), (0, 2)], [(0, 2), (4, 6)], id="unsorted"),
        pytest.param([(1, 2), (1, 2)], [(1, 2)], id="repeated"),
    ],
)
def test_merged_extents_neither_overlap_nor_touch(
    given_: list[tuple[int, int]], merged: list[tuple[int, int]]
) -> None:
    """Adjacent and overlapping selections do not corrupt each other."""
    assert merge([Extent(*pair) for pair in given_]) == merged


@given(extents, extents)
def test_interval_sets_equal_character_sets(a: list[Extent], b: list[Extent]) -> None:
    left, right = characters(a), characters(b)
    assert merge(a) == runs(left)
    assert merge([*a, *b]) == runs(left | right)
    assert intersection(a, b) == runs(left & right)
    assert length(a) == len(left)
    assert overlap(merge(a), merge(b)) == len(left & right)
    expected = len(left & right) / len(left | right) if left | right else 1.0
    assert iou(merge(a), merge(b)) == expected


@given(st.lists(st.tuples(extents, st.integers(0, 3)), max_size=5))
def test_coverage_sums_the_weights_over_each_character(
    weighted: list[tuple[list[Extent], int]],
) -> None:
    sums = [sum(w for spans, w in weighted if p in characters(spans)) for p in range(SIZE)]
    found = coverage([merge(spans) for spans, _ in weighted], [w for _, w in weighted])
    assert [sum(c.weight for c in found if c.start <= p < c.end) for p in range(SIZE)] == sums
    assert all(a.end < b.start or a.weight != b.weight for a, b in pairwise(found))


def test_coverage_splits_only_where_the_sum_changes() -> None:
    # 0-2 by a, 2-4 by b: one annotator throughout, so one stretch.
    assert coverage([[Extent(0, 2)], [Extent(2, 4)]], [1, 1]) == [WeightedExtent(0, 4, 1)]


# --- soft and hard -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spans", "flat"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([(0, 4, 0.0)], [], id="probability-0-says-nothing"),
        pytest.param([(0, 4, 0.5), (4, 6, 0.5)], [(0, 6, 0.5)], id="equal-neighbours-join"),
        pytest.param([(0, 4, 0.5), (4, 6, 0.6)], [(0, 4, 0.5), (4, 6, 0.6)], id="unequal-stay"),
        pytest.param(
            [(0, 9, 0.2), (3, 5, 0.8)], [(0, 3, 0.2), (3, 5, 0.8), (5, 9, 0.2)], id="nested-higher"
        ),
        pytest.param([(0, 9, 0.8), (3, 5, 0.2)], [(0, 9, 0.8)], id="nested-lower"),
        pytest.param([(5, 9, 0.4), (0, 6, 0.6)], [(0, 6, 0.6), (6, 9, 0.4)], id="unsorted"),
    ],
)
def test_the_highest_probability_wins(
    spans: list[tuple[int, int, float]], flat: list[tuple[int, int, float]]
) -> None:
    """Adjacent and overlapping spans keep every character's probability."""
    assert flatten([SoftLabel(*span) for span in spans]) == flat


def test_the_last_span_wins_where_the_official_scorer_reads_submissions() -> None:
    spans = [SoftLabel(0, 9, 0.8), SoftLabel(3, 5, 0.2), SoftLabel(6, 7, 0.0)]
    assert flatten(spans, overlap="last") == [(0, 3, 0.8), (3, 5, 0.2), (5, 6, 0.8), (7, 9, 0.8)]


@given(softs)
def test_flattening_equals_a_probability_per_character(spans: list[SoftLabel]) -> None:
    highest, last = [0.0] * SIZE, [0.0] * SIZE
    for start, end, prob in spans:
        for place in range(start, end):
            highest[place] = max(highest[place], prob)
            last[place] = prob
    assert vector(flatten(spans)) == highest
    assert vector(flatten(spans, overlap="last")) == last
    assert flatten(flatten(spans)) == flatten(spans)
    assert harden(flatten(spans)) == runs({p for p, prob in enumerate(highest) if prob > 0.5})


def vector(flat: list[SoftLabel]) -> list[float]:
    """Probabilities per character; fails on overlaps and on neighbours that should be joined."""
    values = [0.0] * SIZE
    end_before, prob_before = -1, -1.0
    for start, end, prob in flat:
        assert (start, prob) != (end_before, prob_before)
        assert start >= end_before
        values[start:end] = [prob] * (end - start)
        end_before, prob_before = end, prob
    return values


def test_hard_means_strictly_more_than_half() -> None:
    soft = [
        SoftLabel(0, 2, 0.5),
        SoftLabel(2, 4, 0.5000001),
        SoftLabel(4, 6, 1.0),
        SoftLabel(8, 9, 0.9),
    ]
    assert harden(soft) == [(2, 6), (8, 9)]
    assert harden(soft, threshold=0.9) == [(4, 6)]


def test_an_annotators_own_decision_comes_before_its_probabilities() -> None:
    unsure = by("offline", (0, 5), kind=AnnotatorKind.DETECTOR, prob=0.4)
    assert hard_of(unsure) == []
    decided = unsure.model_copy(update={"hard": (Interval(start=0, end=3),)})
    assert hard_of(decided) == [(0, 3)]
    nothing = by("offline", (0, 5)).model_copy(update={"hard": ()})
    assert hard_of(nothing) == []


def test_labels_of_a_record_come_with_its_raters() -> None:
    gold = by("gold", (0, 5), (9, 12), kind=AnnotatorKind.GOLD, prob=0.6)
    record = Record(
        item=ITEM,
        annotations=(
            gold,
            by("anna", (9, 12), (0, 5), (0, 3)),
            by("ben"),
            unfinished("carla", Status.SKIPPED),
            by("offline", (0, 5), kind=AnnotatorKind.DETECTOR),
        ),
    )
    labels = labels_of(record, "gold")
    assert (labels.id, labels.lang, labels.length) == ("val-en-1", "en", len(TEXT))
    assert labels.soft == (SoftLabel(0, 5, 0.6), SoftLabel(9, 12, 0.6))
    assert labels.hard == (Extent(0, 5), Extent(9, 12))
    assert labels.raters == ((Extent(0, 5), Extent(9, 12)), ())


@pytest.mark.parametrize("name", ["carla", "nobody"])
def test_a_failed_or_missing_annotation_has_no_labels(name: str) -> None:
    """A failed judgement is a state, not "nothing found"."""
    record = Record(item=ITEM, annotations=(by("anna"), unfinished("carla", Status.FAILED)))
    with pytest.raises(
        InputError, match=f"'val-en-1' has no finished annotation by '{name}'.*anna"
    ):
        labels_of(record, name)


def test_labels_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'x': soft .* are not flattened"):
        ItemLabels(id="x", lang="en", soft=(SoftLabel(0, 4, 0.5), SoftLabel(3, 5, 0.6)), hard=())
    with pytest.raises(ValueError, match=r"'x': .* are not merged"):
        ItemLabels(id="x", lang="en", soft=(), hard=(Extent(0, 4), Extent(4, 5)))
    with pytest.raises(ValueError, match=r"'x': .* are not merged"):
        ItemLabels(id="x", lang="en", soft=(), hard=(), raters=((Extent(3, 4), Extent(1, 2)),))


# --- disagreement --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param([], None, id="nobody"),
        pytest.param([by("a", (0, 5))], None, id="one"),
        pytest.param([by("a"), by("b")], 0.0, id="both-found-nothing"),
        pytest.param([by("a", (0, 5)), by("b")], 1.0, id="only-one-found-something"),
        pytest.param([by("a", (0, 4)), by("b", (2, 6))], 1 - 2 / 6, id="two-of-six-characters"),
        # pairs: a-b 1, a-c 0, b-c 0; mean 1/3
        pytest.param([by("a", (0, 4)), by("b", (0, 4)), by("c")], 1 - 1 / 3, id="three"),
        pytest.param(
            [
                by("a", (0, 4)),
                by("gold", kind=AnnotatorKind.GOLD),
                by("v", kind=AnnotatorKind.VOTE),
            ],
            None,
            id="gold-and-votes-take-no-part",
        ),
        pytest.param([by("a"), unfinished("b", Status.NOT_ANNOTATED)], None, id="a-draft-waits"),
    ],
)
def test_disagreement(annotations: list[Annotation], expected: float | None) -> None:
    assert disagreement(annotations) == (None if expected is None else pytest.approx(expected))


# --- trimming ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "extent", "trimmed"),
    [
        pytest.param("a big, b", (1, 6), (2, 5), id="space-and-comma"),
        pytest.param("他说：“好。”", (2, 7), (4, 5), id="chinese-punctuation"),
        pytest.param("x $5 \n", (1, 6), (3, 4), id="ascii-symbol-and-newline"),
        pytest.param("x €5 y", (1, 5), (2, 4), id="other-symbols-stay"),
        pytest.param("a 👍🏽! b", (1, 5), (2, 4), id="emoji-stay"),
        pytest.param("नमस्ते। ", (0, 8), (0, 6), id="combining-marks-stay"),
        pytest.param("a b", (0, 3), (0, 3), id="nothing-to-trim"),
        pytest.param("big big big", (4, 8), (4, 7), id="repeated-word"),
        pytest.param("a ... b", (1, 6), None, id="nothing-but-punctuation"),
        pytest.param("", (0, 0), None, id="empty"),
    ],
)
def test_trimming(text: str, extent: tuple[int, int], trimmed: tuple[int, int] | None) -> None:
    kept = [] if trimmed is None else [Extent(*trimmed)]
    assert mushroom_extents(text, [[Extent(*extent)]]) == [kept]
