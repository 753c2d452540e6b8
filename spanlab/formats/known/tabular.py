"""Records with a mapping of columns: what CSV, parquet, Arrow and any JSON have in common.

``passages`` may be a plain text or a JSON list of texts or ``{"text", "title", "url", "date"}``;
``spans`` a JSON list of ``[start, end]``, ``{"start", "end", "text", "prob", "label", "note"}`` or
texts of the answer, which become gold labels; ``messages`` a chat, whose last turn is question and
answer, or each of them (``turns``). A column may lie inside another (``paths``). An
empty cell says nothing; columns without a field go into meta. What was written here (``flat``) is
read with all its annotators, unless columns are mapped.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from typing import IO, Any, ClassVar, Final, Literal, NamedTuple, cast

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from spanlab.base.errors import InputError
from spanlab.base.options import Option, option
from spanlab.formats import reader
from spanlab.formats.annotator_rows import (
    SAID,
    SPANS,
    AnnotatorRows,
    MarksOfPeople,
    annotator_rows_in,
    marks_of_people,
    told_twice,
)
from spanlab.formats.cells import (
    about_reply,
    answer_in,
    chat_in,
    cited_in,
    gold_in,
    in_code_points,
    is_reply,
    passages_in,
    people_in,
    predicted_in,
    question_in,
    turn_in,
    untagged,
)
from spanlab.formats.chats import SAYS, answers_in, is_chat
from spanlab.formats.citations import said_citations
from spanlab.formats.columns import Samples, are_objects, columns_of, model_in, value_at, without
from spanlab.formats.feedback import (
    FeedbackCounts,
    feedback_in,
    fields_with_verdicts,
    judges_in,
    name_of,
    read_feedback,
    unread_shares,
    verdicts_of,
    votes_in,
)
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.guess import Guess, guess, marks_alone, unread_marks
from spanlab.formats.judged_parts import (
    JudgedParts,
    PublishedParts,
    is_answer_in_parts,
    judged_parts_in,
    published_parts,
)
from spanlab.formats.known.analysis_table import (
    CellsRow,
    is_own,
    is_table,
    join_rows_of_items,
    record_of,
)
from spanlab.formats.known.ragtruth import split_prompt
from spanlab.formats.limits import MOST_COLUMNS
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import (
    NoAnswer,
    checked,
    is_missing,
    language,
    parse_list,
    parse_object,
    text_of,
    within,
)
from spanlab.formats.recipes import known_for
from spanlab.formats.shapes import (
    untyped,
    with_branch,
    with_labels_of_turn,
    with_messages,
    with_rows,
)
from spanlab.formats.sides import SideBySide, Sides, packing_in
from spanlab.formats.threads import (
    Thread,
    model_beside_user,
    speakers_in,
    thread_in,
    with_roles,
)
from spanlab.formats.verdict_columns import (
    VerdictColumns,
    VerdictOptions,
    as_said_by,
    rules_in,
    verdict_columns,
)
from spanlab.formats.verdict_words import plain_word, tells
from spanlab.formats.vocabulary import words_in
from spanlab.output.figures import named_ids
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record

SAMPLES: Final = 50  # records that are looked at to tell what their columns hold
_SAMPLED: Final = 1 << 22  # bytes after which these are enough
_GIVEN: Final = frozenset(words_in("logged", "given"))
# What was given and said, both as JSON in a text: by MLflow, LangSmith, …
_LOGGED: Final = tuple(frozenset(both.split()) for both in words_in("logged", "both"))
_MADE: Final = ("id", "model", "side")  # fields of records that were apart in no field
_NAMED: Final = 5  # so many ids are named in a remark
_UNPLACED: Final = (
    "marked texts of {n} do not stand in their answers, or more than once; they are kept as claims "
    "that are not supported"
)
_OTHER_TURNS: Final = (
    "{n} with labels of other answers, which are kept in meta; --turns all reads each answer with "
    "those of its own"
)
_EMPTY: Final = ", which is read as nothing marked; 'not judged' says otherwise"
_UNJUDGED: Final = frozenset(words_in("parts", "unjudged"))
CELL = 10  # bytes of memory for a character of a cell: the cell, and its JSON at the worst


class RecordLayout(NamedTuple):
    """What a file's records look like before any is imported.

    Attributes:
        columns: the names that can be mapped.
        guesses: our field → the column that it is read from if nobody says otherwise.
        samples: the first records, as they stand.
        options: what people are asked of the file's format alone.
    """

    columns: tuple[str, ...] = ()
    guesses: Guess = Guess()
    samples: tuple[Mapping[str, Any], ...] = ()
    options: tuple[Option, ...] = ()


class RecordOptions(VerdictOptions):
    """What chats and verdicts in records say."""

    turns: Literal["last", "all"] = option(
        "last",
        title="Items of a chat",
        help="Which answers of a chat become items: the last one, or all. What came before is the "
        "question, what tools returned are passages.",
        titles={"last": "The last answer", "all": "Each answer"},
    )
    speaker: str | None = option(
        None,
        title="The model in a chat",
        help="The speaker who is the model, in chats that have names of speakers and no roles.",
        placeholder="for example helper-bot",
    )


class MappedReader(reader.FormatReader):
    """Reads records whose columns are named by the user, or have common names."""

    own_options: ClassVar[type[RecordOptions]] = RecordOptions
    _own: RecordOptions
    maps_columns = True
    # Cells that mark nothing where others mark texts; null in JSON is an answer nobody looked at.
    _none_marked: ClassVar[tuple[str | None, ...]] = ("",)

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._stem = PurePath(file.name).name.split(".")[0]
        self._mapping = Guess()
        self._rules = rules_in(self._own.hallucinated_if)
        self._verdicts = VerdictColumns()
        self._parts: JudgedParts | PublishedParts | None = None
        self._unread_parts = ""  # a remark on parts that may be judged
        self._unread_shares: tuple[str, ...] = ()  # remarks on feedback that needs a threshold
        self._fed_back = FeedbackCounts()
        self._joined = ""  # what became of messages that stand alone
        self._unread: str | None = None  # a column of marks that are not understood
        self._tagged: tuple[str, ...] = ()  # columns with tags around what is hallucinated
        self._are_texts_marked = False  # whether marks are texts in a cell, empty for none
        self._marked_by = MarksOfPeople()

    def asked(self) -> tuple[Option, ...]:
        """Return none: what is said of chats is asked with the columns."""
        return ()

    def columns(self) -> tuple[str, ...]:
        """Return the paths of the columns of the first records; none if there are no records."""
        return columns_of(self._samples)

    def records(self) -> Iterator[FileRow]:
        """Yield the records as JSON objects: those of the file, or each of their sides."""
        rows = self._spoken()
        if self._thread is not None:
            return self._thread.joined(rows, self._file, partial(setattr, self, "_joined"))
        if self._sides is not None:
            return chain.from_iterable(map(self._apart, rows))
        if self._by_annotator is None:
            return rows
        return self._by_annotator.joined(
            rows, _cells_of, self._file, partial(setattr, self, "_joined")
        )

    @abstractmethod
    def given(self) -> Iterator[FileRow]:
        """Yield the records as they stand, as JSON objects, numbered from 1."""

    def _spoken(self) -> Iterator[FileRow]:
        """Yield the records as they stand, with roles where it is known who the model is."""
        speaker = self._speaker
        for row in self.given():
            record = row.readable if speaker else None
            if speaker is None or record is None:
                yield row
            else:
                spoken = to_json(with_roles(record, speaker))
                yield self._file.row(row.line, spoken, row.unit, row.number)

    @cached_property
    def _speaker(self) -> str | None:
        """Who the model is in a chat that names it."""
        is_known = self._own.speaker or self._options.columns
        is_log = not is_known and {*SAYS} & set(self._names_given())
        beside = model_beside_user(list(self._samples_given)) if is_log else None
        return self._own.speaker or beside

    @cached_property
    def _thread(self) -> Thread | None:
        """How records that are messages are joined to chats; None if they are something else."""
        may_be = self._speaker or {*SAYS, "message"} & set(self._names_given())
        if self._options.columns or not may_be:
            return None
        is_as_given = self._speaker is None
        return thread_in(self._samples_given if is_as_given else self._readable(self._spoken()))

    @cached_property
    def _sides(self) -> SideBySide | Sides | None:
        """What the answers in one record are told by; None if it has one, or columns are named."""
        names = () if self._options.columns else self._names_given()
        return None if is_table(names) else packing_in(names)

    @cached_property
    def _by_annotator(self) -> AnnotatorRows | None:
        """How rows are joined that each have what one annotator says; None for other records."""
        samples = self._samples_given
        if self._published or not samples or self._is_ours:
            return None
        try:
            return annotator_rows_in(samples, self._options.columns, self._rules)
        except InputError:
            return None  # which is said when the columns are mapped

    @cached_property
    def _is_ours(self) -> bool:
        """Whether records were written here: items with all their annotations, or their rows."""
        return any(is_own(cells) or is_table(cells) for cells in self._samples_given[:1])

    @cached_property
    def _published(self) -> PublishedParts | None:
        """How parts are judged in a form of their own; None if people say what judges."""
        recipe = known_for(columns_of(self._samples_given)) if self._rules is None else {}
        return published_parts(recipe)

    def _names_given(self) -> tuple[str, ...]:
        return tuple(next(iter(self._samples_given), ()))

    def _apart(self, row: FileRow) -> Iterator[FileRow]:
        try:
            cells = _cells_of(row)
        except InputError:
            yield row  # which says so when its turn comes
            return
        for record in self._sides.apart(cells, f"{self._stem}-{row.number}") if self._sides else ():
            yield self._file.row(row.line, to_json(record), row.unit, row.number)

    @property
    def fields(self) -> Mapping[str, str]:
        """Which field of ours is read from each column."""
        judged = dict.fromkeys(self._verdicts.read, "labels")
        judged |= dict.fromkeys(self._tagged, "spans")
        judged |= dict.fromkeys(self._parts.columns if self._parts else (), "labels")
        judged |= self._by_annotator.fields if self._by_annotator else {}
        judged |= dict.fromkeys(self._marked_by.columns.values(), "spans")
        return judged | {column: field for field, column in self._mapping.items()}

    def source(self, row: FileRow) -> Any:
        """Return a row as it stands in the file, objects that are texts there as objects."""
        raw = super().source(row)
        if not isinstance(raw, dict):
            return raw
        return _opened({name: value for name, value in raw.items() if name != SAID})

    @property
    def sources(self) -> Mapping[str, str]:
        """The columns of the file that a column of the records was made of."""
        packed = self._thread or self._sides
        if packed is None:
            return {}
        given = self._names_given()
        sources = {**{name: "" for name in _MADE if name not in given}, **packed.sources}
        if self._speaker is not None:  # by whom roles were made
            sources["messages"] = sources.get("messages", "").removeprefix("role, ")
        return sources

    def layout(self) -> RecordLayout:
        """Return what the records look like; without columns if there are none."""
        columns, samples = self.columns(), self._samples
        return RecordLayout(columns, guess(columns, samples), samples)

    def rows(self) -> Iterator[FileRow]:
        """Yield the records, each as often as it has turns that are wanted.

        Raises:
            InputError: the file cannot be read on, or it has no column for the answer.
        """
        if columns := self.columns():
            samples = self._samples
            self._check_speakers(samples)
            self._mapping = self._map(columns, samples)
            self._marked_by = self._find_people(samples)
            if self._by_annotator is not None and self._by_annotator.place is not None:
                self._mapping["spans"] = SPANS
            self._tagged = _tagged_columns(samples, self._mapping.get("answer"))
            column = self._mapping.get("spans")
            marks = [value_at(sample, column) for sample in samples] if column else []
            self._are_texts_marked = any(isinstance(parse_list(m), str) for m in marks if m)
            self._unread = unread_marks(self._mapping, samples)
            self._verdicts = self._find_verdicts(
                self._samples_given if self._by_annotator else samples
            )
        for row in self.records():
            yield from self._turns(row)

    def keeps_answer(self, record: Record) -> bool:
        """Say that what somebody has worked on here stays as it was."""
        return bool(record.annotations) and any(map(is_own, self._samples_given[:1]))

    def _remarks(self) -> Iterator[str]:
        if not self._options.columns and (recipe := known_for(self.columns())):
            yield f"read by the recipe of {recipe['title']}"
        yield from self._verdicts.told()
        yield from self._fed_back.told()
        yield from self._mapping.told()
        yield from self._unread_shares
        yield self._unread_parts
        yield from self._parts.told() if self._parts else ()
        yield from (rule.told() for rule in chain.from_iterable((self._rules or {}).values()))
        if self._speaker != self._own.speaker:
            yield (
                f"{self._speaker} is read as the model, as all other messages are a user's; "
                "--speaker NAME names another one"
            )
        if self._unread and not any(f"{n}.".startswith(f"{self._unread}.") for n in self.fields):
            yield (
                f"{self._unread!r} has no readable spans and is kept in meta; expected lists of "
                "[start, end], or of objects with start and end; of lists under several names, "
                f"--column spans={self._unread}.NAME reads one"
            )
        if self._tagged:
            tagged = ", ".join(map(repr, self._tagged))
            yield f"tags around what is hallucinated, in {tagged}, are read as marked places"
        column = self._mapping.get("spans", "")
        labels = [value_at(sample, f"{column}.label") or () for sample in self._samples]
        if column.endswith("entities") and not any(map(tells, chain.from_iterable(labels))):
            yield f"{column!r} is read as marks of what is hallucinated; these may be mere names"
        yield from self._marked_by.told()
        yield self._joined
        if self._by_annotator is None:
            yield told_twice(self._samples, self._mapping, [*self._verdicts.read])

    @cached_property
    def _samples(self) -> tuple[dict[str, Any], ...]:
        """The first records; what is wrong with one is said when its turn comes."""
        made = (self._speaker, self._thread, self._sides, self._by_annotator)
        if all(one is None for one in made):  # as nearly all files: the records are what is given
            return self._samples_given
        read = self._readable(self.records())
        return tuple({n: v for n, v in cells.items() if n != SAID} for cells in read)

    @cached_property
    def _samples_given(self) -> tuple[dict[str, Any], ...]:
        """The first records as they stand."""
        return tuple(self._readable(self.given()))

    def _readable(self, rows: Iterator[FileRow]) -> Iterator[dict[str, Any]]:
        size = 0
        with suppress(InputError):
            for row in islice(rows, SAMPLES):
                size += len(row.beginning)
                with suppress(InputError):
                    yield _cells_of(row)
                if size > _SAMPLED:
                    return

    def _turns(self, row: FileRow) -> Iterator[FileRow]:
        column = self._mapping.get("messages")
        answers: Sequence[int] = ()
        if self._own.turns == "all" and column is not None and row.refused is None:
            with suppress(InputError):  # which is said when its turn comes
                cells = _cells_of(row)
                chat = chat_in(value_at(cells, column))
                answered = value_at(cells, self._mapping.get("answer", "")) not in (None, "")
                answers = answers_in(chat) if is_chat(chat) and not answered else ()
        if len(answers) < 2:
            yield row
            return
        for number in range(len(answers)):
            yield row._replace(turn=number + 1)

    def _record(self, row: FileRow) -> Record:
        cells = _cells_of(row)
        if is_own(cells) and not self._options.columns:
            return record_of(cells)
        names, said_by = self._mapping, cells.pop(SAID, {})
        theirs = {field: _present(value_at(cells, column)) for field, column in names.items()}
        used = {*names.values(), *self._tagged, *self._marked_by.columns.values()}
        if by_annotator := self._by_annotator:
            used |= by_annotator.fields.keys() | by_annotator.differing(said_by)
        used |= {*self._parts.columns} if self._parts else set()
        label = _label_beside(names.get("model", ""))
        if label and (named := _present(value_at(cells, label))):
            theirs["model"], used = named, used ^ {names["model"], label}
        try:
            turn = turn_in(theirs, names, row.turn)
        except InputError as error:  # of a call that failed, a chat without its last answer is left
            raise _failed_call(cells, error.field) or error from None
        if turn is not None:
            used -= set() if turn.is_whole else {names.get("messages", names.get("question", ""))}
            is_labelled = self._own.turns == "last" and with_labels_of_turn(cells)[1]
            self.count("chat", _OTHER_TURNS, n=int(is_labelled))
        answer = self._answer(cells, theirs.get("answer"), turn.answer if turn else "")
        question = turn.question if turn is not None else question_in(theirs.get("question"))
        passages = passages_in(theirs.get("passages"), names.get("passages", ""))
        if turn is not None:
            passages = (*passages, *(Passage(text=text) for text in turn.passages))
        passages = passages or tuple(dict.fromkeys(cited_in(cells)))
        if not passages and (apart := split_prompt(question)) is not None:
            question, passages = apart
            used -= {names.get("question", "")}
        lang = language(text_of(theirs.get("lang")))
        name = text_of(theirs.get("id"))
        if name is None or name == names["id"]:  # its column's own name, as for want of another
            name = f"{self._stem}-{row.number}"
        item = checked(
            Item(
                id=f"{name}-{row.turn}" if row.turn else name,
                lang=lang,
                question=question,
                answer=answer,
                passages=passages,
                citations=said_citations(cells, answer, passages, lang),
                meta=_meta(without(cells, used)) | _about(theirs, names),
            )
        )
        if by_annotator is None:
            return Record(item=item, annotations=self._said(cells, item))
        annotations = by_annotator.annotations(said_by, partial(self._said, item=item))
        return Record(item=item, annotations=annotations)

    def _answer(self, cells: Mapping[str, Any], given: Any, of_chat: str) -> str:
        """Return the answer of a record; raises InputError for one that has none."""
        if isinstance(given, Mapping) and not is_reply(given) and (failure := _failed_call(given)):
            raise failure
        names = self._mapping
        if isinstance(self._parts, JudgedParts) and names.get("answer") == self._parts.texts:
            return self._parts.answer(cells)
        answer = answer_in(given, names.get("answer", "")) or of_chat
        if not answer:
            raise _without_answer(cells, names.get("answer", names.get("messages")))
        return untagged(answer)[0] if self._tagged else answer

    def _said(self, cells: Mapping[str, Any], item: Item) -> tuple[Annotation, ...]:
        """Return the annotations of an item: its marks, predictions, feedback and verdicts."""
        names = self._mapping
        spans, marked = (
            _present(value_at(cells, names[field])) if field in names else None
            for field in ("spans", "predictions")
        )
        spans = in_code_points(spans, item.answer, cells)
        if isinstance(spans, str) and plain_word(spans) in _UNJUDGED:
            spans = None
        elif self._are_texts_marked and value_at(cells, names["spans"]) in self._none_marked:
            spans = []
            where = f"{names['spans']!r} is empty in {{n}}"
            self.count("record", where + _EMPTY, n=1)
        found = None if marked is None else predicted_in(marked, names["predictions"], item.answer)
        tagged = None
        for column in self._tagged if spans is None else ():
            plain, places = untagged(str(cells.get(column) or ""))
            tagged = gold_in(places, column, item.answer) if plain == item.answer else tagged
        parts = self._parts.annotations(cells, item.answer) if self._parts else ()
        verdicts = verdicts_of(read_feedback(feedback_in(cells), self._rules))
        if not verdicts and self._rules is None:
            verdicts = tuple({one.annotator: one for one in judges_in(cells)}.values())
        self._fed_back.add(verdicts)
        marked_by = tuple(
            filter(None, (*self._marks(cells, spans, item), tagged, found, *parts, *verdicts))
        )
        return self._verdicts.judged(cells, marked_by)

    def _marks(
        self, cells: Mapping[str, Any], marked: Any, item: Item
    ) -> Iterator[Annotation | None]:
        """Yield what people marked, where marks or columns say whose they are; and gold labels."""
        column = self._mapping.get("spans", "")
        found = [(name, column, marks) for name, marks in people_in(marked).items()]
        found += [] if found else [("gold", column, marked)]
        for name, path in self._marked_by.columns.items():
            marks = _present(value_at(cells, path))
            found += [] if marks is None else [(name, path, marks)]
        for name, where, marks in found:
            gold = self._gold(marks, where, item)
            yield gold if name == "gold" else gold and as_said_by(name, gold)

    def _gold(self, marked: Any, column: str, item: Item) -> Annotation | None:
        """Return what a record says is hallucinated: its marked texts, or by its column's name."""
        if marked is None:
            if not self._mapping.get("answer", "").lower().startswith("hallucinated"):
                return None
            return Annotation(annotator="gold", kind=AnnotatorKind.GOLD, answer_hallucinated=True)
        gold = gold_in(marked, column, item.answer)
        if gold is not None and any(claim.verdict != "supported" for claim in gold.claims):
            self.count("item", _UNPLACED, item.id)
        return gold

    def _problem(self, error: ValidationError) -> InputError:
        problem = super()._problem(error)
        column = self._mapping.get(problem.field or "", problem.field or "")
        problem.field = None
        return within(problem, column)

    def _find_people(self, samples: Samples) -> MarksOfPeople:
        """Return the columns of several people's marks, which are no one's labels then."""
        is_other = self._published or self._by_annotator or self._options.columns
        if is_other or self._is_ours:
            return MarksOfPeople()
        marked_by = marks_of_people(samples, self._mapping.get("answer", ""))
        if self._mapping.get("spans") in marked_by.columns.values():
            del self._mapping["spans"]
        return marked_by

    def _find_verdicts(self, samples: Samples) -> VerdictColumns:
        """Return the columns that judge whole answers; none where parts are judged."""
        if self._is_ours or isinstance(self._parts, PublishedParts):
            return VerdictColumns()
        self._unread_shares = tuple(unread_shares(samples)) if self._rules is None else ()
        fed_back = {name_of(entry) for sample in samples for entry in feedback_in(sample)}
        taken = dict(self._mapping)
        used = {*taken.values(), *(self._parts.columns if self._parts else ())}
        used |= {name for s in samples for name in fields_with_verdicts(s, self._rules)}
        used |= {*self._by_annotator.placed} if self._by_annotator else set()
        taken |= {f"used {name}": name for name in used - {*taken.values()}}
        votes = votes_in(samples, used, self._rules)
        fed_back |= {column.name for column in votes.columns}
        taken |= {column.name: column.name for column in votes.columns}
        if self._parts:
            fed_back.add(self._parts.verdict.name)
        rules = self._rules
        if rules is not None:
            own = {name: rule for name, rule in rules.items() if name not in fed_back}
            rules = own or (None if rules else {})
        if self._by_annotator and (parts := self._by_annotator.parts):
            taken |= {"part": parts.text, "verdict": parts.key}
        try:
            return votes + verdict_columns(samples, taken, rules)
        except InputError as error:
            raise error.at(file=self._file.name) from None

    def _find_parts(self, samples: Samples, names: Guess) -> None:
        """Look for parts of answers that are judged, unless marks are in a column of their own."""
        by_rows = self._by_annotator.parts if self._by_annotator else None
        self._parts = self._published or by_rows
        if self._parts or "spans" in names or not samples:
            return
        if not self._is_ours:
            found = judged_parts_in(samples, names.values(), self._rules)
            self._parts, self._unread_parts = found
        answers = self._sides.answers if isinstance(self._sides, Sides) else ()
        if self._parts and answers and self._parts.texts not in answers:
            self._unread_parts = (
                f"{self._parts.texts!r} does not say which answer of a record it judges, and is "
                "kept in meta"
            )
            self._parts = None

    def _check_speakers(self, samples: Samples) -> None:
        """Refuse chats that name who speaks, as nothing says who of them is the model."""
        is_annotated = self._by_annotator is not None and self._by_annotator.annotator
        if self._options.columns or not samples or is_annotated:
            return
        if wrong := marks_alone(samples):
            raise wrong.at(file=self._file.name)
        talks = [samples]
        are_answers = "answer" in guess(tuple(samples[0]))
        if not are_answers:
            talks += [part for part in samples[0].values() if are_objects(part)]
        for names, is_talk in map(speakers_in, talks):
            named = named_ids(names, _NAMED)
            if is_talk or (names and not are_answers):
                raise InputError(
                    "it cannot be told who of these speakers is the model",
                    file=self._file.name,
                    found=named,
                    expected="--speaker NAME, whose messages are the answers; --column "
                    "answer=FIELD reads every message as an answer",
                )
            if names:
                self._options.on_warning(
                    f"{self._file.name}: every text is read as an answer, also where these are "
                    f"speakers of a chat: {named}; --speaker NAME says who of them is the model"
                )

    def _map(self, columns: Sequence[str], samples: Samples) -> Guess:
        try:
            names = guess(columns, samples, self._options.columns)
            self._find_parts(samples, names)
            texts = self._parts.texts if self._parts else ""
            if texts:
                columns = [column for column in columns if not column.startswith(f"{texts}.")]
                names = guess(columns, samples, self._options.columns)
            if not is_answer_in_parts(texts):
                names.check_answer(columns, samples)
            elif "messages" not in names:
                names.setdefault("answer", texts)
            if self._published:
                names.pop("spans", None)
            return names
        except InputError as error:
            failures = [failure for sample in samples if (failure := _failure_in(sample))]
            if samples and len(failures) == len(samples):
                raise InputError(
                    "no record has an answer: the calls failed",
                    file=self._file.name,
                    found=failures[0],
                ) from None
            raise error.at(file=self._file.name) from None


