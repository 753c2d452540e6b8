"""Reading a record's mapped fields: answers, questions, passages, labels, and chats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from spanlab.base.errors import InputError
from spanlab.formats.chats import (
    ChatTurn,
    alternating,
    answers_in,
    is_chat,
    is_message,
    pairs_apart,
    plain_chat,
    text_of_message,
    transcript,
    turn_of,
    turn_without_answer,
)
from spanlab.formats.columns import words_of
from spanlab.formats.quotes import find_quote, span_at
from spanlab.formats.reader import (
    NoAnswer,
    as_passage,
    has_text,
    input_error,
    parse_list,
    parse_object,
    passages_of,
    text_of,
    whole,
    within,
)
from spanlab.formats.verdict_words import NO, UNDECIDED, VERDICTS, YES, plain_word
from spanlab.formats.vocabulary import all_words, words_in
from spanlab.schema import Annotation, AnnotatorKind, Claim, Passage, Probability, Span


class _GivenSpan(BaseModel):
    model_config = ConfigDict(frozen=True)

    start: int
    end: int
    text: str | None = None
    prob: Probability = 1.0
    label: str | None = None
    note: str | None = None


def is_extent(value: object) -> bool:
    """Say whether a value is ``[start, end]``, with a label or probability behind it or not."""
    if not isinstance(value, list) or len(value) not in (2, 3):
        return False
    are_places = all(type(whole(place)) is int for place in value[:2])  # and no truth value
    return are_places and all(isinstance(more, str | int | float) for more in value[2:])


def _as_extent(value: object) -> object:
    if isinstance(value, list) and len(value) in (2, 3):
        more = "label" if isinstance(value[-1], str) else "prob"
        return dict(zip(("start", "end", more), value, strict=False))
    if not isinstance(value, dict):
        return value
    if isinstance(inner := value.get("span"), dict):  # PubAnnotation
        value = {**value, **inner}
    found = {
        ours: next((v for v in map(value.get, names) if isinstance(v, _PLAIN) and v != ""), None)
        for ours, names in _AS.items()
    }
    named = {**value, **{ours: known for ours, known in found.items() if known is not None}}
    start, text = named.get("start"), named.get("text")
    if "end" not in named and isinstance(start, int) and isinstance(text, str):  # factgenie
        named["end"] = start + len(text)
    if isinstance(named.get("label"), int):  # the number of a category, as of factgenie
        named["label"] = str(named["label"])
    return named


_PLAIN: Final = (str, int, float)

# What others call the fields of a span: RAGTruth, doccano, LettuceDetect, factgenie, spaCy, UIMA.
_AS: Final = all_words("spans")


def is_span(value: object) -> bool:
    """Say whether a value is an object with a span's place, by any of its names."""
    place = _as_extent(value) if isinstance(value, dict) else None
    return isinstance(place, dict) and {"start", "end"} <= place.keys()


def is_place_of(value: object, text: object) -> bool:
    """Say whether a value is an object with the place of a text, which is as long as that says."""
    place = _as_extent(value)
    if not isinstance(place, dict) or not isinstance(text, str) or place.get("text") != text:
        return False
    edges = [str(place.get(name)) for name in ("start", "end")]
    return all(map(str.isdecimal, edges)) and int(edges[1]) - int(edges[0]) == len(text)


_Spans = tuple[Annotated[_GivenSpan, BeforeValidator(_as_extent)], ...]
_SPANS: TypeAdapter[_Spans] = TypeAdapter(_Spans)


def turn_in(theirs: Mapping[str, Any], names: Mapping[str, str], number: int) -> ChatTurn | None:
    """Return the turn of a chat that a record is; None if it has none.

    Args:
        theirs: our field → what stands in its column.
        names: our field → the column.
        number: the turn, from 1; 0 for the last one.
    """
    field = "question" if theirs.get("messages") is None else "messages"
    asked = question_in(theirs.get("question")) if theirs.get("answer") else ""
    chat = (asked_in if field == "question" else chat_in)(theirs.get(field))
    if field == "messages" and theirs.get("answer"):
        chat = alternating(chat, "assistant" if asked else "user") or chat
    if field == "question" and not is_chat(chat):
        return None
    if names.get("messages") == "history" and asked:
        chat = [*(chat or ()), {"role": "user", "content": asked}]
    if theirs.get("answer") is not None and is_chat(chat) and _awaits_answer(chat):
        return turn_without_answer(chat)
    return turn_of(chat, names[field], number - 1 if number else None)


