"""Prodigy's JSON Lines: texts with the spans that somebody marked in them.

{"text", "spans": [{"start", "end", "label"}], "answer": "accept" | "reject" | "ignore",
     "_annotator_id", "_input_hash", "_task_hash"}

The text is the item's answer. An accepted line is its annotator's labels; one that was ignored is
skipped, and one that was rejected says that the spans are wrong, not what is right: it comes
without an annotation, and that is said. The lines of one text are one item, wherever they stand:
`db-out` writes each annotator's one after the other's.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter
from pydantic_core import to_json

from spanlab.formats import reader
from spanlab.formats.cells import passages_in, spans_in, wrong_and_right
from spanlab.formats.files import FileRow
from spanlab.formats.reader import FormatEntry, checked
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status

_UNNAMED = "prodigy"  # who annotated, where no line says it
_REPLACED = "{n} repeated a text for the same annotator, whose last one counts"
_REJECTED = (
    "{n} with the answer reject or another than accept and ignore came without labels: they do not "
    "say what is right"
)
_META = frozenset(("meta", "question", "passages", "context"))


class _Task(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    text: str = Field(min_length=1)
    spans: list[JsonValue] = Field(default_factory=list)
    answer: str = "accept"
    annotator: str | None = Field(None, alias="_annotator_id")
    session: str | None = Field(None, alias="_session_id")
    text_hash: int | str | None = Field(None, alias="_input_hash")


_TASKS: TypeAdapter[tuple[_Task, ...]] = TypeAdapter(tuple[_Task, ...])


class ProdigyReader(reader.FormatReader):
    """Reads the tasks, those of one text together."""

    signatures = tuple(
        frozenset(("text", name)) for name in ("_task_hash", "_input_hash", "_view_id")
    )

    def rows(self) -> Iterator[FileRow]:
        """Yield the lines of each text as one row."""
        by_text: dict[bytes, list[FileRow]] = {}
        for row in self._file.rows():
            by_text.setdefault(_text_of(row), []).append(row)
        for same in by_text.values():
            yield same[0]._replace(beginning=b"[" + b",".join(row.raw for row in same) + b"]")

    def _record(self, row: FileRow) -> Record:
        tasks = _TASKS.validate_json(row.raw)
        first = tasks[0]
        more = {k: v for k, v in (first.model_extra or {}).items() if k in _META}
        question = more.pop("question", "")
        item = checked(
            Item(
                id=str(first.text_hash or row.line),
                question=str(question or ""),
                answer=first.text,
                passages=passages_in(more.pop("passages", more.pop("context", None)), "passages"),
                meta=more.get("meta") or {},
            )
        )
        by_name = {self._name(task): task for task in tasks}
        n_replaced = len(tasks) - len(by_name)
        self.count("line", _REPLACED, n=n_replaced)
        n_rejected = sum(task.answer not in ("accept", "ignore") for task in tasks)
        self.count("line", _REJECTED, n=n_rejected)
        kept = {name: t for name, t in by_name.items() if t.answer in ("accept", "ignore")}
        annotations = (_annotation(name, task) for name, task in kept.items())
        return Record(item=item, annotations=tuple(annotations))

    @staticmethod
    def _name(task: _Task) -> str:
        return task.annotator or task.session or _UNNAMED


def _text_of(row: FileRow) -> bytes:
    line = row.readable
    return to_json(line.get("text")) if isinstance(line, dict) else row.beginning


def _annotation(name: str, task: _Task) -> Annotation:
    if task.answer == "ignore":
        return Annotation(annotator=name, kind=AnnotatorKind.PERSON, status=Status.SKIPPED)
    spans, right = wrong_and_right(spans_in(task.spans, "spans", task.text))
    return Annotation(annotator=name, kind=AnnotatorKind.PERSON, spans=spans, claims=right)


FORMAT = FormatEntry(name="prodigy", title="Prodigy", reader=ProdigyReader, order=70)
