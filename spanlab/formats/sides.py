"""Several answers to one question in one record, as preferences and comparisons hold them.

"chosen" and "rejected"; "response_a" and "response_b" with "model_a" and "model_b";
"output_1", "output_2", … Each side becomes a record with all that the sides share. Passages in
numbered columns ("context_1", "context_2", …) become one list.

In promptfoo's tables a column of answers is called "[provider] prompt". What was said of an answer
follows it, in columns that are called alike for each, or stands before its text as "[PASS] ".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from spanlab.formats.cells import chat_in
from spanlab.formats.chats import is_chat, is_user
from spanlab.formats.columns import PROVIDER, model_in, words_of
from spanlab.formats.guess import NAMES, guess
from spanlab.formats.vocabulary import words_in

_OPPOSITES: Final = tuple(zip(*(words_in("sides", side) for side in ("one", "other")), strict=True))
_LETTERS: Final = tuple("abcdefgh")
_NUMBERS: Final = tuple(map(str, range(20)))
_NUMBERED: Final = re.compile(r"(?<=[a-z])(?=\d+$)")
_SIDE, _CHAT, _MODEL = "side", "messages", "model"
_BY_MODEL: Final = "model answer"  # what is called by the models that said it
_WEAK: Final = frozenset(("text", "result", "generated", "predicted", "choices message content"))
_ANSWERS: Final = (*(name for name in NAMES["answer"] if name not in _WEAK), "")
_CHATS: Final = ("messages", "conversation", "conversations", "dialogue", "dialog", "chat")


class Sides(NamedTuple):
    """Which columns say the same of different answers.

    Args:
        answers: what a column is called without its side → side → the column. A side that is a
            model is called by its name.
        passages: what columns of passages are called without their numbers → the columns.
        repeats: columns that one of the sides is repeated in.
    """

    answers: Mapping[str, Mapping[str, str]]
    passages: Mapping[str, Sequence[str]]
    repeats: Sequence[str] = ()

    @property
    def sources(self) -> Mapping[str, str]:
        """The columns of the file that each column of the records is made of."""
        sides = {base: ", ".join(columns.values()) for base, columns in self.answers.items()}
        if "" in sides:
            said = ", ".join((sides[""], *self.repeats))
            sides |= {_CHAT: said, "answer": said}
        return sides | {base: ", ".join(columns) for base, columns in self.passages.items()}

    def apart(self, record: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a record.

        Args:
            record: with the columns that were looked at.
            name: its id if no column has one. The side is put behind it, unless models differ.
        """
        used = {column for sides in self.answers.values() for column in sides.values()}
        used |= {column for columns in self.passages.values() for column in columns}
        shared = {column: value for column, value in record.items() if column not in used}
        for base, columns in self.passages.items():
            shared[base] = [text for column in columns if (text := record.get(column))]
        if not self.answers:
            yield shared
            return
        id_column = guess(tuple(shared)).get("id", "id")
        models = [record.get(column) for column in self.answers.get(_MODEL, {}).values()]
        are_models = len(set(map(str, models))) == len(models) > 0
        for side in next(iter(self.answers.values())):
            own = {
                base: record.get(columns.get(side, "")) for base, columns in self.answers.items()
            }
            if (said := own.pop("", None)) is not None:
                own[_CHAT if _is_talk(said) else "answer"] = said
            known = shared.get(id_column) or name
            is_model = _BY_MODEL in self.answers
            yield {
                **shared,
                id_column: known if are_models or is_model else f"{known}-{side}",
                **own,
                _MODEL if is_model else _SIDE: side,
            }


def _is_talk(value: Any) -> bool:
    """Say whether a value is a chat with a question, and not an answer alone."""
    chat = chat_in(value)
    return is_chat(chat) and any(map(is_user, chat))


def sides_in(columns: Sequence[str]) -> Sides:
    """Return the sides that columns, or fields of a record, have; empty for one answer."""
    if models := _models_in(columns):
        return models
    for marks in (*_OPPOSITES, _LETTERS, _NUMBERS):
        grouped = _grouped(columns, marks)
        answers = [base for base in grouped if base in (*_ANSWERS, *_CHATS)]
        if not answers or ("" in answers and marks not in _OPPOSITES):
            continue
        marked = {column for sides in grouped.values() for column in sides.values()}
        plain = guess([c for c in columns if c not in marked])
        if marks in _OPPOSITES or not {"answer", "messages"} & plain.keys():
            repeats = [column for column in columns if column == _CHAT]  # the chosen one again
            groups = {_named(base): grouped[base] for base in _first(grouped, answers)}
            return Sides(groups, {}, repeats)
    passages = {
        base: tuple(sides.values())
        for base, sides in _grouped(columns, _NUMBERS).items()
        if base in NAMES["passages"] and base not in map(words_of, columns)
    }
    return Sides({}, {_named(base): columns for base, columns in passages.items()})


