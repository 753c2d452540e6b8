"""The one guess of what columns mean, for files of nobody's format.

A column's score as one of our fields comes from its name and from what stands in it: a name counts
twice as much as the next entry of the vocabulary's list, times the share of the sampled values that
the field can hold; below half, it is none. Fields choose in their order, and what one has taken is
free no more. ``Guess.close`` has the columns that would do as well as the one chosen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from spanlab.base.errors import InputError, UsageError
from spanlab.formats.cells import (
    asked_in,
    chat_in,
    is_cited,
    is_extent,
    is_mask,
    is_place_of,
    is_quote,
    is_reply,
    is_span,
    marks_in_text,
    mask_in,
)
from spanlab.formats.chats import (
    HOLDS,
    alternating,
    answers_in,
    is_chat,
    is_message,
    is_said_by_model,
)
from spanlab.formats.columns import Samples, any_element, are_objects, model_in, value_at, words_of
from spanlab.formats.reader import (
    LANGUAGES,
    as_passage,
    has_text,
    is_missing,
    out_of_list,
    parse_list,
    says_nothing,
)
from spanlab.formats.recipes import columns_of_known
from spanlab.formats.verdict_columns import in_objects
from spanlab.formats.verdict_words import are_verdicts
from spanlab.formats.vocabulary import all_words, ranks_in, words_in

_QUOTES: Final = words_in("parts", "quotes")  # what is wrong in an answer, in its words
# Where a dialogue stands whose last turn is answered in a field of its own.
HISTORIES: Final = words_in("parts", "histories")
_MARKS: Final = frozenset(words_in("parts", "marks"))
_MASKS: Final = frozenset(words_in("parts", "masks"))
_RANKS: Final[dict[str, dict[str, int]]] = {  # of names by their words, the likeliest first
    field: {words_of(name): rank for name, rank in ranks.items()}
    for field, ranks in ((field, ranks_in("columns", field)) for field in all_words("columns"))
}
for _name in _QUOTES:
    _RANKS["answer"].pop(_name, None)
NAMES: Final = {field: tuple(ranks) for field, ranks in _RANKS.items()}
_TALK: Final = "context"  # which is a dialogue in some, and passages in others
_TALKS: Final = frozenset((*NAMES["question"], *NAMES["messages"]))
_SEVERAL: Final = frozenset(words_in("parts", "several"))
_BESIDE: Final = all_words("passages_beside")
FIELDS: Final = (
    *("id", "lang", "question", "answer", "passages", "spans", "messages", "reference", "model"),
    "predictions",
)
# What stands in these is said of an answer, and is not one; or was given to a model, or found for
# it: whole names, as "request response" holds both.
_ASIDE: Final = frozenset(words_in("inside", "said_of_answers"))
_GIVEN: Final = frozenset(words_in("inside", "given_to_models"))
_LETTERS: Final = frozenset("qa")  # question and answer where both are there, and no option "b"
_SHOWN: Final = re.compile("(?i:input)[.:](.+)")  # to workers of Mechanical Turk or Toloka
_LONGEST_NAME: Final = 200  # characters of a model's name
_CITATIONS: Final = words_in("parts", "citations")
_CITED: Final = re.compile(r"\[\d+\]")
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


class Guess(dict[str, str]):
    """Our fields with the columns that hold them.

    ``close`` has columns that would do as well, and ``why`` how one was told otherwise than by its
    name, both by field.
    """

    def __init__(self, columns: Mapping[str, str] = {}) -> None:
        super().__init__(columns)
        self.close: dict[str, str] = {}
        self.why: dict[str, str] = {}

    def told(self) -> Iterator[str]:
        """Yield which columns would do as well as others, and are not read."""
        for field, column in self.close.items():
            yield (
                f"{column!r} may be {field} as well as {self[field]!r}, and is kept in meta; "
                f"--column {field}={column} reads it instead"
            )

    def check_answer(self, columns: Sequence[str], samples: Samples) -> None:
        """Check that one column is the answer, or a chat that ends in it.

        Raises:
            InputError: none is, or another one as well; says what to do.
        """
        if (other := self.close.get("answer")) is not None:
            raise InputError(
                "two columns may be the answer",
                found=f"{self['answer']!r} and {other!r}",
                expected=f"--column 'answer={self['answer']}', or the other one",
            )
        if "answer" in self or "messages" in self:
            return
        _refuse_lists(guess(columns).get("answer"), samples)
        _refuse_references(self.get("reference"), columns)
        raise InputError(
            "no column for answer",
            found=_list_columns(columns),
            expected="one named answer or response or output or LLM output, or a mapping "
            "answer=COLUMN (--column)",
        )


def guess(
    columns: Sequence[str], samples: Samples = (), said: Mapping[str, str] | None = None
) -> Guess:
    """Return for each of our fields the column that holds it, where one does.

    Args:
        columns: those that are there.
        samples: some records, by what stands in which a column is no guess for a field.
        said: what people said of fields; the others are guessed.

    Raises:
        UsageError: people name a field that we do not have.
        InputError: a column that they name is not there.
    """
    _check_said(columns, samples, said or {})
    guesser = _Guesser(columns, samples, Guess(said or columns_of_known(columns)))
    for field in NAMES:
        if field not in guesser.found:
            guesser.choose(field)
    return guesser.found


def marks_alone(samples: Samples) -> InputError | None:
    """Return the error of records that are marked places, whose texts would be read as answers."""
    columns = tuple(dict.fromkeys(chain.from_iterable(samples)))
    column = guess(columns, samples).get("answer", "")
    if not samples or not all(is_place_of(sample, sample.get(column)) for sample in samples):
        return None
    return InputError(
        "these are marked places without the answers that they are in",
        found=_list_columns(columns),
        expected="the whole answer beside each, or with a list of its places; --column "
        f"answer={column} reads what is marked as answers",
    )


def is_given(path: str) -> bool:
    """Say whether what stands at a path was given to a model, or found for it, by its name."""
    return not _GIVEN.isdisjoint(map(words_of, path.split(".")))


def unread_marks(mapping: Mapping[str, str], samples: Samples) -> str | None:
    """Return the column that is called like marks, holds objects, and is read as nothing."""
    for column in dict.fromkeys(chain.from_iterable(samples)):
        held = [sample.get(column) or 0 for sample in samples if column not in mapping.values()]
        are_marks = words_of(column) in _MARKS and any(isinstance(v, Mapping | list) for v in held)
        is_masked = _is_called_mask(column) and any(map(is_mask, held))
        if are_marks or is_masked:
            return column
    return None


class _Candidate(NamedTuple):
    """A column that may be a field's; "" where what is called so holds several of it."""

    score: float
    column: str
    why: str = ""


