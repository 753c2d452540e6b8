"""The sample dataset that ships with spanlab: whole, valid, and as awkward as it promises."""

from __future__ import annotations

import io
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from spanlab import formats as datasets
from spanlab.schema import Annotation, AnnotatorKind, Process, Record, Span, Status

MUSHROOM_LANGUAGES = {
    "ar",
    "ca",
    "cs",
    "de",
    "en",
    "es",
    "eu",
    "fa",
    "fi",
    "fr",
    "hi",
    "it",
    "sv",
    "zh",
}
SYNTHETIC = [f"synthetic-annotator-{number}" for number in (1, 2, 3)]
ZWJ = "\u200d"
ZWNJ = "\u200c"


@pytest.fixture(scope="module")
def records(samples: Path) -> dict[str, Record]:
    """All sample records by id; reading validates every offset and every quote."""
    return {record.item.id: record for record in datasets.read(samples)}


def test_reading_and_writing_the_samples_gives_the_same_bytes(samples: Path) -> None:
    written = io.BytesIO()
    datasets.write(datasets.read(samples), written)
    assert written.getvalue() == samples.read_bytes()


def test_there_are_56_items_or_more_and_no_id_stands_twice(
    samples: Path, records: dict[str, Record]
) -> None:
    assert len(records) == len(samples.read_bytes().splitlines()) >= 56


def test_each_of_the_14_languages_has_four_items_or_more(records: dict[str, Record]) -> None:
    languages = Counter(record.item.lang for record in records.values())
    assert set(languages) == MUSHROOM_LANGUAGES
    assert min(languages.values()) >= 4


def test_every_item_asks_something_and_has_one_to_three_titled_passages(
    records: dict[str, Record],
) -> None:
    for record in records.values():
        item = record.item
        assert item.question.strip() and item.answer.strip(), item.id
        assert 1 <= len(item.passages) <= 3, item.id
        assert all(passage.text and passage.title for passage in item.passages), item.id
        assert item.meta["synthetic"] is True, item.id


def test_about_a_quarter_of_the_answers_are_correct_and_some_in_every_language(
    records: dict[str, Record],
) -> None:
    correct = [record for record in records.values() if not _gold(record).spans]
    assert 0.20 <= len(correct) / len(records) <= 0.35
    assert {record.item.lang for record in correct} == MUSHROOM_LANGUAGES


def test_every_gold_span_quotes_what_refutes_it_or_what_comes_closest(
    records: dict[str, Record],
) -> None:
    stance_of = {"contradicted": "refutes", "unsupported": "closest"}
    for record in records.values():
        for span in _gold(record).spans:
            assert span.label in stance_of, (record.item.id, span)
            assert span.evidence, (record.item.id, span)
            assert {quote.stance for quote in span.evidence} == {stance_of[span.label]}
            for quote in span.evidence:
                assert quote.fits(record.item.passages[quote.passage].text)


def test_gold_spans_neither_overlap_nor_begin_or_end_with_a_space(
    records: dict[str, Record],
) -> None:
    for record in records.values():
        end_before = 0
        for span in _gold(record).spans:
            assert span.start >= end_before, (record.item.id, span)
            assert span.text == span.text.strip(), (record.item.id, span)
            end_before = span.end


def test_three_annotators_named_as_synthetic_follow_the_gold_labels(
    records: dict[str, Record],
) -> None:
    for record in records.values():
        assert [a.annotator for a in record.annotations] == ["gold", *SYNTHETIC]
        assert {a.kind for a in record.annotations[1:]} == {AnnotatorKind.PERSON}


def test_every_gold_span_was_seen_by_an_annotator(records: dict[str, Record]) -> None:
    for record in records.values():
        seen = [span for person in record.annotations[1:] for span in person.spans]
        for gold in _gold(record).spans:
            assert any(_overlap(gold, span) for span in seen), (record.item.id, gold)


def test_annotators_agree_on_many_items_and_disagree_on_many(records: dict[str, Record]) -> None:
    agreeing = disagreeing = 0
    for record in records.values():
        marks = {
            tuple((span.start, span.end) for span in person.spans)
            for person in record.annotations[1:]
            if person.status is Status.DONE
        }
        agreeing += len(marks) == 1
        disagreeing += len(marks) > 1
    assert agreeing >= 15
    assert disagreeing >= 15


def test_an_annotator_skips_some_items_and_says_why(records: dict[str, Record]) -> None:
    skipped = [
        person
        for record in records.values()
        for person in record.annotations
        if person.status is Status.SKIPPED
    ]
    assert len(skipped) >= 3
    assert all(person.note and not person.spans for person in skipped)


def test_one_item_shows_how_its_answer_was_made(records: dict[str, Record]) -> None:
    (record,) = (record for record in records.values() if record.item.process)
    assert isinstance(record.item.process, Process)
    stages = [node.stage for node in record.item.process.nodes]
    assert stages == ["source", "source", "summary", "answer"]
    assert record.item.process.nodes[-1].text == record.item.answer