def _awaits_answer(chat: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether somebody other than the model has the last word in a chat."""
    last = max(answers_in(chat), default=-1)
    return last < 0 or any(is_message(turn) for turn in chat[last + 1 :])


_ASKS: Final = ("messages", "contents", "input", "prompt")  # where a model's API is asked


def asked_in(value: Any) -> Any:
    """Return the chat or text that a model's API is asked in a request, possibly JSON as a text.

    Any other value is returned as it is, a list as a text parsed.
    """
    value = parse_list(value)
    request = parse_object(value)
    if not isinstance(request, Mapping) or is_message(request):
        return plain_chat(value)
    return plain_chat(next((request[name] for name in _ASKS if request.get(name)), value))


def chat_in(value: Any) -> Any:
    """Return the chat that is in a value, also as one text with who speaks; others as they are."""
    chat = pairs_apart(asked_in(value))
    return (transcript(chat) or chat) if isinstance(chat, str) else chat


_PRINTED: Final = frozenset(("predictions", "resps", "filtered_resps"))  # lists, also in a text


def answer_in(value: Any, column: str) -> str | None:
    """Return a value as an answer: of messages the last one's, of a list its only element.

    Returns:
        The text; None if there is none.

    Raises:
        InputError: it is a list of several values.
    """
    value = parse_list(value) if column.lower() in _PRINTED else value
    value = plain_chat(_parse_object(value))
    if is_chat(value):
        return turn_of(value, column).answer
    if isinstance(value, list) and value and all(map(_is_part, value)):
        return text_of_reply(value) or None
    if is_cited(value):
        return " ".join(part["text"].strip() for part in value)
    if isinstance(value, list) and len(value) > 1:
        raise InputError(
            "the answer is a list",
            field=column,
            found=value,
            expected=f"one text; --column answer={column}.0 takes the first of a list",
        )
    if isinstance(value, list):
        return answer_in(value[0], column) if value else None
    if is_message(value):
        return text_of_message(value)
    text = text_of_reply(value)
    if not text and isinstance(value, Mapping) and _OF_REPLIES & value.keys():
        raise NoAnswer("the model's reply has no text", field=column)
    return text or text_of(value)


def _parse_object(value: Any) -> Any:
    """Return the message or reply that a text is in JSON; any other value as it is."""
    parsed = parse_list(parse_object(value))
    return parsed if is_message(parsed) or is_chat(parsed) or is_reply(parsed) else value


# Where a reply of a model's API, or of a program around one, has its text: OpenAI, Anthropic,
# Google, LangChain, and what wraps their replies in files of batches.
_REPLIES: Final = words_in("replies", "texts")
_OF_REPLIES: Final = frozenset(words_in("replies", "marks"))


def is_reply(value: Any) -> bool:
    """Say whether a value is the object that a model's API answers with, and has a text."""
    if isinstance(value, list):
        return any(map(is_reply, value))
    if not isinstance(value, Mapping):
        return False
    is_object = value.get("object") == "response" or isinstance(value.get("content"), list)
    if not (_OF_REPLIES & value.keys() or is_object):
        return False
    return bool(text_of_reply(value))


def is_said(value: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether objects are a chat, the parts of a message, or the choices of a reply."""
    are_parts = all(str(part.get("type")) in _PARTS for part in value) or is_cited(value)
    return are_parts or is_chat(value) or all(map(_is_choice, value))


def is_cited(value: Any) -> bool:
    """Say whether a value is the sentences of an answer with what each cites, as TREC has them."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(part, Mapping) and isinstance(part.get("text"), str) and "citations" in part
            for part in value
        )
    )


def _is_part(value: Any) -> bool:
    return isinstance(value, Mapping) and str(value.get("type")) in _PARTS


def _is_choice(part: Mapping[str, Any]) -> bool:
    return part.keys() <= _OF_CHOICES and part.keys() != {"text"}