class _Guesser:
    """Scores the columns of some records; what stands in one is looked at once."""

    def __init__(self, columns: Sequence[str], samples: Samples, found: Guess) -> None:
        self.found = found
        self._columns, self._samples = columns, samples
        self._taken: tuple[str, ...] = ()
        self._held: dict[str, list[Any]] = {}
        letters = {words_of(column) for column in columns if len(column) == 1}
        self._unmeant = frozenset() if letters >= _LETTERS and "b" not in letters else _LETTERS
        self._are_messages = bool(samples) and all(map(is_said_by_model, samples))
        self._named: dict[str, list[str]] = {}  # columns by the words of their paths
        are_shown = any(words.endswith("worker id") for words in map(words_of, columns))
        for column in columns:
            self._named.setdefault(words_of(column), []).append(column)
            if are_shown and (shown := _SHOWN.fullmatch(column)):
                self._named.setdefault(words_of(shown[1]), []).append(column)
        self._ending = _by_endings(columns)

    def choose(self, field: str) -> None:
        """Give a field the likeliest of the columns that no other has."""
        self._taken = tuple(f"{column}." for column in self.found.values())
        first, *others = self._ranked(field) or [_Candidate(0.0, "")]
        if not first.column:
            return
        self.found[field] = first.column
        self.found.why |= {field: first.why} if first.why else {}
        second = others[0] if others and others[0].score == first.score else first
        is_outer = second.column and "." not in first.column + second.column
        if is_outer and self._all_in(first.column) != self._all_in(second.column):
            self.found.close[field] = second.column

    def _free(self, columns: Iterable[str]) -> Iterator[str]:
        """Yield those of some columns that no field has."""
        return (column for column in columns if not f"{column}.".startswith(self._taken))

    def _ranked(self, field: str) -> list[_Candidate]:
        """Return the columns that may be a field's, the likeliest first."""
        if field == "answer" and self._are_messages:
            named = (name for name in HOLDS if name in self._samples[0])
            return [_Candidate(1.0, next(named), "a message of the model")]
        named_so = [
            (words, column)
            for words in NAMES[field]
            if words not in self._unmeant
            for column in self._free(self._called(words, field))
        ]
        scored = [self._candidate(field, *pair) for pair in named_so]
        if scored := [one for one in scored if one.score]:
            return sorted(scored, key=lambda one: -one.score)
        return [_Candidate(1.0, *told) for told in self._otherwise(field, named_so)][:1]

    def _all_in(self, column: str) -> list[Any]:
        """Return what stands in a column in each sample."""
        if column not in self._held:
            self._held[column] = [value_at(sample, column) for sample in self._samples]
        return self._held[column]

    def _values(self, column: str) -> list[Any]:
        return [value for value in self._all_in(column) if not is_missing(value)]

    def _called(self, words: str, field: str) -> Iterator[str]:
        """Yield the columns whose paths have these words, then those that end so, outermost first.

        An id or a language inside something is that thing's; what stands under "expected" or
        "scores" is no answer, but may be the reference, and under "request" it is none either.
        """
        yield from self._named.get(words, ())
        if field in {"id", "lang"}:
            return
        for path, column in self._ending.get(words, ()):
            outer = path[:-1]
            is_asked = field == "answer" and not _GIVEN.isdisjoint(outer)
            if is_asked and path[-1] != "response":
                continue
            if field == "reference" or _ASIDE.isdisjoint(" ".join(outer).split()):
                yield column

    def _candidate(self, field: str, words: str, column: str) -> _Candidate:
        score = 0.5 ** _RANKS[field][words]
        if share := self._share(field, column):
            return _Candidate(score * share, column)
        # What has a weaker name than several answers is what they are about.
        is_several = field == "answer" and words in _SEVERAL and bool(self._samples)
        values = self._all_in(column) if is_several else [None]
        are_several = all(
            isinstance(v, list) and len(v) > 1 and all(map(_is_str, v)) for v in values
        )
        return _Candidate(score if are_several else 0.0, "")

    def _share(self, field: str, column: str) -> float:
        """Return the share of what stands in a column that can be a field's; 0 below half."""
        if not self._samples:
            return 1.0
        values = self._values(column)
        words = words_of(column)
        is_none = not values or (
            (field == "id" and words != "id" and len(set(map(str, values))) < len(values))
            or (field == "answer" and (_is_figure(column, values) or self._is_of_marks(column)))
            or (field == "answer" and in_objects(column, values) is not None)
            # Verdicts on answers that say more than a verdict are no references.
            or (field == "reference" and self._judges(column, self.found.get("answer")))
        )
        # A wrong record is one to be told of, and no other column.
        fitting = 0 if is_none else sum(_FITS[field](value, column) for value in values)
        return fitting / len(values) if 0 < 2 * fitting >= len(values) else 0.0

    def _is_of_marks(self, column: str) -> bool:
        """Say whether a column is inside the objects of a list that are places of a text."""
        around = self._all_in(column.rpartition(".")[0]) if "." in column else []
        return any(isinstance(value, list) and any(map(is_span, value)) for value in around)

    def _judges(self, column: str, answer: str | None) -> bool:
        """Say whether a column has verdicts as words, and answers are other texts."""
        said = [self._values(path) for path in (column, answer) if path]
        return [bool(values) and are_verdicts(values) for values in said] == [True, False]

    def _otherwise(self, field: str, named: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield columns that are a field's for want of one that is called so and holds it, and why.

        A column of answers may be called by its model, or be empty; passages and marks are told by
        what others hold.
        """
        if field == "messages" and _TALKS.isdisjoint(self._named.keys() - {_TALK}):
            has_evidence = any(name.startswith(("knowledge", "evidence")) for name in self._named)
            for column in self._named.get(_TALK, ()) if has_evidence else ():
                if all(len(alternating(value)) > 1 for value in self._values(column)):
                    yield column, "what was said before, beside evidence"
        if field == "answer":
            free = self._free(self._columns)
            yield from ((column, "named by a model") for column in free if model_in(column))
        if field in {"id", "lang", "question", "answer"}:
            for _, of_name in groupby(named, key=itemgetter(0)):
                empty = [c for _, c in of_name if "." not in c and not self._values(c)]
                yield from ((column, "empty in the first records") for column in reversed(empty))
        if field not in {"spans", "passages"}:
            return
        by_words = {words_of(path): path for path in reversed([*self._free(self._columns)])}
        answers = self._all_in(self.found["answer"]) if "answer" in self.found else []
        telling = self._marking if field == "spans" else self._cited
        yield from telling(by_words, answers)

    def _marking(
        self, named: Mapping[str, str], answers: Sequence[Any]
    ) -> Iterator[tuple[str, str]]:
        """Yield columns that are called like marks and name places or texts of the answers."""
        called = (column for words, column in named.items() if words in _MARKS)
        for column in chain(called, filter(_is_called_mask, named.values())):
            pairs = zip(self._all_in(column), answers, strict=False)
            fits = _marks if words_of(column) in _MARKS else is_mask_of
            marking = [fits(v, a) for v, a in pairs if not is_missing(v)]
            if marking and 2 * sum(marking) >= len(marking):
                yield column, "places or texts of the answers"

    def _cited(self, named: Mapping[str, str], answers: Sequence[Any]) -> Iterator[tuple[str, str]]:
        """Yield columns of passages beside what is called like a summary, or that answers cite."""
        about = {
            words_of(self.found.get(name, "")).split(" ")[-1] for name in ("answer", "question")
        }
        for words, others in _BESIDE.items():
            if words in named and not about.isdisjoint(others):
                yield named[words], f"beside {' or '.join(others)}"
        are_cited = any(isinstance(a, str) and _CITED.search(a) for a in answers)
        for column in (named[words] for words in _CITATIONS if words in named):
            listed = list(filter(None, map(parse_list, self._values(column))))
            are_places = any(map(is_span, chain.from_iterable(listed)))  # of what cites them
            are_passages = are_cited or all(map(are_objects, listed))
            if listed and are_passages and not are_places and self._share("passages", column):
                yield column, "objects, or cited by the answers"


def _by_endings(columns: Sequence[str]) -> dict[str, list[tuple[list[str], str]]]:
    """Return the columns inside others by the words that their paths end with, outermost first.

    Each comes with the words of the parts of its path.
    """
    found: dict[str, list[tuple[list[str], str]]] = {}
    inner = (column for column in columns if "." in column)
    for column in sorted(inner, key=lambda column: column.count(".")):
        parts = column.split(".")
        words = list(map(words_of, parts))
        for count in range(1, len(parts)):
            found.setdefault(words_of(" ".join(parts[count:])), []).append((words, column))
    return found


def _check_said(columns: Sequence[str], samples: Samples, said: Mapping[str, str]) -> None:
    for field, column in said.items():
        if field not in NAMES:
            raise UsageError(
                f"no field {field!r} to map a column to; known are {', '.join(FIELDS)}"
            )
        inside_sample = any(value_at(sample, column) is not None for sample in samples)
        if not inside_sample and {column, any_element(column)}.isdisjoint(columns):
            raise InputError(
                f"there is no column {column!r} for {field}",
                found=_list_columns(columns),
                expected="one of these columns",
            )


def _marks(marked: Any, answer: Any) -> bool:
    """Say whether a cell names places or texts of an answer."""
    are_texts = isinstance(marked, str) and isinstance(answer, str) and not is_mask(marked)
    return is_mask_of(marked, answer) or (are_texts and marks_in_text(marked, answer) is not None)


def is_mask_of(marked: Any, answer: Any) -> bool:
    """Say whether a value is a number for each character or word of an answer."""
    is_one = isinstance(answer, str) and is_mask(marked)
    return is_one and mask_in(marked, answer) is not None


def _is_called_mask(column: str) -> bool:
    return "." not in column and _MASKS.issuperset(words_of(column).split())


def may_mark(marked: Any, answer: Any) -> bool:
    """Say whether a value is places or texts of an answer, or nothing."""
    parts = parse_list(marked)
    if is_missing(marked) or _marks(marked, answer):
        return True
    is_placed = isinstance(parts, list) and not is_mask(parts)
    return is_placed and all(
        p in answer if isinstance(p, str) else is_span(p) or is_extent(p) or is_quote(p)
        for p in parts
    )


def _is_str(value: Any) -> bool:
    return isinstance(value, str)


def _refuse_lists(column: str | None, samples: Samples) -> None:
    """Say so if a column that is called like a text holds lists of several."""
    values = [value_at(sample, column) for sample in samples] if column else []
    several = next((v for v in values if isinstance(v, list) and len(v) > 1), None)
    if several is not None:
        raise InputError(
            "the answer is a list of several",
            field=column,
            found=several,
            expected=f"one text a record; --column answer={column}.0 takes the first of a list",
        )


def _refuse_references(column: str | None, paths_found: Sequence[str]) -> None:
    """Say so if there are right answers and none of a model, as in a benchmark's questions."""
    if column is not None:
        raise InputError(
            "there are reference answers, and no answer of a model",
            field=column,
            found=_list_columns(paths_found),
            expected="a column with a model's answers, called model_answer or by the model's name, "
            f"or named by --column answer=COLUMN; --column 'answer={column}' takes the reference "
            "answers for a model's",
        )


def _list_columns(columns: Sequence[str]) -> str:
    return f"the columns {', '.join(map(repr, columns))}"


def _is_figure(column: str, values: Sequence[Any]) -> bool:
    """Say whether a column has what a metric came to, or the classes that were predicted."""
    are_classes = words_of(column).startswith("pred") and {"0", "1"}.issuperset(map(str, values))
    return are_classes or ("." in column and all(map(_is_number, values)))


def _is_number(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(part, int | float) for part in parts)


def _is_text(value: Any, column: str) -> bool:
    """Say whether a value is a text, a message or reply that has one, or the only one of a list."""
    if isinstance(value, list):
        is_one = len(value) == 1 and _is_text(value[0], column)
        return is_reply(value) or is_cited(value) or is_one
    return isinstance(value, str | int | float) or is_message(value) or is_reply(value)


def _is_question(value: Any, column: str) -> bool:
    if words_of(column).endswith("message") and not isinstance(value, str):
        return False  # a reply
    asked = asked_in(value)
    if words_of(column) == "context":
        return is_chat(asked)
    return _is_text(asked, column) or is_chat(asked)


def _is_reference(value: Any, column: str) -> bool:
    """Say whether a value is one or several texts; a number is a place or a score elsewhere."""
    if column.startswith("_"):
        return False  # says of Appen's units whether they are golden
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(part, str | int | float) for part in parts)


