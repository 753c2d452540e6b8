"""Columns of other people's tables and paths into their JSON, mapped to our fields.

Names are compared by their words: ``LLM_output``, ``llmOutput`` and ``LLM output`` are one name.
The table of names is here; what holds no text is no answer, whatever it is called.

A path goes through objects by their keys and through lists by a number, or by a key of all their
elements. A key that itself holds dots is found as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Final

from spanlab.base.errors import InputError, UsageError
from spanlab.formats.cells import (
    asked_in,
    chat_in,
    is_cited,
    is_extent,
    is_quote,
    is_reply,
    is_span,
    marks_in_text,
)
from spanlab.formats.chats import (
    HOLDS,
    alternating,
    answers_in,
    is_chat,
    is_message,
    is_said_by_model,
)
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
from spanlab.formats.verdict_words import are_verdicts
from spanlab.formats.vocabulary import all_words, words_in

BATCH_ID: Final = "custom_id"  # what OpenAI and Anthropic call the id of a batch's request

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[\W_]+")


@lru_cache(1 << 17)
def words_of(name: str) -> str:
    """Return the words of a column's name in small letters, with a space between."""
    return " ".join(_BETWEEN.split(_CAMEL.sub(" ", name).lower())).strip()


_QUOTES: Final = words_in("parts", "quotes")  # what is wrong in an answer, in its words
# Where a dialogue stands whose last turn is answered in a field of its own.
HISTORIES: Final = words_in("parts", "histories")
_MARKS: Final = frozenset(
    ("spans", "hallucinations", "hallucination spans", "hallucination labels", *_QUOTES)
)
# Names by their words, the likeliest first.
COMMON: Final[dict[str, tuple[str, ...]]] = {
    field: tuple(name for name in map(words_of, names) if field != "answer" or name not in _QUOTES)
    for field, names in all_words("columns").items()
}
_SUMMARIES: Final = ("summary", "summaries")  # of what stands in "text"
_SEVERAL: Final = frozenset(("response", "responses", "output", "outputs", "machine summaries"))

_KNOWN: Final = {"answer": "answer or response or output or LLM output"}  # as an error names them
FIELDS: Final = (
    *("id", "lang", "question", "answer", "passages", "spans", "messages", "reference", "model"),
    "predictions",
)

# What stands in these is said of an answer, and is not one; or was given to a model, or found for
# it: whole names, as "request response" holds both.
_ASIDE: Final = frozenset(words_in("inside", "said_of_answers"))
_GIVEN: Final = frozenset(words_in("inside", "given_to_models"))


def is_given(path: str) -> bool:
    """Say whether what stands at a path was given to a model, or found for it, by its name."""
    return not _GIVEN.isdisjoint(map(words_of, path.split(".")))


_SHOWN: Final = re.compile("(?i:input)[.:](.+)")  # to workers of Mechanical Turk or Toloka
PROVIDER: Final = re.compile(r"\[([^\]]+)\] ")
_FAMILIES: Final = (
    r"(?:chatgpt|gpt|claude|gemini|gemma|bard|palm|llama|vicuna|alpaca|mistral|mixtral|qwen|"
    r"deepseek|falcon|grok|phi|chatglm|davinci|olmo|granite|kimi|cohere|openai|"
    r"anthropic)(?=[\d ]|$)"
)
_FAMILY: Final = re.compile(_FAMILIES)
_FAMILY_ALONE: Final = re.compile(
    _FAMILIES + r"\d*(?: ?(?:\w*\d\w*|turbo|mini|nano|pro|flash|ultra|sonnet|opus|haiku|chat|"
    r"instruct|large|medium|small|preview|it|hf|base|coder|r))*"
)
_ANSWERS: Final = words_in("parts", "answers")
_OF_ANSWER: Final = re.compile(
    rf"(?:(?<=[\W_])|^)(?:{'|'.join(words_in('parts', 'answers'))})(?=[\W_]|$)", re.IGNORECASE
)
_LONGEST_NAME: Final = 200  # characters of a model's name
_CITED: Final = re.compile(r"\[\d+\]")
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


