"""Records that JSON packs together, told apart: tables, objects by their ids, lists that are chats.

| a row, or all of them | its records |
| --- | --- |
| ``{"question": [q, …], "answer": [a, …]}`` | a row of this table each |
| ``{"columns": [name, …], "data": [[cell, …], …]}`` | … |
| ``{"question": {"0": q, …}, "answer": {"0": a, …}}`` | … |
| ``{"7": {"question": q, "answer": a}, …}`` | each object, with its key as id |
| ``{"prompt": {"text": q, "replies": [{"text": a, …}, …]}}`` | every message of the tree |
| ``{"dialog": 7, "turns": [{"question": q, "answer": a}, …]}`` | each turn |
| ``{"question": q, "answers": {"model-a": a, …}}`` | each answer, with its model |
| ``{"question": q, "outputs": [{"model": "a", "text": a}, …]}`` | … |
| ``["question", "answer"]``, then ``[q, a]`` | the lists behind the first, which names cells |
| ``[{"role": …, "content": …}, …]`` | the chat that it is |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product, zip_longest
from typing import Any, Final, TypeGuard

from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError
from spanlab.formats.cells import chat_in, is_mask
from spanlab.formats.chats import HOLDS, SAYS, answers_in, is_chat, pairs_apart, plain_chat
from spanlab.formats.columns import model_in, value_at, words_of
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.guess import NAMES, guess
from spanlab.formats.reader import parse_list
from spanlab.formats.verdict_columns import verdict_in, verdicts_in
from spanlab.formats.vocabulary import words_in

Row = Mapping[str, Any]

_ROWS: Final = ("data", "rows")  # where a table has its rows …
_HEADERS: Final = ("columns", "header", "headers")  # … and what their cells are called
_TABLE: Final = (_HEADERS, _ROWS)


def records_in(value: Any) -> list[Row]:
    """Return the records of a table, or of objects by their ids; none for another value.

    Such an object may be inside another one that is no record itself.

    Raises:
        InputError: the columns of a table differ in length.
    """
    if not is_object(value):
        return []
    held = (v for name, v in value.items() if not _is_of_answers(name) and is_object(v))
    inside = () if _names_answer(value) else held
    return next(filter(None, map(_records_of, (value, *inside))), [])


def is_packed(value: Any, unpack: Callable[[Any], list[Row]] = records_in) -> bool:
    """Say whether a value packs records together, also those of a table that is broken."""
    try:
        return bool(unpack(value))
    except InputError:
        return True


def is_row(value: list[Any]) -> bool:
    """Say whether a list is a record among others: the header of a table, or a chat."""
    return bool(_header(value)) or is_chat(plain_chat(value))


def _records_of(value: Row) -> list[Row]:
    if table := _table_in(value):
        return table
    inner = list(value.values())
    if not inner or not all(map(is_object, inner)):
        return []
    if tables := list(chain.from_iterable(map(_of_columns, inner))):
        return tables
    if len({frozenset(part) for part in inner}) == 1 and _names_answer(value):
        return [{name: column[row] for name, column in value.items()} for row in inner[0]]
    records: list[Row] = [{"id": name, **part} for name, part in value.items()]
    return records if _names_answer(set[str].intersection(*map(set, records))) else []


def _table_in(value: Any) -> list[Row]:
    """Return the rows of an object that is a table, a tree or a list; none for another value."""
    if not is_object(value):
        return []
    roots = value.get("messages", [value.get("prompt")])
    trees = roots if isinstance(roots, list) and any(map(_is_tree, roots)) else ()
    listed = list(chain.from_iterable(_in_tree(root, None) for root in trees))
    if listed := listed or _listed_in(value)[1]:
        return listed
    header, rows = (next((value[n] for n in names if n in value), None) for names in _TABLE)
    if not (isinstance(header, list) and isinstance(rows, list)):
        return _of_columns(value)
    named = [str(column.get("name") if is_object(column) else column) for column in header]
    return [dict(zip(named, row, strict=False)) for row in rows if isinstance(row, list)]


_REPLIES: Final = ("replies", "children")  # of OpenAssistant, which do not say to what; LibreChat


def _is_tree(message: Any) -> bool:
    """Say whether a message has those that reply to it in it."""
    replies = [message.get(name) for name in _REPLIES] if is_object(message) else []
    return any(isinstance(inner, list) and any(map(is_object, inner)) for inner in replies)


def _in_tree(message: Row, parent: Any) -> Iterator[Row]:
    """Yield a message of a tree, and all that reply to it."""
    own = {k: v for k, v in message.items() if k not in _REPLIES}
    yield {**own, "parent_id": parent} if "replies" in message else own
    for name in _REPLIES:
        for reply in message.get(name) or ():
            yield from _in_tree({name: [], **reply}, message.get("message_id"))


_ASKED: Final = frozenset(("question", "messages"))


def _listed_in(value: Row) -> tuple[str, list[Row]]:
    """Return records that are listed in one that has no answer of its own, with what it has.

    They are the turns of a talk, or what several models answered to its question. The name of
    the field that they are in stands before them; "" for none.
    """
    for name, listed in value.items():
        parts = _said_by_models(name, listed) or listed
        if not (isinstance(parts, list) and parts and all(map(is_object, parts))):
            continue
        around = {k: v for k, v in value.items() if k != name}
        inside = guess(list(parts[0]))
        own = guess(list(around))
        are_judged = any(map(_judges, parts[0].items()))
        are_models = ("model" in inside or are_judged) and _is_of_answers(name)
        is_asked = bool(_ASKED & (inside | (own if are_models else {})).keys())
        is_said = isinstance(parts[0].get(inside.get("answer", "")), str)  # DynamoDB's are objects
        if is_said and is_asked:
            base = around.pop(own.get("id", "id"), None)
            is_named = "model" in inside and are_models
            behind = ("" if is_named else f"-{n}" for n, _ in enumerate(parts, start=1))
            ids = ({} if base is None else {"id": f"{base}{number}"} for number in behind)
            rows: list[Row] = [{**around, **i, **part} for i, part in zip(ids, parts, strict=True)]
            is_one = "answer" in own or ("messages" in own and not are_models)
            return ("", []) if is_one else (name, rows)
    return "", []


def _judges(field: tuple[str, Any]) -> bool:
    """Say whether a field of an answer is a verdict on it, by its name and value."""
    return verdict_in(*field) is not None


def lists_records(value: Any) -> str:
    """Return the field in which a record lists several, with an answer each; "" for none."""
    return _listed_in(value)[0] if is_object(value) else ""


# Where answers of several models stand, by the last word of its name, …
_SAID: Final = frozenset(words_in("sides", "of_models"))
# … and words of what they are called, beside those of families of models.
_CALLED: Final = re.compile(
    r"(?i)(?<![a-z])(?:model|llm|system|baseline|bot|rag)(?![a-z])|^[\w.-]+/[\w.-]+$"
)


def _is_of_answers(name: str) -> bool:
    return words_of(name).rpartition(" ")[2] in _SAID


def _said_by_models(name: str, value: Any) -> list[Row]:
    """Return answers by the names of their models as a list; nothing for other values."""
    if not is_object(value) or not value or not _is_of_answers(name):
        return []
    are_texts = all(isinstance(text, str) for text in value.values())
    if are_texts and all(model_in(key) or _CALLED.search(key) for key in value):
        return [{"model": key, "answer": text} for key, text in value.items()]
    are_answers = all(is_object(part) and _names_answer(part) for part in value.values())
    return [{"model": key, **part} for key, part in value.items()] if are_answers else []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_SIDES: Final = tuple(product(("user", "human"), ("assistant", "ai", "bot")))
_OF_LMSYS: Final = ("prompt", "response")


def with_messages(record: Row) -> Row:
    """Return a record that is a turn as a chat; others as they are.

    That is one with what either side says, or an answer of MT-bench with its request, if joined.
    """
    for fields, chat in _turns_in(record):
        rest = {name: value for name, value in record.items() if name not in fields}
        return {**rest, "messages": chat}
    return record


def with_branch(record: Row) -> Row:
    """Return a chat of ChatGPT's with the reply that its user kept as the last, and its model."""
    nodes, current = record.get("mapping"), str(record.get("current_node"))
    if not isinstance(nodes, Mapping) or current not in nodes:
        return record
    kept = {current: nodes[current]}
    slug = value_at(kept, f"{current}.message.metadata.model_slug")
    model = {"model_slug": slug} if slug else {}
    return {**record, "mapping": {n: v for n, v in nodes.items() if n not in kept} | kept, **model}