def text_of_reply(value: Any) -> str:
    """Return the text in a reply of a model's API, of its first choice; "" for none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [text for part in value if (text := text_of_reply(part))]
        parts = all(isinstance(part, Mapping) and _is_piece(part) for part in value)
        return "".join(texts) if parts else next(iter(texts), "")
    if not isinstance(value, Mapping) or value.get("type") in _ASIDE_PARTS:
        return ""
    texts = [text_of_reply(value[name]) for name in _REPLIES if name in value]
    return next(filter(None, texts), "")


def _is_piece(value: Mapping[str, Any]) -> bool:
    """Say whether an object is a part of a message, or of a stream."""
    return bool(value.keys() & _OF_PARTS) or str(value.get("object")).endswith(".chunk")


def cited_in(value: Any) -> Iterator[Passage]:
    """Yield what a reply of a model's API cites, or found before it."""
    if isinstance(value, list):
        for part in value:
            yield from cited_in(part)
    elif isinstance(value, Mapping):
        found = [part for part in _found_for(value) if has_text(as_passage(part))]
        yield from passages_of(found, "results")
        for inner in value.values() if not found else ():
            yield from cited_in(inner)


_LISTED: Final = words_in("replies", "sources")


def _found_for(value: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what an object of a reply says was found.

    That is a citation of Anthropic's, files of OpenAI's, a source or the documents of Cohere's, a
    chunk of Google's, citations of Azure's, and lists of Bedrock, Dify, LlamaIndex and Perplexity.
    """
    if isinstance(value.get("cited_text"), str):
        yield value
    elif value.get("type") == "file_search_call":
        yield from value.get("results") or ()
    lists = [value.get(name) for name in _LISTED]
    if isinstance(value.get("citations"), list):
        lists.append(value.get("documents"))
    if isinstance(context := value.get("context"), Mapping):
        lists.append(context.get("citations"))
    for listed in lists:
        yield from listed if isinstance(listed, list) else ()
    for name in ("document", "tool_output", "retrievedContext"):
        if isinstance(value.get(name), Mapping) and ("type" in value or name != "document"):
            yield value[name]


_SAID: Final = ("model", "usage", "finish_reason", "stop_reason")  # of a reply, beside its text


def about_reply(value: Any) -> dict[str, Any]:
    """Return what a reply of a model's API says of itself: the model, tokens, why it ended."""
    if isinstance(value, list):
        value = next(iter(value), None)
    if not isinstance(value, Mapping):
        return {}
    about = {name: value[name] for name in _SAID if value.get(name) is not None}
    about |= {"model": value["modelVersion"]} if value.get("modelVersion") else {}  # Google's
    for name in ("body", "response", "message", "choices", "result", "output"):
        about = about_reply(value.get(name)) | about
    return about


_PARTS: Final = frozenset(("text", "output_text", "input_text", "thinking", "tool_use"))
_OF_CHOICES: Final = frozenset(words_in("replies", "choices"))  # of OpenAI and vLLM
_OF_PARTS: Final = frozenset(("type", "text"))  # the fields of a part of a message
_ASIDE_PARTS: Final = frozenset(("tool_use", "tool_call", "reasoning", "thinking", "function_call"))


def question_in(value: Any) -> str:
    """Return a value as a question, a message by its text; "" for none."""
    value = _parse_object(asked_in(value))
    if isinstance(value, list) and len(value) == 1:
        return question_in(value[0])
    if is_message(value):
        return text_of_message(value)
    return (text_of_reply(value) if is_reply(value) else text_of(value)) or ""


def passages_in(value: Any, column: str) -> tuple[Passage, ...]:
    """Return the passages in a value: a text, an object, or a list of these, also as a text.

    A text with bars between words and no other sign of a sentence's end beside them is a list, as
    DeepEval writes one into a table.

    Raises:
        InputError: it is something else; names the part of ``column``.
    """
    texts = _parse_passages(value)
    if isinstance(texts, str) and texts.lstrip().startswith("["):
        return (Passage(text=texts),)  # a text that begins with a bracket, such as [1]
    if isinstance(texts, Mapping) and not has_text(texts):
        named: dict[str, Any] = {name: as_passage(text) for name, text in texts.items()}
        if named and all(isinstance(p, dict) and has_text(p) for p in named.values()):
            texts = [{**p, "title": p.get("title") or name} for name, p in named.items()]
    if isinstance(texts, str) and _JOINED.search(texts) and "\n" not in texts:
        texts = [text.strip() for text in _BARS.split(texts)]
    return passages_of(texts, column)


_BARS: Final = re.compile(r"\|\|?|\[SEP\]|</?s>|<sep>", re.IGNORECASE)
_JOINED: Final = re.compile(rf"[.!?。]\s?(?:{_BARS.pattern})\s?\w", re.IGNORECASE)  # of sentences
_OF_PASSAGES: Final = frozenset(words_in("passages", "fields"))


def _parse_passages(value: Any) -> Any:
    """Return the list or objects that a text is; other values, and any other JSON, as they are.

    That is a list in a text in JSON, a set of Python or an array of PostgreSQL, or passages as JSON
    Lines.
    """
    value = parse_list(value)
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith('"['):
        return parse_list(_json_or(text, text))
    if not text.startswith("{"):
        return value
    listed = parse_list(f"[{text[1:-1]}]") if text.endswith("}") else value
    if isinstance(listed, list) and all(isinstance(part, str) for part in listed):
        return listed
    parts = [_json_or(line, None) for line in [text, *text.splitlines()]]
    parts = parts[:1] if isinstance(parts[0], dict) else parts[1:]
    are_passages = all(
        isinstance(part, dict) and has_text(part) and part.keys() <= _OF_PASSAGES for part in parts
    )
    return parts if are_passages else value


def _json_or(text: str, otherwise: Any) -> Any:
    try:
        return from_json(text)
    except ValueError:
        return otherwise


def predicted_in(value: Any, column: str, answer: str) -> Annotation | None:
    """Return what a detector marked, as LettuceDetect's ``predictions``; None for no labels."""
    marked = gold_in(value, column, answer)
    kind = {"annotator": "predictions", "kind": AnnotatorKind.DETECTOR}
    return None if marked is None else marked.model_copy(update=kind)


def gold_in(value: Any, column: str, answer: str) -> Annotation | None:
    """Return the gold labels in a value: extents, or texts of the answer.

    A text that does not stand in the answer, or more than once, has no place; that something is
    wrong there is kept as a claim that is not supported.

    Returns:
        The labels; None for a value that holds no labels (such as classes of the whole text).

    Raises:
        InputError: it is something else, or an extent is not where it says; names its part.
    """
    labels = parse_list(value)
    if is_mask(labels):
        labels = mask_in(labels, answer)
        if labels is None:
            raise InputError(
                "there is not one number for each character or word",
                field=column,
                found=f"{len(_numbers_in(value))} numbers; the answer has {len(answer)} characters "
                f"and {len(answer.split())} words",
                expected="as many numbers as characters or words",
            )
    if isinstance(labels, str):
        marks = marks_in_text(labels, answer)
        word = labels.strip()
        if marks == [] and word.isalpha() and re.search(rf"(?<!\w){word}(?!\w)", answer):
            raise InputError(
                "this may mean that nothing is marked, or be a word of the answer",
                field=column,
                found=labels,
                expected='- or an empty cell for nothing; the place of a word, as "4-6"',
            )
        is_json = labels.lstrip().startswith(("[", "{"))
        if marks is None:
            marks = _json(labels, column) if is_json else _texts(labels)
        labels = marks
    elif isinstance(labels, list) and labels and all(isinstance(part, str) for part in labels):
        listed = "; ".join(labels)
        labels = (_PLACES.fullmatch(listed) and marks_in_text(listed, answer)) or labels
    claims: tuple[Claim, ...] = ()
    if quotes := _quotes_in(labels):
        placed = _places_of([str(quote["text"]) for quote in quotes], answer)
        claims = tuple(
            Claim(text=quote["text"], verdict="not-supported")
            for quote, start in zip(quotes, placed, strict=True)
            if start is None and quote["text"].strip()
        )
        labels = [
            {**quote, "start": start, "end": start + len(quote["text"])}
            for quote, start in zip(quotes, placed, strict=True)
            if start is not None
        ]
    spans, right = wrong_and_right(spans_in(labels, column, answer))
    return Annotation(
        annotator="gold",
        kind=AnnotatorKind.GOLD,
        answer_hallucinated=bool(claims) or None,
        spans=spans,
        claims=(*claims, *right),
    )


def in_code_points(marks: Any, answer: str, cells: Mapping[str, Any]) -> Any:
    """Return marks by code points, if a column beside says that they count other units."""
    parts = parse_list(marks)
    if not isinstance(parts, list):
        return marks
    units = (plain_word(cells[name]) for name in cells if words_of(name) in _UNIT_COLUMNS)
    encoding, width = next(filter(None, map(_UNITS.get, units)), ("", 0))
    if not encoding:
        return marks
    raw = answer.encode(encoding)
    placed = [part if isinstance(part, str) else _as_extent(part) for part in parts]
    for part in (part for part in placed if isinstance(part, dict)):
        for edge in ("start", "end"):
            if isinstance(unit := part.get(edge), int) and 0 <= unit * width <= len(raw):
                part[edge] = len(raw[: unit * width].decode(encoding, errors="ignore"))
    return placed


_UNIT_COLUMNS: Final = frozenset(f"offset {name}" for name in ("type", "unit", "units", "encoding"))
_UNITS: Final = {
    **dict.fromkeys(("byte", "bytes", "utf8", "utf 8"), ("utf-8", 1)),
    **dict.fromkeys(("utf16", "utf 16", "utf16codeunit", "utf 16 code units"), ("utf-16-le", 2)),
}


def wrong_and_right(spans: Iterable[Span]) -> tuple[tuple[Span, ...], tuple[Claim, ...]]:
    """Return the places where something is wrong; those labelled as right, as supported claims."""
    sides: dict[bool, list[Span]] = {True: [], False: []}
    for span in spans:
        label = span.label or ""
        sides[len(label) > 1 and VERDICTS.get(plain_word(label)) == "supported"].append(span)
    claims = (Claim(text=span.text, source=span, verdict="supported") for span in sides[True])
    return tuple(sides[False]), tuple(claims)


def marks_in_text(text: str, answer: str) -> list[Any] | None:
    """Return the places ("3-7", "[3:7]; [9:12]") or texts of an answer that a cell lists.

    None for a cell that lists something else.
    """
    if text.strip().lower() in _NOTHING_MARKED:
        return []
    if _PLACES.fullmatch(text.strip()) and text.strip() not in answer:
        numbers = list(map(int, re.findall(r"\d+", text)))
        places = list(zip(numbers[::2], numbers[1::2], strict=True))
        are_inside = all(start < end <= len(answer) for start, end in places)
        return list(map(list, places)) if are_inside else None
    parts = [text] if text in answer else _texts(text)
    are_texts = all(part in answer and plain_word(part) not in _VERDICTS for part in parts)
    return list(parts) if parts and are_texts else None


def is_mask(value: Any) -> bool:
    """Say whether a value is a number for each of some characters or words, and not all alike."""
    return len(_numbers_in(parse_list(value))) > 1


def mask_in(value: Any, answer: str) -> list[dict[str, Any]] | None:
    """Return the places that numbers mark, one for each character or word of an answer.

    Neighbours with the same number above 0 are one place, of this probability. None for another
    number of them.
    """
    numbers = _numbers_in(parse_list(value))
    units = [(n, n + 1) for n in range(len(answer))]
    if len(numbers) != len(answer):
        units = [word.span() for word in re.finditer(r"\S+", answer)]
    if len(numbers) != len(units):
        return None
    alike = groupby(zip(numbers, units, strict=True), key=itemgetter(0))
    runs = [(prob, [unit for _, unit in run]) for prob, run in alike if prob > 0]
    return [{"start": run[0][0], "end": run[-1][1], "prob": prob} for prob, run in runs]


def _numbers_in(value: Any) -> list[float]:
    """Return the numbers from 0 to 1 that a list or text is; none for anything else."""
    if isinstance(value, str):
        value = re.findall("[01]", value) if _MASK.fullmatch(value) else ()
    listed = value if isinstance(value, list) and value != [0, 1] else ()
    are_numbers = all(isinstance(n, int | float) or n in ("0", "1") for n in listed)
    numbers = list(map(float, listed)) if are_numbers else []
    return numbers if all(0 <= n <= 1 for n in numbers) else []


_MASK: Final = re.compile(r"[01](?:[\s,;]*[01]){3,}")


def untagged(text: str) -> tuple[str, list[dict[str, Any]]]:
    """Return a text without tags around what is hallucinated, and the places that these mark.

    "It was <hal>1901</hal>", "[HALLUCINATION type=year]1901[/HALLUCINATION]".
    """
    plain, marks, last = "", list[dict[str, Any]](), 0
    for found in _TAGGED.finditer(text):
        plain += text[last : found.start()]
        label = {"label": found["label"]} if found["label"] else {}
        marks.append({"start": len(plain), "end": len(plain) + len(found["marked"]), **label})
        plain, last = plain + found["marked"], found.end()
    return plain + text[last:], marks


_TAGGED: Final = re.compile(
    r"[<\[](?P<tag>hal|hall|hallu|hallucination|hallucinated|unsupported)"
    r"(?:\s+(?:type|label)\s*=\s*[\"']?(?P<label>[\w -]+)[\"']?)?[>\]]"
    r"(?P<marked>[^<\[]+)[<\[]/(?P=tag)[>\]]",
    re.IGNORECASE,
)


def _texts(text: str) -> list[str]:
    return [part.strip() for part in re.split(r"[;|\n]", text) if part.strip()]


_PLACE: Final = r"[\[(]?\d+ ?[:,–-] ?\d+[\])]?"
_PLACES: Final = re.compile(rf"{_PLACE}(?:[;,|\s]+{_PLACE})*")
_NOTHING_MARKED: Final = frozenset(("-", "–", "—", "n/a", "na", "nil", "nothing", "no", "false"))
_VERDICTS: Final = YES | NO | UNDECIDED | VERDICTS.keys()


def _quotes_in(labels: Any) -> list[dict[str, Any]]:
    """Return the objects of a list that are texts, or have one and no place; none of another."""
    quotes: list[dict[str, Any]] = []
    for part in labels if isinstance(labels, list) else ():
        quote = _as_extent({"text": part} if isinstance(part, str) else part)
        if not (isinstance(quote, dict) and is_quote(quote)):
            return []
        quotes.append(quote)
    return quotes


def is_quote(value: object) -> bool:
    """Say whether a value is an object with a marked text and without its place."""
    place = _as_extent(value)
    if not isinstance(place, dict) or not isinstance(place.get("text"), str):
        return False
    return {"start", "end"}.isdisjoint(place)


def _places_of(texts: Sequence[str], answer: str) -> list[int | None]:
    """Return where each text stands in an answer; None for one that is not there, or more often.

    Texts that are listed as often as they stand there are each of these places, in their order.
    """
    found = {text: [m.start() for m in re.finditer(re.escape(text), answer)] for text in texts}
    is_placed = {text: text and len(found[text]) == texts.count(text) for text in found}
    return [found[text].pop(0) if is_placed[text] else None for text in texts]


def spans_in(value: Any, field: str, answer: str) -> tuple[Span, ...]:
    """Return the spans in a list of extents, or of objects with a place in the answer.

    Raises:
        InputError: it is something else, or one is not where it says; names its part of ``field``.
    """
    try:
        parts = _SPANS.validate_python(value)
    except ValidationError as error:
        raise within(input_error(error), field) from None
    return tuple(_span(answer, part, f"{field}.{index}") for index, part in enumerate(parts))


def people_in(marked: Any) -> dict[str, list[Any]]:
    """Return the marks in a list by the names of those who made them, or gold's."""
    by_name: dict[str, list[Any]] = {}
    for mark in marked if isinstance(marked, list) else ():
        said = mark if isinstance(mark, Mapping) else {}
        named = (said[key] for key in _NAMED_BY if isinstance(said.get(key), str))
        name = said.get("annotator") or next((n for n in named if not n.isdecimal()), None)
        by_name.setdefault(str(name or "").strip() or "gold", []).append(mark)
    return by_name


_NAMED_BY: Final = words_in("judged", "judges")


def _span(answer: str, labelled: _GivenSpan, field: str) -> Span:
    start, end = labelled.start, labelled.end
    if labelled.text is not None:
        start, end = find_quote(answer, start, end, quoted=labelled.text, field=field)
    return span_at(
        answer, start, end, field, prob=labelled.prob, label=labelled.label, note=labelled.note
    )


def _json(value: str, column: str) -> Any:
    try:
        return from_json(value, allow_inf_nan=False)
    except ValueError as error:
        raise InputError(
            f"not valid JSON: {error}", field=column, found=value, expected="a JSON list"
        ) from None
