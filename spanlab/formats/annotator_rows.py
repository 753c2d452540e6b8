"""What several annotators say of an answer, in rows of their own or in columns of its one.

    id, question, answer, annotator, hallucinated          a verdict of each annotator
    answer, start, end, label, annotator                   one marked span a row, or none
    answer, claim, verdict, annotator                      a claim or sentence of it a row
    answer, spans_ann, spans_bob                           a column of marks of each annotator
    answer, spans: {"ann": […], "bob": […]}                … or an object of them
    claim, verdict, annotator                              a claim, which is the answer

Rows are joined: an answer becomes one item with an annotation of each annotator; columns that
differ between its rows, such as comments, are kept by annotator. Rows belong together if question,
answer, passages and model are equal, and the id, if some rows share one or an annotator judges
equal rows: else it counts rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from spanlab.base.errors import InputError
from spanlab.formats.cells import marks_in_text
from spanlab.formats.columns import Samples, columns_of, value_at, words_of
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.guess import NAMES, guess, may_mark
from spanlab.formats.judged_parts import JudgedParts, judged_parts_in, judged_rows, may_be_part
from spanlab.formats.reader import is_missing, text_of
from spanlab.formats.verdict_columns import Rules, as_said_by, verdict_columns
from spanlab.formats.verdict_words import NO, YES, are_verdicts, plain_word
from spanlab.formats.vocabulary import all_words, words_in
from spanlab.output.figures import counted, named_ids
from spanlab.schema import Annotation

SAID: Final = "rows of annotators"  # the field of a joined record that has what each says
SPANS: Final = "spans"  # the field of it that marked places become
_ANNOTATORS: Final = frozenset(words_in("judged", "by_annotator"))
_BY_PEOPLE: Final = frozenset(words_in("judged", "by_people"))
_USERS: Final = frozenset(words_in("judged", "by_users"))
_FLAGS: Final = (YES | NO) - {"0", "1"}  # which may be numbers of annotators
_EDGES: Final = (("start", "end"), ("begin", "end"), ("from", "to"))
_OFFSETS: Final = frozenset(("char", "character", "offset", "index", "idx", "position", "pos"))
_OWNERS: Final = frozenset(("span", "hallucinated", "hallucination", "error", "mark", "marked"))
_BESIDE: Final = all_words("beside_places")
_ABOUT: Final = ("question", "answer", "passages", "model", "messages")  # which answer it is
_NAMED: Final = 5  # annotators that a remark names


class Place(NamedTuple):
    """The columns that say where a row marks its answer, and what they say of it (``_BESIDE``)."""

    start: str
    end: str
    beside: Mapping[str, str] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """All its columns."""
        return (self.start, self.end, *self.beside.values())

    def marks_of(self, cells: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the span of a row in a list, which is empty for a row that marks nothing."""
        named = {"start": self.start, "end": self.end, **self.beside}
        found = {name: cells.get(column) for name, column in named.items()}
        if is_missing(found["start"]) or is_missing(found["end"]):
            return []
        return [{name: value for name, value in found.items() if not is_missing(value)}]


