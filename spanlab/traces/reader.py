"""Traces of language models, exported as JSON: what pipelines write by themselves; see ``spans``.

An item is a trace, or a turn of a chat in one. Its answer is the text that the run gave back, where
a model said it; else what the last model said that is no guard, judge or title maker. Its question
is what the run was given, its passages what retrievers and tools found, letter by letter. Its
process is what the calls read and wrote: spans do not say which text was made from which, so that
is told from what they say (see ``recording``): a message that holds retrieved documents or earlier
answers word for word was made from those. Earlier turns of a chat are neither evidence nor
question, but ``conversation`` in meta. A stage is called what a framework calls its node, task or
agent, on the call's span or on one around it; otherwise as the span.

A chat within one trace, such as a loop of questions inside one span, has turns. A turn begins where
a model's call reads what an earlier call answered, and behind that something new from the user.
Only spans that were given no question and gave no answer may lie around both: an agent that
corrects itself is one turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError
from spanlab.formats import reader
from spanlab.formats.feedback import Entry, FeedbackCounts, name_of, read_feedback, verdicts_of
from spanlab.formats.field_report import REPORTED
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.json_rows import is_single, printed_objects
from spanlab.formats.known.csv_table import CsvReader, column_names
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import FormatEntry, NoAnswer, checked
from spanlab.formats.verdict_columns import Rules, VerdictOptions, rules_in
from spanlab.output.figures import named_ids
from spanlab.schema import Item, Passage, Record
from spanlab.text.thoughts import without_thoughts
from spanlab.traces.recording import Recorder
from spanlab.traces.runs import runs_of
from spanlab.traces.span_files import holds_spans, placed_spans
from spanlab.traces.spans import Span, said_by
from spanlab.traces.trace import Trace, note_span, replies_of


class TraceReader(reader.FormatReader):
    """Reads the traces of a file, each with the number of the line on which it begins."""

    in_tables = in_parquet = True  # frames of Phoenix and MLflow
    own_options = VerdictOptions
    _own: VerdictOptions

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a record holds spans or is one."""
        return holds_spans(record)

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._rules = rules_in(self._own.hallucinated_if)
        self._fed_back = FeedbackCounts()
        self._sources: dict[str, dict[str, list[Any]]] = {}  # trace → span → what it is made of

    def source(self, row: FileRow) -> Any:
        """Return the requests of a trace, each with one of its spans."""
        spans = from_json(row.beginning)
        sources = self._sources.get(spans[0]["trace"], {})
        return [source for span in spans for source in sources.get(str(span["id"]), ())]

    def rows(self) -> Iterator[FileRow]:
        """Yield the spans of each trace as one row, or a row for each turn of a chat in it.

        Raises:
            InputError: the file is not JSON, or a span of it has no trace.
        """
        traces: dict[str, list[dict[str, Any]]] = {}
        lines: dict[str, int] = {}
        for row in self._file.held(self._requests()):
            try:
                for span, source in placed_spans(from_json(row.raw)):
                    lines.setdefault(span["trace"], row.line)
                    if len(lines) <= REPORTED:
                        sources = self._sources.setdefault(span["trace"], {})
                        sources.setdefault(str(span["id"]), []).append(source)
                    traces.setdefault(span["trace"], []).append(span)
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                wrong = InputError(f"not an OpenTelemetry span: {error}")
                raise wrong.at(file=self._file.name, line=row.line, unit=row.unit) from None
        self._check_rules(traces.values())
        several: list[str] = []
        for trace, spans in traces.items():
            for number, run in runs_of(spans):
                several += [trace] if number == 1 and self._is_judged_as_one(spans) else []
                yield FileRow(lines[trace], to_json(run), self._file.unit, turn=number)
        if several:
            self._options.on_warning(
                f"{self._file.name}: verdicts on traces that hold several answers are left out, as "
                f"they do not say which answer is meant: {named_ids(several)}"
            )

    def _requests(self) -> Iterator[FileRow]:
        """Yield what holds spans; lines of a log between them are no JSON objects."""
        head = self._file.head()
        if head.lstrip()[:1] not in (b"{", b"[") and holds_spans(dict.fromkeys(column_names(head))):
            yield from CsvReader(self._file, self._options).records()
        elif head.lstrip().startswith(b"["):
            yield from self._file.rows()
        elif is_single(self._file):
            yield FileRow(1, to_json(self._file.load()), self._file.unit)
        else:
            yield from (
                row for row in printed_objects(self._file) if row.beginning.startswith(b"{")
            )

    def _record(self, row: FileRow) -> Record:
        record = record_of(from_json(row.raw), row.turn, self._rules)
        self._fed_back.add(record.annotations)
        return record

    def finish(self) -> None:
        """Say what people and judges gave as feedback."""
        unmet = [rule.told() for of_one in (self._rules or {}).values() for rule in of_one]
        for told in filter(None, (*self._fed_back.told(), *unmet)):
            self._options.on_warning(f"{self._file.name}: {told}")

    def _check_rules(self, traces: Iterable[Sequence[Span]]) -> None:
        """Refuse rules on feedback that no trace has."""
        named = {name_of(given) for spans in traces for given in _given(spans)}
        if missing := [name for name in self._rules or () if name not in named]:
            raise InputError(
                f"there is no feedback {missing[0]!r} for --hallucinated-if",
                file=self._file.name,
                found=", ".join(sorted(map(repr, named))) or "no feedback",
                expected="the name of feedback on a trace",
            )

    def _is_judged_as_one(self, spans: Sequence[Span]) -> bool:
        """Say whether a verdict is on a whole trace, and on none of its spans."""
        entries = (given for given in _given(spans) if given["span"] is None)
        return bool(verdicts_of(read_feedback(entries, self._rules)))