def _turns_in(record: Row) -> Iterator[tuple[Sequence[str], Any]]:
    """Yield the fields that hold the turns of a chat, and the chat."""
    for sides in _SIDES:
        if all(isinstance(record.get(side), str) for side in sides):
            yield sides, pairs_apart([[record[side] for side in sides]])
    if is_chat(chat := plain_chat(record.get("responses"))):  # Grok's
        yield ("responses",), chat
    turns = [parse_list(record.get(name)) for name in _OF_LMSYS]
    if all(isinstance(texts, list) and texts and all(map(_is_text, texts)) for texts in turns):
        yield _OF_LMSYS, pairs_apart(list(map(list, zip(*turns, strict=False))))
    choices = record.get("choices")
    said = choices[0].get("turns") if isinstance(choices, list) and choices else None
    if isinstance(said, list):
        said = [turn.get("content") if is_object(turn) else turn for turn in said]  # Arena-Hard's
        asked = (record.get("request") or {}).get("turns") or []
        pairs = [list(pair) for pair in zip_longest(asked, said) if pair[1] is not None]
        yield ("choices", "request"), pairs_apart(pairs)


def with_labels_of_turn(record: Row, number: int = 0) -> tuple[Row, bool]:
    """Return a record with what its chat says of an answer, and whether it says so of another one.

    Args:
        record: with a list of messages, as ``{"role": …, "content": …, "hallucinated": true}``.
        number: the answer, from 1; 0 for the last one.
    """
    for name in filter(NAMES["messages"].__contains__, record):
        is_text = isinstance(record[name], str) and record[name][:1] not in ("[", "{")
        chat = () if is_text else chat_in(record[name])
        answers = answers_in(chat) if is_chat(chat) else ()
        labels = [_labels_in(chat[at]) for at in answers]
        if any(labels):
            own = labels.pop(number - 1)
            return {**own, **record}, any(labels)
    return record, False


