"""Tables of promptfoo, with the answers of several models beside each other.

A column of answers is called "[provider] prompt". What was said of an answer follows it, in columns
that are called alike for each, or stands before its text as "[PASS] ". Such a row is as many
records as it has answers, of one question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from spanlab.formats.columns import PROVIDER

MODEL, PROMPT, ANSWER, STATUS = "provider", "prompt", "output", "Status"
_FAILED: Final = "ERROR"  # the status of a call that failed: its text is the error
_VARIABLE: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")  # of a prompt, with a column of its own
_GRADED: Final = re.compile(r"\[(PASS|FAIL|ERROR)\] ")
_NUMBER: Final = re.compile(r"\.\d+$")  # behind a name that stands more than once


def answers_in(columns: Sequence[str]) -> list[int]:
    """Return the places of the columns of answers; none for a table of another program."""
    places = [place for place, name in enumerate(columns) if PROVIDER.match(name)]
    is_one = len(places) == 1 and STATUS in columns[places[0] + 1 : places[0] + 2]
    return places if is_one or len(places) > 1 else []


def columns_apart(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that the records of such a table have."""
    first, second = [*answers_in(columns), len(columns)][:2]
    own = ("id", MODEL, PROMPT, ANSWER, STATUS)
    return tuple(dict.fromkeys((*columns[:first], *own, *columns[first + 1 : second])))


def records_apart(cells: Mapping[str, object], name: str) -> Iterator[dict[str, object]]:
    """Yield the records of a row.

    Args:
        cells: the row by its columns, in their order.
        name: the id of its records, if no column has one; the import puts the model behind it. A
            number tells records of one model apart, whose prompts differ.
    """
    columns = list(cells)
    places = answers_in(columns)
    shared = {column: cells[column] for column in columns[: places[0]]}
    counts: Counter[str] = Counter()
    for place, end in zip(places, [*places[1:], len(columns)], strict=True):
        provider, template = _parts(columns[place])
        prompt = _VARIABLE.sub(lambda found: str(shared.get(found[1], found[0])), template)
        counts[provider] += 1
        behind = f"-{counts[provider]}" if counts[provider] > 1 else ""
        status, answer = _graded(str(cells[columns[place]]))
        own = {"id": f"{name}{behind}", **shared, MODEL: provider, PROMPT: prompt, STATUS: status}
        own |= {_NUMBER.sub("", c): cells[c] for c in columns[place + 1 : end]}
        yield own | {ANSWER: None if own[STATUS] == _FAILED else answer}


def _graded(text: str) -> tuple[str, str]:
    """Return the status before a text, as earlier versions write it, and the text."""
    grade = _GRADED.match(text)
    return (grade[1], text[grade.end() :]) if grade else ("", text)


def _parts(column: str) -> tuple[str, str]:
    named = PROVIDER.match(column)
    return (named[1], column[named.end() :]) if named else ("", column)
