"""Our own format keeps everything, and says exactly what is wrong with a line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from full_record import full_record

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, RejectedRecord, detect, read, write
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Record,
    Span,
    Status,
)


def exported(*records: Record) -> bytes:
    stream = io.BytesIO()
    assert write(records, stream) == len(records)
    return stream.getvalue()


def test_everything_survives_and_the_bytes_stay_the_same(tmp_path: Path) -> None:
    """Votes, rejected spans, notes, claims and states survive an export."""
    record = full_record()
    first = tmp_path / "first.jsonl"
    write([record], first)
    imported = list(read(first))
    second = tmp_path / "second.jsonl"
    write(imported, second)
    assert imported == [record]
    assert second.read_bytes() == first.read_bytes()


def test_the_four_states_stay_apart(tmp_path: Path) -> None:
    """Not annotated, without spans, failed and skipped are four different states."""
    path = tmp_path / "states.jsonl"
    write([full_record()], path)
    (record,) = read(path)
    states = {a.annotator: (a.status, len(a.spans)) for a in record.annotations}
    assert states["bo"] == (Status.DONE, 0)
    assert states["cy"] == (Status.SKIPPED, 0)
    assert states["di"] == (Status.NOT_ANNOTATED, 0)
    assert states["broken"] == (Status.FAILED, 0)
    assert record.by("nobody") is None


def test_a_failed_attempt_keeps_its_reason(tmp_path: Path) -> None:
    """A failed judgement is a state with a reason, and no number."""
    path = tmp_path / "failed.jsonl"
    write([full_record()], path)
    assert b'"status":"failed","spans":[],"note":"no credits"' in path.read_bytes()
    (record,) = read(path)
    failed = record.by("broken")
    assert failed is not None
    assert (failed.status, failed.note) == (Status.FAILED, "no credits")


def test_overlapping_adjacent_and_repeated_spans_keep_their_order(tmp_path: Path) -> None:
    """Adjacent and overlapping spans do not corrupt the text or each other."""
    answer = "abcdef"
    places = [(2, 4), (0, 2), (1, 5), (2, 4), (4, 6)]
    spans = tuple(Span.of(answer, start, end) for start, end in places)
    record = Record(
        item=Item(id="o", answer=answer),
        annotations=(Annotation(annotator="ada", kind=AnnotatorKind.PERSON, spans=spans),),
    )
    path = tmp_path / "overlap.jsonl"
    write([record], path)
    (again,) = read(path)
    assert [(s.start, s.end, s.text) for s in again.annotations[0].spans] == [
        (2, 4, "cd"),
        (0, 2, "ab"),
        (1, 5, "bcde"),
        (2, 4, "cd"),
        (4, 6, "ef"),
    ]


def test_offsets_count_code_points_through_emoji_and_line_ends(tmp_path: Path) -> None:
    """Offsets stay right after ZWJ sequences, flags, astral letters and CRLF."""
    answer = "👩‍👩‍👧‍👦\r\n𝔸 e\u0301 مرحبا 🇳🇴 end"
    start = answer.index("end")
    # The family is 7 code points, CRLF 2, "𝔸 " 2, "e" with its accent and a space 3,
    # the greeting 6 with its space, the flag 3 with its space.
    assert start == 7 + 2 + 2 + 3 + 6 + 3
    record = Record(
        item=Item(id="e", answer=answer),
        annotations=(
            Annotation(
                annotator="ada",
                kind=AnnotatorKind.PERSON,
                spans=(Span.of(answer, start, start + 3),),
            ),
        ),
    )
    path = tmp_path / "emoji.jsonl"
    write([record], path)
    assert list(read(path)) == [record]
    assert answer.replace("\r\n", "\\r\\n").encode() in path.read_bytes()


def test_only_what_says_something_is_written() -> None:
    record = Record(
        item=Item(id="a", answer="xyz"),
        annotations=(
            Annotation(annotator="ada", kind=AnnotatorKind.PERSON, spans=(Span.of("xyz", 1, 2),)),
        ),
    )
    assert exported(record) == (
        b'{"id":"a","lang":"und","question":"","answer":"xyz","annotations":[{"annotator":"ada",'
        b'"kind":"person","status":"done","spans":[{"start":1,"end":2,"text":"y","prob":1.0}]}]}\n'
    )
    assert exported(Record(item=Item(id="b", answer=""))) == (
        b'{"id":"b","lang":"und","question":"","answer":""}\n'
    )


def test_text_is_written_as_it_is() -> None:
    answer = "é 😀 \u2028\u2029 \x00 \ufeff \x7f </script>"
    line = exported(Record(item=Item(id="t", answer=answer)))
    assert "é 😀 \u2028\u2029 \\u0000 \ufeff \x7f </script>".encode() in line
    assert line.count(b"\n") == 1
    assert not line.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        pytest.param({"answer": "half \ud83d of an emoji"}, None, id="in the answer"),
        pytest.param({"meta": {"k": "\udc00"}}, "meta", id="in meta"),
    ],
)
def test_a_lone_surrogate_is_not_written(fields: dict[str, Any], field: str | None) -> None:
    item = Item(id="s", answer="a").model_copy(update=fields)  # which nothing has checked
    with pytest.raises(InputError, match="surrogate") as caught:
        exported(Record.model_construct(item=item))
    assert caught.value.field == field


def test_a_number_that_is_not_one_is_not_written() -> None:
    record = Record(item=Item(id="n", answer="a", meta={"a": [1.0, float("inf")]}))
    with pytest.raises(InputError, match=r"meta\.a\.1: expected a finite number, found inf"):
        exported(record)


def test_only_one_annotators_work_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "ada.jsonl"
    assert write([full_record()], path, annotator="ada") == 1
    (record,) = read(path)
    assert [annotation.annotator for annotation in record.annotations] == ["ada"]


@pytest.mark.parametrize(
    ("escaped", "answer"),
    [
        pytest.param(r"cut off \ud83d", "cut off \ufffd", id="first half"),
        pytest.param(r"\uDC00\uD83D\uDE00 off", "\ufffd\U0001f600 off", id="second half, emoji"),
        pytest.param(r"\ud83d\ud83d\ude00", "\ufffd\U0001f600", id="first half, emoji"),
        pytest.param(r"a \\ud83d \udc00", "a \\ud83d \ufffd", id="beside a backslash"),
    ],
)
@pytest.mark.parametrize("form", ["%s\n", "[%s]"], ids=["lines", "array"])
def test_half_an_emoji_is_replaced_and_offsets_stay(
    tmp_path: Path, form: str, escaped: str, answer: str
) -> None:
    end = len(answer)
    quote = f'{{"start": {end - 1}, "end": {end}, "text": "{escaped[-6:]}"}}'
    quote = quote if escaped.endswith(r"\udc00") else ""
    line = SPAN.replace("xyz", escaped.replace("%", "%%")) % quote
    path = tmp_path / "cut.jsonl"
    path.write_text(form % line)
    with pytest.warns(UserWarning, match="1 item with \ufffd, which stands for a character"):
        (record,) = read(path)
    assert record.item.answer == answer
    assert [span.text for span in record.annotations[0].spans] == ["\ufffd"] * bool(quote)


SPAN = '{"id":"a","answer":"xyz","annotations":[{"annotator":"p","kind":"person","spans":[%s]}]}'


@pytest.mark.parametrize(
    ("line", "field", "said"),
    [
        pytest.param('{"answer":"x"}', "id", "id: the field is missing", id="no id"),
        pytest.param(
            '{"id":"a","answer":"x","anwser":1}', "anwser", "there is no such field", id="typo"
        ),
        pytest.param('{"id":"a","answer":5}', "answer", "expected a text, found 5", id="number"),
        pytest.param('{"id":"a","answer":"x"', None, "not valid JSON: EOF", id="cut off"),
        pytest.param('{"id":"a","answer":"x"} {}', None, "trailing characters", id="two values"),
        pytest.param('["a"]', None, "expected an object, found \\['a'\\]", id="a list"),
        pytest.param('{"id":"a","answer":"x","meta":{"k":1e999}}', "meta.k", "inf", id="1e999"),
        pytest.param(
            SPAN % '{"start":0,"end":2,"text":"yz"}',
            "annotations.0.spans.0",
            "quotes 'yz' at \\[0, 2\\), but the answer has 'xy' there",
            id="shifted quote",
        ),
        pytest.param(
            SPAN % '{"start":0,"end":2,"text":"x"}',
            "annotations.0.spans.0",
            "text 'x' has 1 characters, offsets \\[0, 2\\) have 2",
            id="short quote",
        ),
        pytest.param(
            SPAN % '{"start":0,"end":1.5,"text":"x"}',
            "annotations.0.spans.0.end",
            "expected an integer, found 1.5",
            id="half a character",
        ),
        pytest.param(
            SPAN % '{"start":0,"end":1,"text":"x","prob":1.5}',
            "annotations.0.spans.0.prob",
            "less than or equal to 1",
            id="too probable",
        ),
        pytest.param(
            SPAN % '{"start":0,"end":1}',
            "annotations.0.spans.0.text",
            "annotations.0.spans.0.text: the field is missing; found \"the fields 'start', 'end'",
            id="no quote",
        ),
    ],
)
def test_an_error_names_line_field_found_and_expected(
    tmp_path: Path, line: str, field: str | None, said: str
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id":"ok","answer":"fine"}\n\n' + line + "\n")
    with pytest.raises(InputError, match=said) as caught:
        list(read(path, ReadOptions(format="spanlab")))
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{path}, line 3")


def test_the_rest_is_read_when_rejects_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(
        b'{"id":"a","answer":"1"}\n{"id":"b"}\n{"id":"c","answer":"\xff"}\n{"id":"d","answer":"4"}'
    )
    rejects: list[RejectedRecord] = []
    records = list(read(path, ReadOptions(on_reject=rejects.append, name="mixed upload")))
    assert [record.item.id for record in records] == ["a", "d"]
    assert [(reject.file, reject.line, reject.raw) for reject in rejects] == [
        ("mixed upload", 2, '{"id":"b"}'),
        ("mixed upload", 3, '{"id":"c","answer":"\\xff"}'),
    ]
    assert rejects[0].reason.startswith("mixed upload, line 2, answer: the field is missing")


@pytest.mark.parametrize(
    ("fields", "passages"),
    [
        ('"id": 7, "passages": ["one", {"page_content": "two"}]', ["one", "two"]),
        ('"id": 7, "question": null, "lang": "EN", "passages": null', []),
        ('"id": "7", "question": NaN, "passages": "one"', ["one"]),
        ('"id": 7, "passages": [{"text": null}, {"content": "two", "score": NaN}]', ["two"]),
    ],
)
def test_what_people_type_is_read_as_they_mean_it(
    tmp_path: Path, fields: str, passages: list[str]
) -> None:
    path = tmp_path / "typed.jsonl"
    path.write_text('{"answer": "fine", ' + fields + "}\n")
    (record,) = read(path)
    assert record.item.id == "7"
    assert record.item.lang in ("en", "und")
    assert [passage.text for passage in record.item.passages] == passages


def test_what_is_no_number_is_missing_in_meta_too(tmp_path: Path) -> None:
    path = tmp_path / "nan.jsonl"
    path.write_text('{"id":"a","answer":"x","meta":{"k":[NaN, -Infinity, 1]}}\n')
    (record,) = read(path)
    assert record.item.meta == {"k": [None, None, 1]}


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ('"answer": "It opened in 1931.", "answer": "It opened in 1913."', "answer"),
        ('"answer" : "x", "answer" : "y"', "answer"),
        ('"answer": "x", "meta": {"k": [{"n": 1, "n": 2}]}', "n"),
        ('"answer": "x", "score": NaN, "answer": "y"', "answer"),
        ('"answer": "say \\"it\\": now", "answer": "y"', "answer"),
    ],
)
def test_a_key_twice_in_one_object_is_refused(tmp_path: Path, fields: str, key: str) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text('{"id": "a", "answer": "x \\": y"}\n{"id": "b", ' + fields + "}\n")
    with pytest.raises(InputError, match=f"line 2.*the key '{key}' is twice in one object"):
        list(read(path))
    assert [record.item.id for record in read(path, ReadOptions(on_reject=lambda _: None))] == ["a"]


def test_a_key_twice_in_every_object_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "twice.jsonl"
    path.write_text('{"id": "a", "answer": "x", "answer": "y"}\n' * 2)
    with pytest.raises(InputError, match=r"line 1.*the key 'answer' is twice in one object"):
        detect(path)