def _labels_in(message: Row) -> Row:
    """Return the fields of a message that mark it, or judge it."""
    more = {k: v for k, v in message.items() if k not in (*SAYS, *HOLDS) and v is not None}
    return {
        name: value
        for name, value in more.items()
        if words_of(name) in _MARKS or is_mask(value) or verdicts_in(name, [value]) is not None
    }


def _of_columns(value: Row) -> list[Row]:
    """Return the rows of columns that are lists; what is none, every row has.

    Raises:
        InputError: columns of ours differ in length. A single answer may have lists beside it.
    """
    named = guess(list(value))
    lists = {name: cells for name, cells in value.items() if isinstance(cells, list)}
    answers = lists.get(named.get("answer", ""), [])
    is_whole = "question" not in named and len(lists) == len(value)
    asked = answers if is_whole else lists.get(named.get("question", ""), [])
    if not answers or not asked or not all(isinstance(text, str | None) for text in answers):
        return []
    sizes = {name: len(lists[name]) for name in named.values() if name in lists}
    if len(answers) == len(asked) == 1:
        return []
    if len(set(sizes.values())) > 1:
        field = next(name for name, size in sizes.items() if size != len(asked))
        raise InputError(
            "the columns of this table differ in length",
            field=field,
            found=", ".join(f"{name}: {size}" for name, size in sizes.items()),
            expected="a value for each answer; one record has a text as its answer",
        )
    columns = {name: cells for name, cells in lists.items() if len(cells) == len(answers)}
    return [
        {**value, **{name: cells[row] for name, cells in columns.items()}}
        for row in range(len(answers))
    ]


# What DynamoDB says of each value before it.
_TYPES: Final = frozenset(("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS"))