# A text that says something: the end of a sentence, or many words. What has neither is a name.
_SENTENCE: Final = re.compile(
    r"(\S+\s+){2}.*\w[.!?؟।][\s\"'»”)]*($|\s)|[。！？]|(\S+\s+){7}", re.DOTALL
)
_SOURCES: Final = frozenset(map(words_of, words_in("parts", "sources")))


def _is_evidence(value: Any, column: str) -> bool:
    """Say whether a value is texts or objects; of a source, a name without a sentence is none."""
    value = parse_list(value)
    texts = value if isinstance(value, list) else [value]
    if words_of(column.rpartition(".")[2]) in _SOURCES and all(map(_is_str, texts)):
        return not texts or any(map(_SENTENCE.search, texts))
    value = out_of_list(value)
    if is_chat(value):
        return False
    if isinstance(value, Mapping) and not has_text(value):
        value = list(value.values())  # texts by their titles
    parts = value if isinstance(value, list) else [value]
    texts = [has_text(as_passage(part)) for part in parts if not says_nothing(part)]
    return all(texts) and (bool(texts) or "." not in column)


def _is_marked(value: Any, column: str) -> bool:
    """Say whether a value is a list of extents or, by its name, of texts that an answer has."""
    parts = parse_list(value)
    words = words_of(column.rpartition(".")[2])
    if not parts and words in {"annotations", "entities"}:
        return False  # which of many things they are shows in what is in them
    if (
        "." in column
        and words == "label"
        and isinstance(parts, list)
        and any(map(is_extent, parts))
    ):
        return False  # those of parts in parts
    quoted = words in _QUOTES or not {"spans", "hallucinations"}.isdisjoint(words.split())
    return isinstance(parts, list) and all(
        (quoted and (isinstance(part, str) or is_quote(part))) or is_span(part) or is_extent(part)
        for part in parts
    )


def _is_talk(value: Any, column: str) -> bool:
    """Say whether a value is a chat in which a model answers; deep inside others, with roles."""
    if words_of(column) in HISTORIES and alternating(value):
        return True
    chat = asked_in(value) if "." in column else chat_in(value)
    return is_chat(chat) and bool(answers_in(chat))


def _is_model(value: Any, column: str) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME and "\n" not in value


_FITS: Final[dict[str, Callable[[Any, str], bool]]] = {
    "id": lambda value, _: isinstance(value, str | int),
    "lang": lambda value, _: (
        isinstance(value, str)
        and (_TAG.fullmatch(value) is not None or value.strip().lower() in LANGUAGES)
    ),
    "messages": _is_talk,
    "question": _is_question,
    "answer": _is_text,
    "reference": _is_reference,
    "passages": _is_evidence,
    "spans": _is_marked,
    "predictions": _is_marked,
    "model": _is_model,
}