@dataclass(frozen=True)
class _Lines(InputFile):
    """A file that is there as long as somebody may read it."""

    kept: IO[bytes] | None = None


class TableReader(MappedReader):
    """The base of the readers of tables."""

    _unit = "row"
    _none_marked = ("", None)

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns; none if there are no rows."""
        header = self._header
        if self._sides is not None or self._thread is not None:
            return super().columns()
        is_nested = not _GIVEN.union(*_LOGGED).isdisjoint(map(str.lower, header))
        return tuple(dict.fromkeys((*header, *super().columns()))) if is_nested else header

    def _names_given(self) -> tuple[str, ...]:
        return self._header

    @cached_property
    def _header(self) -> tuple[str, ...]:
        """The columns as they stand; none if there are no rows."""
        if len(header := self._read_header()) > MOST_COLUMNS:
            raise InputError(
                f"the table has {len(header):,} columns",
                file=self._file.name,
                expected=f"at most {MOST_COLUMNS:,}; a copy without columns of numbers will do",
            )
        return header

    @abstractmethod
    def _read_header(self) -> tuple[str, ...]:
        """Return the columns as they stand; none if there are no rows."""

    def given(self) -> Iterator[FileRow]:
        """Yield the rows as JSON objects, numbered from 1 without the header.

        Raises:
            InputError: the table is broken, or has no rows.
        """
        number = 0
        rows = self._cells()
        if is_table(self._header) and not self._options.columns:
            rows = join_rows_of_items(rows, self._file.limit)
        for number, row in enumerate(rows, start=1):
            if row.refused is not None:
                refused = self._at(row.refused, row.line)
                yield FileRow(row.line, b"", self._unit, number, refused=refused)
            else:
                raw = self._json(row)
                yield self._file.row(row.line, raw, self._unit, number)
        if number == 0:
            raise InputError("the table has no rows", file=self._file.name)

    def as_lines(self) -> InputFile:
        """Return the rows as JSON Lines, for a reader of the format whose records they are.

        Raises:
            InputError: the table is broken, or has no rows.
        """
        lines = cast(IO[bytes], NamedTemporaryFile(prefix="spanlab-"))  # noqa: SIM115 - kept open
        lines.writelines(row.raw + b"\n" for row in self.given())
        lines.flush()
        return _Lines(Path(lines.name), self._file.name, self._file.limit, kept=lines)

    def _json(self, row: CellsRow) -> bytes:
        try:
            value = _number if is_own(row.cells) else _value
            return to_json({key: value(cell) for key, cell in row.cells.items()})
        except (PydanticSerializationError, UnicodeDecodeError) as error:
            wrong = InputError(f"a cell is not text: {error}", expected="UTF-8")
            raise self._at(wrong, row.line) from None

    def _at(self, error: InputError, line: int) -> InputError:
        return error.at(file=self._file.name, line=line, unit=self._unit)

    @abstractmethod
    def _cells(self) -> Iterator[CellsRow]:
        """Yield the rows."""


def _tagged_columns(samples: Samples, answer: str | None) -> tuple[str, ...]:
    """Return the columns that have the answers with tags around what is hallucinated."""
    found: dict[str, None] = {}
    for cells in samples if answer else ():
        texts = {name: untagged(value) for name, value in cells.items() if isinstance(value, str)}
        said = texts.get(answer or "", ("", []))[0]
        found |= {name: None for name, (plain, marks) in texts.items() if marks and plain == said}
    return tuple(found)


def _meta(fields: dict[str, Any]) -> dict[str, Any]:
    """Return what is no field of ours, a column ``meta`` by what is in it.

    A number that JSON cannot write, such as 1e400, is missing.
    """
    inner = fields.get("meta")
    if isinstance(inner, dict):
        fields = {**inner, **{key: value for key, value in fields.items() if key != "meta"}}
    return {key: _finite(value) for key, value in fields.items()}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return _number(value)


def _cells_of(row: FileRow) -> dict[str, Any]:
    cells = row.value
    if not isinstance(cells, dict):
        raise InputError("the record is not an object", found=cells, expected="a JSON object")
    plain = with_messages(with_rows(with_branch(untyped(cells))))
    return _opened(with_labels_of_turn(plain, row.turn)[0])


def _opened(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return cells with the objects that stand in them as texts."""
    objects = {name.lower() for name, value in cells.items() if _is_object_text(value)}
    are_logged = any(both <= objects for both in _LOGGED)
    return {
        name: parse_object(value) if are_logged or name.lower() in _GIVEN else value
        for name, value in cells.items()
    }