def _models_in(columns: Sequence[str]) -> Sides | None:
    """Return columns of answers that are called by different models; None without several."""
    models = {column: model for column in columns if (model := model_in(column))}
    names = {words_of(model): model for model in models.values()}
    if len(names) < 2 or any(map(PROVIDER.match, models)):
        return None
    beside = _grouped([column for column in columns if column not in models], tuple(names))
    answers = {model: column for column, model in models.items()}
    said = {
        base: {names[words]: column for words, column in sides.items()}
        for base, sides in beside.items()
    }
    return Sides({_BY_MODEL: answers, **said}, {})


def _first(grouped: Mapping[str, Mapping[str, str]], answers: Sequence[str]) -> list[str]:
    """Return the groups that have the sides of the answers, those of the answers first."""
    sides = set(grouped[answers[0]])
    return [*answers, *(b for b in grouped if b not in answers and set(grouped[b]) <= sides)]


def _named(base: str) -> str:
    return base.replace(" ", "_")


def _grouped(columns: Sequence[str], marks: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the columns that have a mark before or behind what several have in common."""
    found: dict[str, dict[str, str]] = {}
    longest_first = sorted(marks, key=len, reverse=True)
    begins, ends = tuple(f"{mark} " for mark in marks), tuple(f" {mark}" for mark in marks)
    for column in columns:
        words = _NUMBERED.sub(" ", words_of(column))
        if not (f"{words} ".startswith(begins) or words.endswith(ends)):
            continue  # as nearly all
        mark = next(
            m for m in longest_first if f"{words} ".startswith(f"{m} ") or words.endswith(f" {m}")
        )
        base = words.removeprefix(mark).removesuffix(f" {mark}").strip()
        found.setdefault(base, {}).setdefault(mark, column)
    order = list(marks)
    return {
        base: dict(sorted(sides.items(), key=lambda side: order.index(side[0])))
        for base, sides in found.items()
        if len(sides) > 1
    }


_PROVIDER, _PROMPT, _OUTPUT, _STATUS = "provider", "prompt", "output", "Status"
_FAILED: Final = "ERROR"  # the status of a call that failed: its text is the error
_VARIABLE: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")  # of a prompt, with a column of its own
_GRADED: Final = re.compile(r"\[(PASS|FAIL|ERROR)\] ")
_REPEATED: Final = re.compile(r"\.\d+$")  # behind a name that stands more than once


class SideBySide(NamedTuple):
    """The places of the columns of answers in a table."""

    places: Sequence[int]
    sources: Mapping[str, str] = {}  # as each record has the columns that the table has

    def apart(self, cells: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a row.

        Args:
            cells: the row by its columns, in their order.
            name: the id of its records, if no column has one; the import puts the model behind it.
                A number tells records of one model apart, whose prompts differ.
        """
        columns = list(cells)
        shared = {column: cells[column] for column in columns[: self.places[0]]}
        counts: Counter[str] = Counter()
        for place, end in zip(self.places, [*self.places[1:], len(columns)], strict=True):
            provider, template = _parts(columns[place])
            prompt = _VARIABLE.sub(lambda found: str(shared.get(found[1], found[0])), template)
            counts[provider] += 1
            behind = f"-{counts[provider]}" if counts[provider] > 1 else ""
            status, answer = _graded(str(cells[columns[place]] or ""))
            own = {"id": f"{name}{behind}", **shared, _PROVIDER: provider, _PROMPT: prompt}
            own |= {_STATUS: status} | {
                _REPEATED.sub("", c): cells[c] for c in columns[place + 1 : end]
            }
            yield own | {_OUTPUT: None if own[_STATUS] == _FAILED else answer}


def side_by_side(columns: Sequence[str]) -> SideBySide | None:
    """Return where the answers stand; None for a table of another program."""
    places = [place for place, name in enumerate(columns) if PROVIDER.match(name)]
    is_one = len(places) == 1 and _STATUS in columns[places[0] + 1 : places[0] + 2]
    return SideBySide(places) if is_one or len(places) > 1 else None


def _graded(text: str) -> tuple[str, str]:
    """Return the status before a text, as earlier versions write it, and the text."""
    grade = _GRADED.match(text)
    return (grade[1], text[grade.end() :]) if grade else ("", text)


def _parts(column: str) -> tuple[str, str]:
    named = PROVIDER.match(column)
    return (named[1], column[named.end() :]) if named else ("", column)


@lru_cache(maxsize=4)
def packing_in(columns: tuple[str, ...]) -> Sides | SideBySide | None:
    """Return how columns hold several answers; None for one answer."""
    sides = side_by_side(columns) or sides_in(columns)
    return sides if any(sides) else None
