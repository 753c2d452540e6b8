"""RAGTruth: ``response.jsonl`` with ``source_info.jsonl``.

Each line of the one is a model's response with its labelled spans, each line of the other what the
responses to it were made from: passages and a question (QA), a text (Summary) or a record of data
(Data2txt).

RAGTruth's prompts, which LettuceDetect's files and models keep, have the passages numbered behind
the question, one text to be summarised, or the data to be told of.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from spanlab.base.errors import InputError
from spanlab.base.options import OptionModel, option
from spanlab.formats import reader
from spanlab.formats.cells import spans_in
from spanlab.formats.contexts import RecordIndex
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.prompt_labels import labels_in, last_round, sections_named, text_behind
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import FormatEntry, checked
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record

SOURCES = "source_info.jsonl"
_HEADING = re.compile(r"^(passage \d+):", re.MULTILINE)
_LANGUAGE = "en"  # of the whole corpus
_OF_LABELS = frozenset(("start", "end", "text", "label_type", "meta"))  # fields of ours


class _Response(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    id: str = Field(coerce_numbers_to_str=True)
    source_id: str = Field(coerce_numbers_to_str=True)
    response: str
    labels: list[dict[str, JsonValue]] | None = None


class _SourceRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    source_id: str = Field(coerce_numbers_to_str=True)
    source_info: JsonValue
    task_type: str = ""
    prompt: str = ""

    def question(self) -> str:
        """Return the question, or what the prompt asks before it comes to the source."""
        info = self.source_info
        if isinstance(info, dict) and isinstance(info.get("question"), str):
            return str(info["question"])
        shown = info if isinstance(info, str) else repr(info)
        instruction, has_source, _ = self.prompt.partition(shown)
        return instruction.strip() if has_source else ""

    def passages(self) -> tuple[Passage, ...]:
        """Return the source as passages: each of a question's, the text, or the data as JSON."""
        info = self.source_info
        if isinstance(info, str):
            return (Passage(text=info),)
        if isinstance(info, dict) and isinstance(info.get("passages"), str):
            return tuple(_split(str(info["passages"])))
        return (Passage(text=json.dumps(info, ensure_ascii=False, indent=2)),)


class SourcesOptions(OptionModel):
    """Where the sources are."""

    sources: Path | None = option(
        None,
        title="Sources of RAGTruth",
        help="RAGTruth's source_info.jsonl, if it is in another folder.",
        sides={"command", "python"},
    )


class RagTruthReader(reader.FormatReader):
    """Reads responses; the sources are looked up on disk."""

    signatures = (frozenset(("response", "source_id")),)
    own_options = SourcesOptions
    second_file = SOURCES
    _own: SourcesOptions

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        path = self._own.sources or _default_sources(file.path)
        if not path.is_file():
            raise InputError(
                f"there is no {SOURCES} for these responses",
                file=file.name,
                expected=f"the file {path}, or its place in the option for sources",
            )
        self._sources = RecordIndex(InputFile(path, str(path)), lambda row: _source(row).source_id)

    def _record(self, row: FileRow) -> Record:
        line = _Response.model_validate_json(row.raw)
        source = self._source_of(line)
        meta = {
            **(line.model_extra or {}),
            "source_id": line.source_id,
            "task_type": source.task_type,
            "prompt": source.prompt,
            **(source.model_extra or {}),
            **_label_extras(line),
        }
        item = checked(
            Item(
                id=line.id,
                lang=_LANGUAGE,
                question=source.question(),
                answer=line.response,
                passages=source.passages(),
                meta=meta,
            )
        )
        return Record(item=item, annotations=tuple(_gold(line)))

    def _source_of(self, line: _Response) -> _SourceRow:
        for row in self._sources.rows(line.source_id):
            return _source(row)
        raise InputError(
            "the source is unknown",
            field="source_id",
            found=line.source_id,
            expected=f"a source_id of {self._sources.name}",
        )


def _source(row: FileRow) -> _SourceRow:
    return _SourceRow.model_validate_json(row.raw)


def _default_sources(path: Path) -> Path:
    packed = path.with_name(f"{SOURCES}.gz")
    return packed if packed.is_file() else path.with_name(SOURCES)


def _split(passages: str) -> Iterator[Passage]:
    """Split "passage 1:… passage 2:…"; without such headings it is one passage."""
    for title, text in _numbered(passages) or [(None, passages)]:
        yield Passage(text=text, title=title)


def _numbered(text: str) -> list[tuple[str | None, str]]:
    """Return the headings in a text that number its passages, with what stands below each."""
    headings = list(_HEADING.finditer(text))
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    below = [text[h.end() : end].strip("\n") for h, end in zip(headings, ends, strict=False)]
    return [(h[1], part) for h, part in zip(headings, below, strict=True) if part.strip()]


def _gold(line: _Response) -> Iterator[Annotation]:
    if line.labels is not None:
        spans = spans_in(line.labels, "labels", line.response)
        yield Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=spans)


def _label_extras(line: _Response) -> dict[str, JsonValue]:
    """Return what the labels say beyond our fields (such as ``implicit_true``), in their order."""
    extras: list[JsonValue] = [
        {name: value for name, value in label.items() if name not in _OF_LABELS}
        for label in line.labels or ()
    ]
    return {"labels": extras} if any(extras) else {}


_ASKED: Final = "question:\n"
_KINDS: Final = re.compile(  # of what stands below a line
    r"\b(?:texts?|articles?|documents?|structured data)\b", re.IGNORECASE
)
_REFUSAL: Final = "In case the passages do not contain"
_ENDS: Final = ("output:", "overview:", "summary:", "answer:")


class ApartPrompt(NamedTuple):
    """What a prompt asks for, and the passages in it."""

    question: str
    passages: tuple[Passage, ...]


def split_prompt(prompt: str) -> ApartPrompt | None:
    """Return a prompt's question and passages; None if it has none that can be told apart."""
    body, ended = _without_end(prompt)
    if first := _HEADING.search(body):
        instruction = body[: first.start()].strip()
        _, marker, question = instruction.partition(_ASKED)
        passages = tuple(
            Passage(text=text.lstrip(" \t").strip("\n")) for _, text in _numbered(body)
        )
        return ApartPrompt(question.partition("\n")[0].strip() if marker else instruction, passages)
    asked = last_round(prompt)
    labels = [label for label in labels_in(asked) if text_behind(asked, label)]
    if labels and labels[-1]["question"]:  # a prompt of somebody else's
        named = tuple(Passage(text=s.text) for s in sections_named(asked, asks=True) if s.text)
        return ApartPrompt(text_behind(asked, labels[-1]), named) if named else None
    place = 0
    task = 0
    for line in body.splitlines(keepends=True):
        place += len(line)
        if line.rstrip().endswith(":") and _KINDS.search(line):
            task = place
    if not ended or not task or not body[task:].strip():
        return None
    return ApartPrompt(body[:task].strip(), (Passage(text=body[task:].strip("\n")),))


def _without_end(prompt: str) -> tuple[str, bool]:
    """Return a prompt without the words that have the model begin, and whether it had them."""
    body = prompt.rstrip()
    end = next((end for end in _ENDS if body.lower().endswith(end)), "")
    body = body[: len(body) - len(end)].rstrip()
    body_before, refusal, _ = body.rpartition(_REFUSAL)
    return (body_before.rstrip() if refusal else body), bool(end)


FORMAT = FormatEntry(name="ragtruth", title="RAGTruth", reader=RagTruthReader, order=30)