def _is_object_text(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("{")


def _number(cell: Any) -> Any:
    """Return a cell as JSON knows it; a number that is not one is missing."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    return cell


def _value(cell: Any) -> Any:
    """Return a cell of somebody else's, in which programs write "None" or "nan" for nothing."""
    is_word = isinstance(cell, str) and bool(cell.strip())
    return None if is_word and is_missing(cell) else _number(cell)


def _label_beside(column: str) -> str:
    """Return where the label of an id stands: promptfoo tells providers of one id by labels."""
    return column.removesuffix("id") + "label" if column.endswith(".id") else ""


def _present(value: Any) -> Any:
    return None if value == "" else value


def _about(theirs: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return what is kept in meta under our name: the reference answer, and the model."""
    reply = about_reply(theirs["answer"]) if is_reply(theirs.get("answer")) else {}
    model = theirs.get("model") or model_in(names.get("answer", "")) or reply.get("model")
    about = reply | {"reference": theirs.get("reference"), "model": model}
    return {name: value for name, value in about.items() if value is not None}


def _without_answer(cells: Mapping[str, Any], column: str | None) -> InputError:
    """Return why a record has no answer: its call failed, or there is no text in its column."""
    if column == _COMPLETION and not _failed_call(cells, column):
        return NoAnswer("the model said nothing", field=column)
    return _failed_call(cells, column) or InputError(
        "there is no answer",
        field=column,
        expected="a text; --skip-bad leaves such records out",
    )


_COMPLETION: Final = "output.completion"  # of Inspect, whose samples may end without one


def _failed_call(cells: Mapping[str, Any], column: str | None = None) -> InputError | None:
    failure = _failure_in(cells)
    return NoAnswer(f"its call failed: {failure}", field=column) if failure else None


_FAILED: Final = frozenset(("error", "failed", "errored", "expired", "canceled", "cancelled"))


def _failure_in(value: Any) -> str:
    """Return what programs say of a call that failed, in the record or a reply in it; "" if not."""
    if not isinstance(value, Mapping):
        return ""
    value = {str(name).lower(): inner for name, inner in value.items()}
    for name in ("error", "failurereason", "exception"):
        if said := value.get(name):
            words = said.get("message", said) if isinstance(said, Mapping) else said
            return str(words)
    for name in ("status", "type"):
        if str(value.get(name)).lower() in _FAILED:
            return str(value[name])
    inner = (value.get(name) for name in ("response", "result", "body", "output"))
    return next(filter(None, map(_failure_in, inner)), "")