def map_columns(
    paths_found: Sequence[str],
    user_columns: Mapping[str, str] | None,
    *,
    needed: str | None = "answer",
    samples: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Return for each of our fields the column that holds it.

    Args:
        paths_found: the columns that are there.
        user_columns: what the user said; the remaining fields are found by common names.
        needed: the field that must be there, where a chat stands for the answer; None for none.
        samples: some records, by what stands in which a column is no guess for a field.

    Raises:
        UsageError: the user names a field that we do not have.
        InputError: a column that the user names, or that of ``needed``, is not there.
    """
    mapping: dict[str, str] = {}
    for field, column in (user_columns or {}).items():
        if field not in COMMON:
            raise UsageError(
                f"no field {field!r} to map a column to; known are {', '.join(FIELDS)}"
            )
        inside_sample = any(value_at(sample, column) is not None for sample in samples)
        if not inside_sample and not {column, any_element(column)} & set(paths_found):
            raise InputError(
                f"there is no column {column!r} for {field}",
                found=_list_columns(paths_found),
                expected="one of these columns",
            )
        mapping[field] = column
    if not user_columns:
        mapping |= columns_of_known(paths_found)
    for field in COMMON:
        used_columns = mapping.values()
        free = [
            path
            for path in paths_found
            if not any(f"{path}.".startswith(f"{t}.") for t in used_columns)
        ]
        if field in mapping:
            continue
        if field == "reference":  # verdicts on answers that say more than a verdict are none
            free = [path for path in free if not _judges(path, mapping.get("answer"), samples)]
        guess = _guess(field, free, samples) or _guess_beside(field, free, mapping, samples)
        if guess is not None:
            mapping[field] = guess
    if needed is not None and needed not in mapping and "messages" not in mapping:
        _refuse_lists(_guess(needed, paths_found, ()), samples)
        _refuse_references(mapping.get("reference"), paths_found)
        raise InputError(
            f"no column for {needed}",
            found=_list_columns(paths_found),
            expected=f"one named {_KNOWN[needed]}, or a mapping {needed}=COLUMN (--column)",
        )
    return mapping


def _judges(column: str, answer: str | None, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a column has verdicts as words, and answers are other texts."""
    said = [
        [value for sample in samples if not is_missing(value := value_at(sample, path))]
        for path in (column, answer)
        if path
    ]
    are_said = [bool(values) and are_verdicts(values) for values in said]
    return are_said == [True, False]


def _guess_beside(
    field: str,
    free: Sequence[str],
    mapping: Mapping[str, str],
    samples: Sequence[Mapping[str, Any]],
) -> str | None:
    """Return the column that is a field's because of what others hold; None if none is."""
    named = {words_of(path): path for path in reversed(free)}
    answer = mapping.get("answer")
    answers = [value_at(sample, answer) if answer else None for sample in samples]
    if field == "passages":
        if words_of(answer or "").endswith(_SUMMARIES):
            return named.get("text")
        if words_of(mapping.get("question", "")) == "instruction":
            return named.get("input")
        column = named.get("references")
        listed = [v for sample in samples if column and (v := value_at(sample, column))]
        are_objects = bool(listed) and all(map(_are_objects, listed))
        are_cited = any(isinstance(a, str) and _CITED.search(a) for a in answers) and bool(listed)
        fits = column and (are_objects or are_cited) and _can_hold(field, column, samples)
        return column if fits else None
    for words in _MARKS & named.keys() if field == "spans" else ():
        values = [value_at(sample, named[words]) for sample in samples]
        pairs = [(v, a) for v, a in zip(values, answers, strict=True) if not is_missing(v)]
        marking = sum(
            isinstance(v, str) and isinstance(a, str) and marks_in_text(v, a) is not None
            for v, a in pairs
        )
        if pairs and 2 * marking >= len(pairs):
            return named[words]
    return None


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, Mapping) for part in value)


