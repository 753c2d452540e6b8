"""FaithBench: batches of summaries with the spans that several people marked.

A batch is one JSON object with ``samples``. A sample has a ``source``, a ``summary`` and
``annotations``, each one person's mark with its labels, a note, and where there is one the part of
the source it is about. Labels are nested ("Unwanted", "Unwanted.Intrinsic"); the most specific
ones are kept, since they name their parents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import to_json

from spanlab.base.errors import InputError
from spanlab.formats import reader
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.quotes import find_quote, span_at
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import FormatEntry, checked
from spanlab.schema import Annotation, AnnotatorKind, Evidence, Item, Passage, Record, Span, Stance

_LANGUAGE = "en"  # of the whole benchmark
_UNMARKED = "{n} without annotation, of which nothing says who looked; they count as not annotated"
_LOOSE = "{n} of a source not where the offsets say, left out as evidence"
_CONTRADICTS = "Unwanted.Intrinsic"  # what the source refutes, as against what it does not say


class _AnnotatorMark(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    annotator_id: str = Field(coerce_numbers_to_str=True)
    annotator_name: str | None = None
    label: tuple[str, ...] = ()
    note: str | None = None
    summary_span: str | None = None
    summary_start: int | None = None
    summary_end: int | None = None
    source_span: str | None = None
    source_start: int | None = None
    source_end: int | None = None

    def labels(self) -> tuple[str | None, ...]:
        """Return the most specific labels; one None when there are none."""
        return tuple(
            label
            for label in dict.fromkeys(self.label)
            if not any(other.startswith(f"{label}.") for other in self.label)
        ) or (None,)


class _SummarySample(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    sample_id: int | str
    source: str
    summary: str
    annotations: tuple[_AnnotatorMark, ...] = ()


class FaithBenchReader(reader.FormatReader):
    """Reads one batch. Item ids are "<file name>-<sample id>", as each batch counts from 0."""

    signatures = (frozenset(("samples",)),)

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a file has samples that somebody annotated; others' are of other things."""
        samples = record.get("samples")
        first_sample = samples[0] if isinstance(samples, list) and samples else None
        is_own = isinstance(first_sample, dict) and first_sample.keys() & {
            "sample_id",
            "annotations",
        }
        is_other = first_sample is not None and not is_own
        is_other |= "eval" in record  # of Inspect
        return super().recognises(record) and not is_other

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._batch = PurePath(file.name).name.split(".")[0]
        self._names: dict[str, str] = {}

    def rows(self) -> Iterator[FileRow]:
        """Yield the samples.

        Raises:
            InputError: the file is not a batch.
        """
        batch = self._file.load()
        samples = batch.get("samples") if isinstance(batch, dict) else None
        if not isinstance(samples, list):
            raise InputError(
                "not a batch of FaithBench",
                file=self._file.name,
                field="samples",
                expected="a list of samples",
            )
        self._names = _names(samples)
        for number, sample in enumerate(samples, start=1):
            yield self._file.row(number, to_json(sample), "record")

    def _record(self, row: FileRow) -> Record:
        sample = _SummarySample.model_validate_json(row.raw)
        if not sample.annotations:
            self.count("sample", _UNMARKED, n=1)
        item = checked(
            Item(
                id=f"{self._batch}-{sample.sample_id}",
                lang=_LANGUAGE,
                answer=sample.summary,
                passages=(Passage(text=sample.source),),
                meta={
                    "sample_id": sample.sample_id,
                    **(sample.model_extra or {}),
                    **_further_fields(sample),
                },
            )
        )
        people = dict.fromkeys(mark.annotator_id for mark in sample.annotations)
        return Record(
            item=item, annotations=tuple(self._annotation(sample, person) for person in people)
        )

    def _annotation(self, sample: _SummarySample, annotator: str) -> Annotation:
        spans: list[Span] = []
        remarks: list[str] = []
        for index, mark in enumerate(sample.annotations):
            if mark.annotator_id != annotator:
                continue
            if mark.summary_start is None or mark.summary_end is None:
                # About the whole summary.
                remarks.append(": ".join(filter(None, (", ".join(mark.label), mark.note))))
                continue
            spans.extend(self._spans(sample, mark, f"annotations.{index}.summary_span"))
        return Annotation(
            annotator=self._names.get(annotator, annotator),
            kind=AnnotatorKind.PERSON,
            spans=tuple(spans),
            note="\n".join(filter(None, remarks)) or None,
        )

    def _spans(self, sample: _SummarySample, mark: _AnnotatorMark, field: str) -> Iterator[Span]:
        start, end = mark.summary_start or 0, mark.summary_end or 0
        quoted = mark.summary_span if mark.summary_span is not None else sample.summary[start:end]
        place = find_quote(sample.summary, start, end, quoted=quoted, field=field)
        note, evidence = mark.note or None, self._evidence(sample, mark)
        for label in mark.labels():
            yield span_at(sample.summary, *place, field, label=label, note=note, evidence=evidence)

    def _evidence(self, sample: _SummarySample, mark: _AnnotatorMark) -> tuple[Evidence, ...]:
        if mark.source_start is None or mark.source_end is None or not mark.source_span:
            return ()
        place, quoted = (mark.source_start, mark.source_end), mark.source_span
        try:
            start, end = find_quote(sample.source, *place, quoted=quoted, field="source_span")
        except InputError:
            self.count("quote", _LOOSE, n=1)
            return ()
        stance: Stance = "refutes" if _CONTRADICTS in mark.label else "closest"
        return (Evidence(passage=0, start=start, end=end, text=quoted, stance=stance),)


def _names(samples: list[object]) -> dict[str, str]:
    """Return a name per annotator id: the written one, with the id where two people share it."""
    names: dict[str, str] = {}
    for sample in samples:
        marks = sample.get("annotations") if isinstance(sample, dict) else None
        for mark in marks if isinstance(marks, list) else ():
            if isinstance(mark, dict) and isinstance(mark.get("annotator_name"), str):
                names[str(mark.get("annotator_id"))] = mark["annotator_name"].strip()
    shared = Counter(names.values())
    return {
        key: name if shared[name] == 1 else f"{name} {key}".strip() for key, name in names.items()
    }


def _further_fields(sample: _SummarySample) -> dict[str, JsonValue]:
    """Return what the marks say beyond our fields (such as ``annot_id``), in their order."""
    extras: list[JsonValue] = [mark.model_extra or {} for mark in sample.annotations]
    return {"annotations": extras} if any(extras) else {}


FORMAT = FormatEntry(name="faithbench", title="FaithBench", reader=FaithBenchReader, order=40)