class AnnotatorRows(NamedTuple):
    """The columns that say who annotates, which answer and where; "" and None for none.

    ``answer`` is the path of the answer, ``key`` has those that are equal in all its rows; ``said``
    are the columns of judgements. ``parts`` says how the claims or sentences are read that rows
    have one of each, which a joined record lists under its ``texts``.
    """

    annotator: str
    answer: str
    key: Sequence[str]
    said: Sequence[str]
    place: Place | None
    parts: JudgedParts | None = None

    @property
    def fields(self) -> dict[str, str]:
        """What becomes of its columns, for the import's report."""
        marked = dict.fromkeys(self.placed, "spans")
        marked |= dict.fromkeys(self._of_parts, "labels")
        return marked | ({self.annotator: "annotators"} if self.annotator else {})

    @property
    def placed(self) -> tuple[str, ...]:
        """The columns of a marked place, and of what is said of it."""
        return self.place.columns if self.place else ()

    def differing(self, said_by: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Return the columns in which annotators say different things: no property of an item."""
        columns = {name: [said.get(name) for said in said_by.values()] for name in self.said}
        return {name for name, values in columns.items() if values.count(values[0]) < len(values)}

    @property
    def _of_parts(self) -> tuple[str, ...]:
        """The columns of a claim or sentence, and of its verdict."""
        return (self.parts.text, self.parts.key) if self.parts else ()

    def joined(
        self,
        rows: Iterable[FileRow],
        cells_of: Callable[[FileRow], Mapping[str, Any]],
        file: InputFile,
        tell: Callable[[str], None],
    ) -> Iterator[FileRow]:
        """Yield a record for each answer, with what each annotator says of it under ``SAID``.

        What became of the rows is told before the first record.

        Raises:
            InputError: the file is too large to be held.
        """
        answers: dict[bytes, list[tuple[FileRow, Mapping[str, Any]]]] = {}
        n_rejected = 0
        for row in file.held(rows):
            try:
                cells = cells_of(row)
                self._check(cells)
            except InputError as error:
                yield row._replace(refused=error)  # which is said when its turn comes
            else:
                if cells.get("AssignmentStatus") == "Rejected":  # of Mechanical Turk
                    n_rejected += 1
                    continue
                answers.setdefault(self.key_of(cells), []).append((row, cells))
        told = self._in_words([[cells for _, cells in same] for same in answers.values()])
        left = f"; {counted(n_rejected, 'rejected assignment')} left out" if n_rejected else ""
        tell(told + left)
        for same in answers.values():
            first = same[0][0]
            record = self._record([cells for _, cells in same])
            yield file.row(first.line, to_json(record), first.unit, first.number)

    def annotations(
        self,
        said_by: Mapping[str, Mapping[str, Any]],
        of_one: Callable[[Mapping[str, Any]], Iterable[Annotation]],
    ) -> tuple[Annotation, ...]:
        """Return the annotations of a joined record; ``of_one`` reads those of one annotator."""
        by_name: dict[str, Annotation] = {}
        for name, said in said_by.items():
            for annotation in of_one(said):
                is_own = annotation.annotator == "gold" and name
                own = as_said_by(name, annotation) if is_own else annotation
                by_name.setdefault(own.annotator, own)
        return tuple(by_name.values())

    def key_of(self, cells: Mapping[str, Any]) -> bytes:
        """Return what all rows of one answer have in common."""
        return to_json([value_at(cells, path) for path in self.key])

    def name_of(self, cells: Mapping[str, Any]) -> str:
        """Return who annotates in a row: a name, "annotator 3" for a number, "" for nobody."""
        value = cells.get(self.annotator)
        name = "" if is_missing(value) else str(value).strip()
        return f"annotator {name}" if name.isdecimal() else name

    def _check(self, cells: Mapping[str, Any]) -> None:
        """Refuse a row whose marked place is not in its answer."""
        for mark in self.place.marks_of(cells) if self.place else ():
            if not _fits(answer := value_at(cells, self.answer), mark):
                raise InputError(
                    "this place is not in the answer",
                    field=self.place.start if self.place else None,
                    found=f"{mark['start']} to {mark['end']}",
                    expected=f"whole numbers from 0 to {len(str(answer))}, the first below the "
                    "second",
                )

    def _record(self, rows: Samples) -> dict[str, Any]:
        """Return the rows of one answer as a record."""
        own = {self.annotator, *self.said, *self.placed}
        own |= {*self._of_parts}
        by_name: dict[str, dict[str, Any]] = {}
        for cells in rows:
            said = by_name.setdefault(self.name_of(cells), {})
            marks = [*said.get(SPANS, ()), *self.place.marks_of(cells)] if self.place else None
            said |= {column: cells.get(column) for column in self.said}
            said |= {} if marks is None else {SPANS: marks}
            if self.parts:
                part = {column: cells.get(column) for column in self._of_parts}
                said.setdefault(self.parts.texts, []).append(part)
        record: dict[str, Any] = {}
        for column in dict.fromkeys(name for cells in rows for name in cells):
            values = [cells.get(column) for cells in rows]
            if column in own or all(value == values[0] for value in values):
                # Of what somebody judges twice the last one counts.
                record[column] = values[-1 if column in self.said else 0]
            elif self.parts:  # of which one annotator judges several
                record[column] = list(dict.fromkeys(filter(None, map(text_of, values))))
            else:
                record[column] = {self.name_of(c) or str(n): c.get(column)
                                  for n, c in enumerate(rows, start=1)}  # fmt: skip
        return record | {SAID: by_name}

    def _in_words(self, answers: Sequence[Samples]) -> str:
        n_rows = sum(map(len, answers))
        each = "a marked place" if self.place else "an annotator's judgement"
        each = "a verdict on a part of an answer" if self.parts else each
        told = f"{counted(n_rows, 'row')}, each {each}, became {counted(len(answers), 'item')}"
        if self.annotator:
            named = dict.fromkeys(self.name_of(cells) for same in answers for cells in same)
            told += f" with annotations of {named_ids(list(filter(None, named)), _NAMED)}"
        n_more = n_rows - sum(len({*map(self.name_of, same)}) for same in answers)
        if n_more and not (self.place or self.parts):
            told += f"; {counted(n_more, 'row')} repeated a judgement of the same annotator, of "
            told += "which the last one counts"
        return told


_MARKS: Final = frozenset(chain.from_iterable(map(str.split, words_in("parts", "marks_of_people"))))
_OF_OTHERS: Final = {*words_in("parts", "found"), *words_in("parts", "passages"), "question"}
_PEOPLE: Final = re.compile(rf"(?:{'|'.join(words_in('parts', 'annotators'))}) ?(?:\d+|[a-z])")


class MarksOfPeople(NamedTuple):
    """The columns, or paths, in which people have marked the same answers, by their names.

    ``others`` are columns that are called so, and hold no marks.
    """

    columns: Mapping[str, str] = {}
    others: Sequence[str] = ()

    def told(self) -> Iterator[str]:
        """Yield whose marks are read, and what is not."""
        if self.columns:
            named = [f"{column!r} of {name!r}" for name, column in self.columns.items()]
            yield f"marks of several annotators: {', '.join(named)}"
        if self.others:
            named = [*map(repr, self.others)]
            yield f"no places or texts of the answers, kept in meta: {', '.join(named)}"


def marks_of_people(samples: Samples, answer: str) -> MarksOfPeople:
    """Return the columns of marks by annotators' names; none unless several of them are there.

    Names of columns have a word for marks and a name, or one for an annotator ("rater 2").
    """
    found: dict[str, str] = {}
    if names_annotator(chain.from_iterable(samples)):
        return MarksOfPeople()  # the rows are each one's
    for column in dict.fromkeys(name for cells in samples for name in cells):
        held = [cells.get(column) for cells in samples]
        words = re.findall(r"[^\W_]+", column)
        name = " ".join(word for word in words if word.lower() not in _MARKS)
        if not _OF_OTHERS.isdisjoint(words_of(column).split()):
            continue
        if all(isinstance(value, Mapping | None) for value in held):
            names = dict.fromkeys(name for value in held for name in value or ())
            is_called = _MARKS.issuperset(map(str.lower, words)) or words_of(column) in _BY_PEOPLE
            found |= {n: f"{column}.{n}" for n in names} if is_called else {}
        elif (name and len(name) < len(" ".join(words))) or _PEOPLE.fullmatch(words_of(column)):
            found[words_of(name) if _PEOPLE.fullmatch(words_of(name)) else name] = column
    values = {n: [(value_at(c, p), value_at(c, answer)) for c in samples] for n, p in found.items()}
    marked = {n: p for n, p in found.items() if all(may_mark(*pair) for pair in values[n])}
    is_marked = any(v and not _is_none(v, text) for name in marked for v, text in values[name])
    if len(marked) < 2 or not is_marked:
        return MarksOfPeople()
    may_hold = {n for n in found for v, _ in values[n] if isinstance(v, str | list)}
    return MarksOfPeople(marked, [found[n] for n in found if n in may_hold and n not in marked])


def _is_none(value: Any, answer: Any) -> bool:
    """Say whether a cell says that nothing is marked, as a verdict may, too."""
    return isinstance(value, str) and (is_missing(value) or marks_in_text(value, str(answer)) == [])


def names_annotator(names: Iterable[str]) -> bool:
    """Say whether one of some columns is called like who annotates."""
    return any(words_of(name) in _ANNOTATORS for name in names)


def annotator_rows_in(
    samples: Samples,
    user_columns: Mapping[str, str] | None,
    rules: Rules | None,
) -> AnnotatorRows | None:
    """Return how rows are joined if each is what one annotator says of an answer; else None.

    Args:
        samples: some records as they stand.
        user_columns: what people said of columns.
        rules: what they said of verdicts; None for nothing.

    Raises:
        InputError: a column that people named is not there.
        UsageError: they named a field that there is not.
    """
    mapping = guess(columns_of(samples), samples, user_columns)
    about = list(filter(None, map(mapping.get, _ABOUT)))
    annotator = _annotator_in(samples, about, is_marked="spans" in mapping)
    is_quoted = words_of(mapping.get("spans", "")) in _BESIDE["text"]
    is_placed = ("spans" in mapping and not is_quoted) or "answer" not in mapping
    place = None if is_placed else _place_in(samples, mapping, is_said_by=bool(annotator))
    if place is not None:
        mapping.pop("spans", None)
    parts = None if place or "spans" in mapping else _parts_in(samples, mapping, annotator, rules)
    if not annotator and place is None and parts is None:
        return None
    if "answer" not in mapping and "messages" not in mapping:
        return None
    said = [mapping["spans"]] if "spans" in mapping else []
    taken = {**mapping, **(place.beside if place else {})}
    taken |= {"part": parts.text, "verdict": parts.key} if parts else {}
    with suppress(InputError):  # which is said when the file is read
        listed, _ = judged_parts_in(samples, taken.values(), rules)
        said += listed.columns if listed is not None and "spans" not in mapping else ()
        found = verdict_columns(samples, {**taken, "annotator": annotator}, rules)
        said += [name for column in found.columns for name in column.names]
    if not said and place is None and parts is None:
        return None
    # Claims of one answer may each have evidence of their own.
    own = mapping.get("passages") if parts else None
    key = tuple(dict.fromkeys(column for column in about if column != own))
    rows = AnnotatorRows(annotator, mapping.get("answer", ""), key, tuple(said), place, parts)
    id_ = mapping.get("id") or _shared_id(samples)
    ids = [str(cells.get(id_)) for cells in samples] if id_ else []
    judged = [(rows.key_of(cells), rows.name_of(cells)) for cells in samples]
    # One who judges the same words twice judges two samples of a model.
    is_of_answers = len({*ids}) < len(ids) or (
        place is None and parts is None and len({*judged}) < len(judged)
    )
    if parts and is_of_answers:  # where ids tell claims apart, they are theirs
        told_apart = {
            (id_, str(cells.get(parts.text))) for id_, cells in zip(ids, samples, strict=True)
        }
        is_of_answers = len(told_apart) > len({*ids}) or parts.text == rows.answer
    if ids and is_of_answers:
        return rows._replace(key=(*rows.key, id_))
    return rows


def _annotator_in(samples: Samples, about: Sequence[str], *, is_marked: bool) -> str:
    """Return the column that says who annotates; "" for none.

    That is a user's beside marks (whose answers are ``about``), if two of them have one answer, or
    Potato has written the rows; beside verdicts, if most answers are several users' and none has
    judged one twice. Elsewhere users ask.
    """
    names = dict.fromkeys(name for cells in samples for name in cells)
    answers = [to_json([value_at(cells, path) for path in about]) for cells in samples]
    n_answers = len({*answers})
    is_shared = n_answers < len(answers) if is_marked else 2 * n_answers <= len(answers)
    are_users = about and (is_shared or (is_marked and "instance_id" in names))
    for name in names:
        values = [cells.get(name) for cells in samples]
        if not all(isinstance(v, str | int | float | None) for v in values):
            continue
        is_once = is_marked or len({*zip(answers, values, strict=True)}) == len(values)
        is_user = are_users and is_once and words_of(name) in _USERS
        is_verdict = are_verdicts({*values}) or _FLAGS.issuperset(map(plain_word, values))
        if is_user or (words_of(name) in _ANNOTATORS and not is_verdict):
            return name
    return ""


def told_twice(samples: Samples, mapping: Mapping[str, str], judging: Sequence[str]) -> str:
    """Return a remark on answers of which several records say different things; "" for none."""
    said: dict[bytes, set[bytes]] = {}
    for cells in samples:
        key = to_json([value_at(cells, mapping[field]) for field in _ABOUT if field in mapping])
        said.setdefault(key, set()).add(to_json([value_at(cells, path) for path in judging]))
    n_twice = sum(len(verdicts) > 1 for verdicts in said.values()) if judging else 0
    return (
        f"the same answer stands in several of the first {len(samples):,} records with different "
        f"verdicts: {counted(n_twice, 'answer')}; each record is an item, and counts by itself; a "
        "column called annotator, with who judged, makes one item of them"
        if n_twice
        else ""
    )


def _shared_id(samples: Samples) -> str:
    """Return the column called like an id that is none of rows, as some share one; "" for none."""
    called = (name for name in samples[0] if words_of(name).endswith(" id"))
    return next((name for name in called if words_of(name) in NAMES["id"]), "")


def _parts_in(
    samples: Samples,
    mapping: Mapping[str, str],
    annotator: str,
    rules: Rules | None,
) -> JudgedParts | None:
    """Return how a claim or sentence of an answer in each row is read; None without.

    Rows of nobody's are parts of answers if these have them.
    """
    columns = dict.fromkeys(name for cells in samples for name in cells)
    free = [name for name in columns if name not in mapping.values()]
    for name in filter(may_be_part, (*free, mapping.get("answer", ""))):
        found = (judged_rows(name, other, samples, rules) for other in free)
        parts = next(filter(None, found), None)
        texts = [(value_at(cells, mapping.get("answer", "")), cells.get(name)) for cells in samples]
        inside = sum(isinstance(a, str) and isinstance(t, str) and t in a != t for a, t in texts)
        if parts and (annotator or 2 * inside > len(texts)):
            return parts
    return None


def _place_in(samples: Samples, mapping: Mapping[str, str], *, is_said_by: bool) -> Place | None:
    """Return the columns of numbers that are places of answers in all samples; None without.

    "start" and "end" alone may be anything: a label, a text or an annotator (``is_said_by``) is
    beside them.
    """
    by_words = {words_of(name): name for cells in reversed(samples) for name in cells}
    for words, start in by_words.items():
        parts = words.split()
        edges = next((each for each in _EDGES if each[0] in parts), None)
        owner = [part for part in parts if part not in _OFFSETS and part not in (edges or ())]
        if edges is None or not _OWNERS.issuperset(owner):
            continue
        end = by_words.get(" ".join(edges[1] if part == edges[0] else part for part in parts))
        if end is None:
            continue
        place = Place(start, end, _beside(" ".join(owner), by_words, mapping))
        answers = ((value_at(cells, mapping["answer"]), cells) for cells in samples)
        marked = [(answer, mark) for answer, cells in answers for mark in place.marks_of(cells)]
        is_clear = bool(owner) or is_said_by or not {"label", "text"}.isdisjoint(place.beside)
        if is_clear and marked and all(_fits(answer, mark) for answer, mark in marked):
            return place
    return None


def _fits(answer: Any, mark: Mapping[str, Any]) -> bool:
    try:
        start, end = float(mark["start"]), float(mark["end"])
    except (KeyError, TypeError, ValueError):
        return False
    whole = start.is_integer() and end.is_integer()
    return isinstance(answer, str) and whole and 0 <= start < end <= len(answer)


def _beside(owner: str, by_words: Mapping[str, str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Return the columns that say something of a marked place, by a span's field."""
    free = {words: name for words, name in by_words.items() if name not in mapping.values()}
    found = {}
    for field, names in _BESIDE.items():
        own = (f"{owner} {name}" for name in names if owner)
        column = next((free[name] for name in (*own, *names) if name in free), None)
        if column is not None:
            found[field] = column
    return found