def unread_marks(mapping: Mapping[str, str], samples: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the column that is called like marks, holds objects, and is read as nothing."""
    for column in dict.fromkeys(chain.from_iterable(samples)):
        values = [value for sample in samples if isinstance(value := sample.get(column), list)]
        is_called = words_of(column) in _MARKS and column not in mapping.values()
        if is_called and any(isinstance(part, Mapping) for value in values for part in value):
            return column
    return None


def _refuse_lists(column: str | None, samples: Sequence[Mapping[str, Any]]) -> None:
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


def model_in(column: str) -> str | None:
    """Return the model that a column is named by: "[openai:gpt-x] prompt", "gpt-4o answer"."""
    if named := PROVIDER.match(column):
        return named[1]
    noun = _OF_ANSWER.search(column)
    if noun and noun.start() and _BETWEEN.sub("", _OF_ANSWER.sub("", column[noun.end() :])):
        return None  # samples of it, or scores
    name = (column[: noun.start()] + column[noun.end() :] if noun else column).strip("_-. ")
    words = " ".join(_BETWEEN.split(name.lower()))  # ChatGPT is one word
    is_model = _FAMILY.match(words) if noun else _FAMILY_ALONE.fullmatch(words)
    return name if is_model else None


def _list_columns(columns: Sequence[str]) -> str:
    return f"the columns {', '.join(map(repr, columns))}"


def _guess(
    field: str, paths_found: Sequence[str], samples: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the column that is likeliest a field's; None if none is likely."""
    if field == "answer" and samples and all(map(is_said_by_model, samples)):
        return next((name for name in HOLDS if name in samples[0]), None)
    named: dict[str, list[str]] = {}
    for words, column in _names(paths_found, field):
        named.setdefault(words, []).append(column)
    for name in COMMON[field]:
        for column in named.get(name, ()):
            if _can_hold(field, column, samples):
                return column
            if name in _SEVERAL and field == "answer" and _are_several(column, samples):
                return None  # what has a weaker name is what the answers are about
    if field == "answer":  # some name a column of answers by its model
        by_model = next((column for column in paths_found if model_in(column)), None)
        if by_model is not None:
            return by_model
    if field not in {"id", "lang", "question", "answer"}:
        return None
    likely = (column for name in COMMON[field] for column in reversed(named.get(name, ())))
    return next((c for c in likely if "." not in c and _is_empty(c, samples)), None)


def _names(columns: Sequence[str], field: str) -> Iterator[tuple[str, str]]:
    """Yield columns by the words of their paths, then of the ends of these, outermost first.

    An id or a language inside something is that thing's; what stands under "expected" or "scores"
    is no answer, but may be the reference, and what stands under "request" is none either.
    """
    are_shown = any(words_of(column).endswith("worker id") for column in columns)
    for column in columns:
        yield words_of(column), column
        if are_shown and (shown := _SHOWN.fullmatch(column)):
            yield words_of(shown[1]), column
    if field in {"id", "lang"}:
        return
    inner = [(column.split("."), column) for column in columns if "." in column]
    for path, column in sorted(inner, key=lambda pair: len(pair[0])):
        outer = [words_of(part) for part in path[:-1]]
        if field == "answer" and not _GIVEN.isdisjoint(outer) and words_of(path[-1]) != "response":
            continue
        if field == "reference" or _ASIDE.isdisjoint(" ".join(outer).split()):
            for count in range(1, len(path)):
                yield words_of(" ".join(path[count:])), column


def _are_several(column: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether a column holds lists of texts."""
    values = [sample.get(column) for sample in samples]
    are_texts = [
        isinstance(v, list) and len(v) > 1 and all(isinstance(t, str) for t in v) for v in values
    ]
    return bool(values) and all(are_texts)


def _is_empty(column: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    return all(is_missing(value_at(sample, column)) for sample in samples)


def _can_hold(field: str, column: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether what stands in a column can be a field's; always so without samples."""
    if not samples:
        return True
    values = [value_at(sample, column) for sample in samples]
    values = [value for value in values if not is_missing(value)]
    if not values:
        return False
    if field == "id" and words_of(column) != "id" and len(set(map(str, values))) < len(values):
        return False
    if field == "answer" and _is_figure(column, values):
        return False
    if words_of(column) == "labels" and not any(map(parse_list, values)):
        return False  # of what kind they are is not to be seen
    # A wrong record is one to be told of, and no other column.
    return 2 * sum(_FITS[field](value, column) for value in values) >= len(values)


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
    if isinstance(value, str) and words_of(column) in _SOURCES:
        return bool(_SENTENCE.search(value))
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
    words = words_of(column)
    if not parts and words in {"annotations", "entities"}:
        return False  # which of many things they are shows in what is in them
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
    "predictions": lambda value, column: bool(value) and _is_marked(value, column),
    "model": _is_model,
}

_MOST: Final = 200  # fields that are offered
_DEEPEST = 6  # levels that are offered; a path that is written out may go deeper


def paths(record: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the paths of a record's values, those of lists by their first element."""
    for key, value in record.items():
        path = f"{prefix}{key}"
        yield path
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, Mapping) and depth < _DEEPEST:
            yield from paths(inner, f"{path}.", depth + 1)


def columns_of(samples: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the paths of the fields of some records: all outer ones, of what is inside some."""
    columns: dict[str, None] = {}
    for sample in samples:
        columns |= dict.fromkeys(paths(sample))
    outer = dict.fromkeys(name for sample in samples for name in sample)
    first = dict.fromkeys(islice(columns, _MOST))
    return tuple(name for name in columns if name in first or name in outer)


def any_element(path: str) -> str:
    """Return a path without the numbers that choose elements of lists: ``a.0.b`` is ``a.b``."""
    return ".".join(part for part in path.split(".") if not part.isdecimal())


def value_at(record: Any, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    if isinstance(record, Mapping):
        if path in record:
            return record[path]
        key, dot, rest = path.partition(".")
        return value_at(record[key], rest) if dot and key in record else None
    if not isinstance(record, list):
        return None
    key, _, rest = path.partition(".")
    if key.isdecimal():
        inner = record[int(key)] if int(key) < len(record) else None
        return value_at(inner, rest) if rest else inner
    values = [value_at(row, path) for row in record]
    return [value for value in values if value is not None] or None


def without(record: Mapping[str, Any], used: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Return a record without the values at some paths, and without empty values."""
    remaining = {}
    for key, value in record.items():
        path = f"{prefix}{key}"
        if path in used or value is None or value == "":
            continue
        inside = any(used_path.startswith(f"{path}.") for used_path in used)
        remaining_value = _inside(value, used, f"{path}.") if inside else value
        if not inside or remaining_value:
            remaining[key] = remaining_value
    return remaining


def _inside(value: Any, used: Collection[str], prefix: str) -> Any:
    if isinstance(value, Mapping):
        return without(value, used, prefix)
    if not isinstance(value, list):
        return value
    places = ((element, f"{prefix}{index}") for index, element in enumerate(value))
    unused = (_inside(element, used, f"{place}.") for element, place in places if place not in used)
    remaining = [_inside(element, used, prefix) for element in unused]
    return remaining if any(remaining) else []
