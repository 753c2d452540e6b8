"""Agreement between annotators: hand arithmetic, the library on single characters, real raters."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.scoring.agreement import (
    AnnotatorPair,
    ItemMarks,
    agreement,
    alpha_interval,
    clustered,
    edge_share,
    rated,
)
from spanlab.scoring.intervals import t_quantile
from spanlab.text.extents import Extent, merge

Marks = dict[str, list[tuple[int, int]]]
LENGTH = 10
MILLION = 1_000_000


def item(name: str, marks: Marks, *, lang: str = "en", length: int = LENGTH) -> ItemMarks:
    merged = {who: merge([Extent(*pair) for pair in pairs]) for who, pairs in marks.items()}
    return ItemMarks(id=name, lang=lang, length=length, marks=merged)


def characterwise(items: list[ItemMarks]) -> float | None:
    """Alpha as the library has it from one column per character, NaN where somebody is absent."""
    annotators = sorted({who for one in items for who in one.marks})
    columns = []
    for one in items:
        if len(one.marks) < 2:
            continue
        block = np.full((len(annotators), one.length), np.nan)
        for row, who in enumerate(annotators):
            if who in one.marks:
                block[row] = 0.0
                for start, end in one.marks[who]:
                    block[row, start:end] = 1.0
        columns.append(block)
    if not columns:
        return None
    data = np.concatenate(columns, axis=1)
    if len(np.unique(data[~np.isnan(data)])) < 2:
        return None
    return float(krippendorff.alpha(data, level_of_measurement="nominal"))


def test_alpha_by_hand() -> None:
    # Ten characters: anna marks 0-4, ben 2-6. Both mark 2 of them, one of the two 4, neither 4.
    # Values: 8 marks and 12 non-marks, n = 20. Observed disagreement 2*4 = 8 of 20 pairs, expected
    # 2*8*12 of 20*19. alpha = 1 - (8/20) / (192/380) = 1 - 152/192 = 5/24.
    found = agreement([item("x", {"anna": [(0, 4)], "ben": [(2, 6)]})])
    assert found.alpha == pytest.approx(5 / 24)
    # 2 common characters of 6; 2*2 of 4 + 4.
    assert found.pairs == (AnnotatorPair(a="anna", b="ben", n=1, iou=2 / 6, f1=0.5),)


@pytest.mark.parametrize(
    ("items", "alpha"),
    [
        pytest.param([item("x", {"a": [(0, 4)], "b": [(0, 4)]})], 1.0, id="perfect"),
        # each character has one mark and one non-mark: 1 - (20*19)/(2*10*10) * (20/20)
        pytest.param([item("x", {"a": [(0, 5)], "b": [(5, 10)]})], -0.9, id="the-opposite"),
        pytest.param([item("x", {"a": [], "b": []})], None, id="nobody-marked-anything"),
        pytest.param([item("x", {"a": [(0, 10)], "b": [(0, 10)]})], None, id="all-marked-all"),
        pytest.param([item("x", {"a": [(0, 4)]})], None, id="one-annotator"),
        pytest.param([item("x", {"a": [(0, 4)]}), item("y", {"b": [(0, 4)]})], None, id="apart"),
        pytest.param([item("x", {"a": [], "b": []}, length=0)], None, id="empty-answer"),
        pytest.param([], None, id="no-items"),
    ],
)
def test_alpha_at_its_ends(items: list[ItemMarks], alpha: float | None) -> None:
    assert agreement(items).alpha == (None if alpha is None else pytest.approx(alpha))


def test_adjacent_spans_agree_with_one_span_over_the_same_characters() -> None:
    """How a selection was made makes no difference: adjacent and overlapping spans are alike."""
    found = agreement([item("x", {"a": [(0, 3), (3, 6), (2, 4)], "b": [(0, 6)]})])
    assert (found.alpha, found.pairs[0].iou, found.pairs[0].f1) == (1.0, 1.0, 1.0)


def test_second_annotators_of_some_items_are_compared_on_those() -> None:
    """Agreement with a second annotator, who did only some of the items."""
    found = agreement(
        [
            item("1", {"anna": [(0, 4)], "ben": [(0, 4)]}),  # iou 1, f1 1
            item("2", {"anna": [(0, 4)], "ben": []}),  # 0, 0
            item("3", {"anna": [], "ben": []}),  # 1, 1
            item("4", {"anna": [(0, 9)]}),
            item("5", {"ben": [(0, 2)], "carla": [(1, 3)]}, lang="sv"),  # 1/3, 1/2
        ]
    )
    assert found.n == 4
    assert found.pairs == (
        AnnotatorPair(a="anna", b="ben", n=3, iou=2 / 3, f1=2 / 3),
        AnnotatorPair(a="ben", b="carla", n=1, iou=1 / 3, f1=1 / 2),
    )
    assert [(part.lang, part.n) for part in found.languages] == [("en", 3), ("sv", 1)]
    # sv alone, ten characters: one with 2 marks, two with 1, seven with none. 4 marks and 16
    # non-marks: 1 - (4/20) / (2*4*16 / (20*19)) = 1 - 76/128
    assert found.languages[1].alpha == pytest.approx(1 - 76 / 128)


def test_one_campaign_is_measured_by_itself() -> None:
    """Several annotators per item, agreement inside one campaign."""
    answer = "Paris is big."

    def by(who: str, *spans: tuple[int, int], **more: object) -> Annotation:
        marked = tuple(Span.of(answer, *span) for span in spans)
        fields = {"kind": AnnotatorKind.PERSON, "status": Status.DONE, **more}
        return Annotation.model_validate({"annotator": who, "spans": marked, **fields})

    record = Record(
        item=Item(id="x", lang="en", answer=answer),
        annotations=(
            by("gold", (0, 13), kind=AnnotatorKind.GOLD),
            by("anna", (0, 5)),
            by("ben", (0, 5)),
            by("carla", (9, 12)),
            by("dan", (9, 12), status=Status.SKIPPED),
            by("offline", (9, 12), kind=AnnotatorKind.DETECTOR),
        ),
    )
    assert set(rated(record).marks) == {"anna", "ben", "carla"}
    campaign = rated(record, ["anna", "ben", "dan"])
    assert (campaign.length, set(campaign.marks)) == (13, {"anna", "ben"})
    assert agreement([campaign]).alpha == 1.0
    with_detector = agreement([rated(record, ["carla", "offline"])])
    assert with_detector.pairs == (AnnotatorPair(a="carla", b="offline", n=1, iou=1.0, f1=1.0),)


def test_marks_past_the_answer_are_refused_by_id() -> None:
    with pytest.raises(
        InputError, match=r"'x': the marks of 'b' reach past the answer.*at most 10"
    ):
        agreement([item("x", {"a": [], "b": [(8, 11)]})])


places = st.integers(0, LENGTH)
marks = st.dictionaries(
    st.sampled_from("abcd"),
    st.lists(st.tuples(places, places).map(lambda p: (min(p), max(p))), max_size=4),
)


@given(st.lists(marks, max_size=4))
def test_alpha_equals_the_library_on_single_characters(campaign: list[Marks]) -> None:
    items = [item(str(number), one) for number, one in enumerate(campaign)]
    expected = characterwise(items)
    found = agreement(items).alpha
    assert found == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_real_raters_agree_as_the_library_says(shared: Path) -> None:
    options = ReadOptions(on_warning=lambda _: None)
    for lang, annotators in {"fr": 3, "en": 12}.items():
        path = shared / "mushroom" / "val" / f"mushroom.{lang}-val.v2.jsonl"
        items = [rated(record) for record in read(path, options)]
        found = agreement(items)
        assert found.alpha == pytest.approx(characterwise(items), abs=1e-9)
        assert found.n == len(items)
        assert len({who for pair in found.pairs for who in (pair.a, pair.b)}) >= annotators


def test_a_long_answer_is_counted_in_stretches() -> None:
    """Character by character, an answer of 100,000,000,000 characters would never be done."""
    spread: Marks = {
        who: [(at + shift, at + shift + 20) for at in range(0, 100_000, 50)]
        for who, shift in {"a": 0, "b": 5, "c": 10, "d": 0, "e": 25}.items()
    }
    long = item("long", spread, length=100_000)
    found = agreement([long]).alpha
    assert found == pytest.approx(characterwise([long]), abs=1e-9)
    wide = {who: [(a * MILLION, b * MILLION) for a, b in marks] for who, marks in spread.items()}
    longest = agreement([item("longest", wide, length=100_000 * MILLION)]).alpha
    assert longest == pytest.approx(found, abs=1e-4)  # 1 / n


def test_the_interval_of_alpha_leaves_out_items_and_from_three_on_annotators() -> None:
    good = item("good", {"a": [(0, 4)], "b": [(0, 4)]})
    bad = item("bad", {"a": [(0, 4)], "b": [(4, 8)]})
    alone = item("alone", {"a": [(0, 4)]})
    assert alpha_interval([alone]) is None
    assert alpha_interval([item("empty", {"a": [], "b": []})]) is None
    once = alpha_interval([bad, alone])
    assert once is not None
    assert once.n == 1
    assert once.low == once.alpha == once.high == agreement([bad]).alpha
    both = alpha_interval([good, bad])
    assert both is not None
    assert both.alpha == pytest.approx(characterwise([good, bad]))
    # Two items say next to nothing: Student's t of one degree of freedom is 12.7.
    assert (both.low, both.high) == (-1.0, 1.0)
    marks = {"a": [(0, 4)], "b": [(0, 4)]}
    many = [item(f"i{n}", {**marks, "b": [(0, 4 - n % 2)]}, length=20) for n in range(20)]
    two = alpha_interval(many)
    three = alpha_interval([replace(one, marks={**one.marks, "c": [Extent(4, 8)]}) for one in many])
    assert two is not None
    assert three is not None
    assert two.high - two.low < 0.1 < three.high - three.low  # another third might agree
    without = [characterwise(many[:at] + many[at + 1 :]) for at in range(20)]
    half = t_quantile(19) * (19 * np.var(np.array(without, float))) ** 0.5
    assert (two.low, two.high) == pytest.approx((two.alpha - half, two.alpha + half))


def test_edges_are_told_from_marks_of_something_else() -> None:
    moved = item("moved", {"a": [(0, 4)], "b": [(1, 6)]}, length=20)
    assert edge_share([moved]) == 1.0
    other = item("other", {"a": [(0, 4)], "b": [(10, 12)]}, length=20)
    assert edge_share([other]) == 0.0
    assert edge_share([moved, other]) == pytest.approx(3 / 9)
    assert edge_share([item("same", {"a": [(0, 4)], "b": [(0, 4)]}, length=20)]) is None


def test_those_who_agree_stand_side_by_side() -> None:
    pair = [
        (a, b, 0.9 if (a in "ace") == (b in "ace") else 0.1) for a, b in combinations("abcdef", 2)
    ]
    order = "".join(
        clustered([AnnotatorPair(a=a, b=b, n=1, iou=iou, f1=iou) for a, b, iou in pair])
    )
    assert {order[:3], order[3:]} == {"ace", "bdf"}


def test_annotators_without_a_common_item_have_a_place_as_well() -> None:
    pairs = [
        AnnotatorPair(a="a", b="b", n=1, iou=1.0, f1=1.0),
        AnnotatorPair(a="c", b="d", n=1, iou=1.0, f1=1.0),
    ]
    assert clustered(pairs) == ("a", "b", "c", "d")
    assert clustered(pairs[:1]) == ("a", "b")