def test_an_answer_starts_with_a_space(records: dict[str, Record]) -> None:
    assert records["sample-en-5"].item.answer.startswith(" The")


def test_a_mistake_stands_after_crlf_line_ends(records: dict[str, Record]) -> None:
    record = records["sample-de-3"]
    before = record.item.answer[: _gold(record).spans[0].start]
    assert before.count("\r\n") == 3
    assert "\n" not in record.item.answer.replace("\r\n", "")


def test_markdown_and_html_stand_in_an_answer_as_text(records: dict[str, Record]) -> None:
    answer = records["sample-en-4"].item.answer
    for part in ("### ", "**", "<b>like this</b>", "<script>alert(", "<img src=x onerror="):
        assert part in answer


def test_an_answer_of_4000_characters_or_more_holds_ten_mistakes_or_more(
    records: dict[str, Record],
) -> None:
    record = max(records.values(), key=lambda record: len(record.item.answer))
    assert len(record.item.answer) >= 4_000
    assert len(_gold(record).spans) >= 10


@pytest.mark.parametrize(
    ("id_", "astral"),
    [
        pytest.param("sample-en-2", f"\U0001f9d7{ZWJ}\u2640\ufe0f", id="a climber joined by ZWJ"),
        pytest.param("sample-en-2", "\U0001f1f3\U0001f1f5", id="a flag of two letters"),
        pytest.param(
            "sample-ca-4",
            ZWJ.join("\U0001f468\U0001f469\U0001f467\U0001f466"),
            id="a family of four joined by ZWJ",
        ),
        pytest.param("sample-fr-4", "\U0001f1eb\U0001f1f7\U0001f3d4\ufe0f", id="French"),
        pytest.param("sample-hi-4", "\U0001f680\U0001f1ee\U0001f1f3", id="Hindi"),
        pytest.param("sample-ar-4", "\U0001f1ea\U0001f1ec", id="Arabic"),
        pytest.param("sample-zh-4", "\U0001f1e8\U0001f1f3\U0001f3d4\ufe0f", id="Chinese"),
    ],
)
def test_an_emoji_stands_before_a_mistake(
    records: dict[str, Record], id_: str, astral: str
) -> None:
    record = records[id_]
    assert astral in record.item.answer[: _gold(record).spans[-1].start]


def test_a_marked_text_has_decomposed_accents_that_its_passage_has_composed(
    records: dict[str, Record],
) -> None:
    record = records["sample-fr-1"]
    marked = _gold(record).spans[-1].text
    assert "e\u0301" in marked
    assert unicodedata.normalize("NFC", marked) != marked
    for passage in record.item.passages:
        assert unicodedata.is_normalized("NFC", passage.text)


@pytest.mark.parametrize("lang", ["ar", "hi"])
def test_a_marked_text_holds_combining_marks(records: dict[str, Record], lang: str) -> None:
    marked = "".join(
        span.text
        for record in records.values()
        if record.item.lang == lang
        for span in _gold(record).spans
    )
    assert any(unicodedata.category(character) in {"Mn", "Mc"} for character in marked)


@pytest.mark.parametrize("lang", ["ar", "fa"])
def test_right_to_left_answers_also_hold_latin_names_and_digits(
    records: dict[str, Record], lang: str
) -> None:
    answers = [record.item.answer for record in records.values() if record.item.lang == lang]
    directions = [{unicodedata.bidirectional(c) for c in answer} for answer in answers]
    assert all("AL" in direction for direction in directions)
    assert any({"L", "EN"} <= direction for direction in directions)


def test_persian_words_hold_zero_width_non_joiners(records: dict[str, Record]) -> None:
    assert ZWNJ in records["sample-fa-1"].item.answer
    assert any(ZWNJ in span.text for span in _gold(records["sample-fa-4"]).spans)


def test_chinese_answers_have_no_spaces_between_words(records: dict[str, Record]) -> None:
    answers = [record.item.answer for record in records.values() if record.item.lang == "zh"]
    assert sum(" " not in answer for answer in answers) >= 4


def test_of_a_repeated_word_only_a_later_occurrence_is_marked(
    records: dict[str, Record],
) -> None:
    """Repeated text maps to its own occurrence; these items put it to the test."""
    later = {
        record.item.lang
        for record in records.values()
        for span in _gold(record).spans
        if record.item.answer.find(span.text) < span.start
        and record.item.answer.find(span.text) not in {s.start for s in _gold(record).spans}
    }
    assert {"en", "de", "fr", "es", "it", "ca", "cs", "fi", "sv", "hi", "ar", "zh"} <= later


def _gold(record: Record) -> Annotation:
    gold = record.by("gold")
    assert gold is not None
    assert (gold.kind, gold.status) == (AnnotatorKind.GOLD, Status.DONE), record.item.id
    return gold


def _overlap(one: Span, other: Span) -> bool:
    return one.start < other.end and other.start < one.end