def untyped(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of DynamoDB, whose values say their types, as plain JSON; others as is."""
    inner = record["Item"] if record.keys() == {"Item"} else record
    if not (isinstance(inner, dict) and inner and all(map(_is_typed, inner.values()))):
        return record
    return {name: _untyped(value) for name, value in inner.items()}


def with_rows(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record whose columns of extents are lists of them, as Hugging Face has sequences.

    That is ``{"start": [1, 5], "end": [3, 9]}`` for two objects with a start and an end. Potato has
    a list of them under the name of its scheme; several names may be those of annotators.
    """
    return {name: _as_rows(value, name) for name, value in record.items()}


def _as_rows(value: Any, name: str) -> Any:
    if not (isinstance(value, Mapping) and value):
        return value
    if words_of(name) in _MARKS and _KINDS.issuperset(map(words_of, value)):
        return list(_by_kind(value))
    first = next(iter(value.values()))
    if len(value) == 1 and isinstance(first, list) and all(map(_has_place, first)):
        return first if first or words_of(name) == "spans" else value
    if not {"start", "end"} <= value.keys():
        return value
    if not all(isinstance(c, list) and len(c) == len(value["start"]) for c in value.values()):
        return value
    return [dict(zip(value, row, strict=True)) for row in zip(*value.values(), strict=True)]


_MARKS: Final = frozenset(words_in("parts", "marks"))
_KINDS: Final = frozenset(words_in("of_judged_parts", "kinds"))


def _by_kind(marked: Row) -> Iterator[Any]:
    """Yield marks that are listed by the kind of error, each with it as its label."""
    for kind, marks in marked.items():
        for mark in marks or ():
            yield {"label": kind, **mark} if is_object(mark) else [*mark[:2], kind]


def _has_place(mark: Any) -> bool:
    return isinstance(mark, Mapping) and {"start", "end"} <= mark.keys()


def _is_typed(value: Any) -> bool:
    return is_object(value) and len(value) == 1 and value.keys() <= _TYPES


def _untyped(value: Any) -> Any:
    if not _is_typed(value):
        return value
    ((kind, inner),) = value.items()
    match kind, inner:
        case "M", dict():
            return {name: _untyped(part) for name, part in inner.items()}
        case "L", list():
            return [_untyped(part) for part in inner]
        case "N", str():
            return from_json(inner)
    return None if kind == "NULL" else inner


def is_object(value: object) -> TypeGuard[Row]:
    """Say whether a JSON value is an object."""
    return isinstance(value, Mapping)


def _names_answer(names: Iterable[str]) -> bool:
    """Say whether one of some names is an answer's."""
    return "answer" in guess(sorted(names))


def apart(rows: Iterator[FileRow], file: InputFile) -> Iterator[FileRow]:
    """Yield the records of rows that are lists or tables, as the first one is; others as they are.

    One row alone may also be objects by their ids.
    """
    first = list(islice(rows, 2))
    all_rows = chain(first, rows)
    values = [row.readable for row in first]
    unpack = records_in if len(first) == 1 else _table_in
    if values and isinstance(values[0], list):
        header = _header(values[0])
        return (_as_object(row, header, file) for row in islice(all_rows, bool(header), None))
    if not values or not is_packed(values[0], unpack):
        return all_rows
    return chain.from_iterable(_rows_apart(row, file, unpack) for row in all_rows)


def _header(names: list[Any]) -> list[str]:
    """Return the list if it says what the cells of others are called; nothing otherwise."""
    is_header = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return names if is_header and _names_answer(names) else []


def _as_object(row: FileRow, header: Sequence[str], file: InputFile) -> FileRow:
    """Return a list as the record that it is: cells with names, or a chat."""
    value = row.readable
    if not isinstance(value, list):
        return row
    if header:
        record = dict(zip(header, value, strict=False))
    elif is_chat(plain_chat(value)):
        record = {"messages": value}
    else:
        return row
    return file.row(row.line, to_json(record), row.unit, row.number)


def _rows_apart(
    row: FileRow, file: InputFile, unpack: Callable[[Any], list[Row]]
) -> Iterator[FileRow]:
    try:
        records = unpack(row.readable)
    except InputError as error:
        yield row._replace(refused=error)
        return
    if not records:
        yield row
    for record in records:
        yield file.row(row.line, to_json(record), row.unit, row.number)