def record_of(unordered: Sequence[Span], turn: int = 0, rules: Rules | None = None) -> Record:
    """Return the record of a trace: its question, answer, passages and process.

    Args:
        unordered: its spans, or those of a turn of the chat in it.
        turn: the number of that turn, from 1, which stands behind the id; 0 for a whole trace.
        rules: what people say of feedback: no other is a verdict then; None for nothing.

    Raises:
        NoAnswer: no model said anything in it, or the calls failed.
    """
    trace = Trace(unordered)
    texts = trace.passages()
    question = trace.question(texts)
    texts = [text for text in texts if text.strip() != question.strip()]
    recorder = Recorder()
    for text in texts:
        recorder.source(text)
    for span in trace.heard:
        note_span(recorder, span, trace.stages[span["id"]], question)
    answer = trace.answer()
    if answer is None:
        found, expected = trace.lacks()
        raise NoAnswer("no span of this trace has a model's answer", found=found, expected=expected)
    try:
        answer, thoughts = without_thoughts(answer)
    except InputError as error:
        raise NoAnswer(error.what, field=error.field) from None
    if answer not in trace.said:  # a part of what a model said, or more than that
        near = [text for text in trace.said if answer in text or text in answer]
        recorder.step(near[-1:], answer, "answer")
    feedback = read_feedback(_feedback(trace, answer, turn), rules)
    kept = {given.name: given.value for given in feedback if given.verdict is None}
    name, process = str(trace.spans[0]["trace"]), recorder.process(answer, question)
    item = Item(
        id=f"{name}-{turn}" if turn else name,
        question=question,
        answer=answer,
        process=process,
        passages=tuple(Passage(text=text) for text in texts),
        meta=trace.about()
        | thoughts
        | ({"turn": turn} if turn else {})
        | ({"feedback": kept} if kept else {}),
    )
    return Record(item=checked(item), annotations=verdicts_of(feedback))


def _given(spans: Iterable[Span]) -> Iterator[Entry]:
    return (given for span in spans for given in span.get("feedback", ()))


def _feedback(trace: Trace, answer: str, turn: int) -> Iterator[Entry]:
    """Yield the feedback on an answer: on spans that say it, on the trace if that is all of it."""
    for span in trace.order:
        said = [said_by(span), *(message.text for message in replies_of(span))]
        says_it = any(text and (text in answer or answer in text) for text in said)
        for given in _given([span]):
            if turn == 0 if given["span"] is None else says_it:
                yield given


FORMAT = FormatEntry(name="traces", title="OpenTelemetry traces", reader=TraceReader, order=140)
