"""Reading the fields of an answer in the forms in which models give them.

Asked for are marked sections or a JSON object. What comes as well, and is read as long as it can
mean one thing only: markers in bold or within a line, plain names in their place, XML tags; JSON in
a fence or among words, under another name, or the bare list; Python's own notation. An answer that
gives a field two different values has given none.

What a model thinks aloud before it answers may hold drafts of the answer, so that it is taken away
first. Endpoints send it in a field of its own, or leave it in the content between the tags of the
model's chat template, sometimes with the closing tag alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_origin
from weakref import WeakKeyDictionary

from pydantic import BaseModel, TypeAdapter, ValidationError

from spanlab.models.values import UnreadableError, values_in
from spanlab.text.thoughts import split_reply

if TYPE_CHECKING:
    from dspy.lm15 import Response
    from dspy.signatures.signature import Signature


PROSE = "prose"  # Annotated[str, PROSE]: an answer without any marker is this field's text
THOUGHT = "reasoning"  # dspy's field for thinking first, which is asked for and not needed
# What may repeat is bounded everywhere: models repeat spaces and marks without end.
_MARKER = re.compile(
    r"[*_`#> \t]{0,8}\[\[ {0,2}## {0,2}(\w+) {0,2}## {0,2}\]\][*_`]{0,3}(?::(?=\s))?"
)
_FENCE = "```"
Forms = Mapping[str, "TypeAdapter[Any] | None"]  # what reads each output field; None for text


def forms_of(signature: type[Signature]) -> Forms | None:
    """Return the form of each output field of a signature, which reads its values.

    Returns:
        None for a signature with fields that are neither text, lists nor objects: dspy reads it.
    """
    if signature not in _known:
        kinds = {name: field.annotation for name, field in signature.output_fields.items()}
        forms = {name: form_of(kind) for name, kind in kinds.items()}
        simple = all(kind is str or forms[name] for name, kind in kinds.items())
        _known[signature] = forms if simple else None
    return _known[signature]


def read_fields(signature: type[Signature], forms: Forms, answer: str) -> dict[str, Any] | None:
    """Return the output fields of an answer.

    Args:
        signature: says which fields there are.
        forms: from ``forms_of``.
        answer: what the model said, without what it thought aloud before.

    Returns:
        All output fields in their order, ``reasoning`` being "" where it is missing; None if the
        answer does not say for certain what a field is.
    """
    sections = _sections(forms, answer)
    fields = {
        name: _only(_read_sections(form, texts))
        for name, form in forms.items()
        if (texts := sections.get(name))
    }
    if not fields.keys() >= forms.keys() - {THOUGHT}:
        fields |= _without_sections(signature, forms, answer, bare=not sections)
    fields[THOUGHT] = fields.get(THOUGHT) or ""
    values = {name: fields.get(name) for name in forms}
    return None if any(value is None for value in values.values()) else values


def _without_sections(
    signature: type[Signature], forms: Forms, answer: str, *, bare: bool
) -> dict[str, Any]:
    """Return the fields of an answer that is JSON or the like, or bare text."""
    text = _strip_fence(answer)
    values = _values_in(text)
    names = [name for name in forms if name != THOUGHT]
    for value in values:
        named = _named_fields(value, forms)
        if all(name in named for name in names):
            read = {name: _read_named(forms[name], field) for name, field in named.items()}
            readings = [
                _named_fields(candidate, forms) for candidate in values if candidate is not value
            ]
            clash = any(set(names) <= set(reading) and reading != named for reading in readings)
            return {} if clash else read
    if len(names) != 1:
        return {}
    (name,) = names
    form = forms[name]
    if form is not None:
        alone = len(values) == 1 and _is_all(text)
        is_none = _is_list(form) and bare and bool(text.strip()) and says_none(text)
        return {name: [] if is_none else _only(_read_shaped(form, values, alone=alone))}
    if PROSE not in signature.output_fields[name].metadata:
        return {}
    texts = [inner for value in values for inner in _texts(value)]
    if _is_all(text):
        return {name: texts[0] if len(texts) == 1 else None}
    return {name: text.strip() or None} if bare else {}


def _sections(forms: Forms, answer: str) -> dict[str, list[str]]:
    """Return the texts under each field's markers; {} for an answer without any."""
    for marker in (_MARKER, _plain_marker(tuple(forms))):
        markers = list(marker.finditer(answer))  # also those of fields that nobody asked for
        if not any(m[1].casefold() in forms for m in markers):
            continue
        sections: dict[str, list[str]] = {}
        ends = [*(m.start() for m in markers[1:]), len(answer)]
        for header, end in zip(markers, ends, strict=True):
            sections.setdefault(header[1].casefold(), []).append(answer[header.end() : end])
        return sections
    tagged = {name: tagged_as(name, answer) for name in forms}
    return {name: [text] for name, text in tagged.items() if text is not None}


def tagged_as(name: str, text: str) -> str | None:
    """Return what stands between the first opening and the last closing tag of a name."""
    start, end = text.find(f"<{name}>"), text.rfind(f"</{name}>")
    return text[start + len(name) + 2 : end] if 0 <= start < end else None


@lru_cache(maxsize=64)
def _plain_marker(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds names as headings: "**parts:**", "## parts ##", "parts:"."""
    name, around = "|".join(names), r"[ \t]{0,4}[#*_`]{0,6}[ \t]{0,4}"
    return re.compile(
        rf"^{around}({name})(?:{around}:{around}|{around}$)", re.MULTILINE | re.IGNORECASE
    )


def _read_sections(form: TypeAdapter[Any] | None, texts: Iterable[str]) -> Iterator[Any]:
    """Yield the values of a field; None for a section that cannot be read."""
    for text in texts:
        if form is None:
            yield text.strip()
            continue
        bare = _strip_fence(text).strip()
        if _is_list(form) and says_none(bare):
            yield []
            continue
        try:
            values = [json.loads(bare)]  # as nearly always
        except (ValueError, RecursionError):
            values = _values_in(bare)
        data = [value for value in values if isinstance(value, dict | list)]
        alone = len(values) == 1 and (_is_all(bare) or _is_texts(values[0]))
        yield _only(_read_shaped(form, data, alone=alone))


def _only(values: Iterable[Any]) -> Any:
    """Return the one value there is, however often; None for several, or none."""
    only: Any = None
    for value in values:
        if value is not None and only is not None and value != only:
            return None
        only = value if only is None else only
    return only


def _read_shaped(form: TypeAdapter[Any], values: Iterable[Any], *, alone: bool) -> Iterator[Any]:
    """Yield what of some values is of a field's form, whatever it is called.

    Objects one after the other are a list's elements. Bare texts are trusted only where they are
    all there is (``alone``).
    """
    if not _is_list(form):
        for value in filter(_is_object, values):
            read = (
                _read(form, candidate) for candidate in (value, *filter(_is_object, value.values()))
            )
            yield next((reading for reading in read if reading is not None), None)
        return
    elements: list[Any] = []
    for value in values:
        if isinstance(value, list):
            if alone or all(map(_is_object, value)):
                yield _read(form, value)
        elif value and _read(form, [value]) is not None:
            elements.append(value)
        else:
            yield _read(form, _list_in(value))
    if elements:
        yield _read(form, elements)


def _list_in(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the one list of objects in an object, or in one within it."""
    lists = list(_lists(value))
    filled = [list_ for list_ in lists if list_] or lists[:1]
    return filled[0] if len(filled) == 1 else None


def _lists(value: Mapping[str, Any]) -> Iterator[list[Any]]:
    for field in value.values():
        if isinstance(field, list) and all(map(_is_object, field)):
            yield field
        elif isinstance(field, dict):
            yield from _lists(field)


def _texts(value: Any) -> list[str]:
    texts = value.values() if isinstance(value, dict) else value
    return [text for text in texts if isinstance(text, str) and text.strip()]


def _named_fields(value: Any, forms: Forms) -> dict[str, Any]:
    """Return what an object holds under the fields' names."""
    if not isinstance(value, dict):
        return {}
    return {name: field for key, field in value.items() if (name := str(key).casefold()) in forms}


def _read_named(form: TypeAdapter[Any] | None, value: Any) -> Any:
    """Return a value that a field's own name has; null or "none" for a list is an empty one."""
    if form is not None and _is_list(form) and (value is None or says_none(value)):
        return []
    return _read(form, value)


def _read(form: TypeAdapter[Any] | None, value: Any) -> Any:
    """Return a value as its field holds it; None if it is no such value."""
    if form is None or value is None or value == {}:
        return value if form is None and isinstance(value, str) else None
    if isinstance(value, str):  # JSON within a text
        return _only(_read_sections(form, [value]))
    if isinstance(value, dict) and _is_list(form):
        return _only(_read_shaped(form, [value], alone=False))
    try:
        return form.validate_python(value)
    except ValidationError:
        return None


_NONE = re.compile(
    r"(?:none|null|nil|n/?a|nothing|empty|no (?:errors?|issues?|hallucinations?|mistakes?)|-+|—)?"
    r"|(?:there (?:are|is) (?:no|nothing)|nothing (?:is|in)|no (?:\w+ ){0,3}(?:words?|parts?|text|"
    r"spans?|claims?|statements?|facts?|information|contents?|hallucinations?|errors?|issues?)|"
    r"(?:the )?(?:whole )?answer is (?:fully |entirely )?(?:right|correct|supported|accurate))"
    r"\b[^\n]{0,200}",
    re.IGNORECASE,
)


def says_none(value: object) -> bool:
    """Say whether a model's words for a list say that there is nothing to list.

    These are an empty section, "None", "N/A" and the like, or a sentence that begins so. Taken for
    a failure they would lose clean answers alone, and so bias every rate.
    """
    return isinstance(value, str) and _NONE.fullmatch(value.strip(" \t\r\n.*_`\"'()")) is not None


def _values_in(text: str) -> list[Any]:
    try:
        return list(values_in(text))
    except UnreadableError:
        return []


def _strip_fence(text: str) -> str:
    bare = text.strip()
    if not (bare.startswith(_FENCE) and bare.endswith(_FENCE) and bare.count(_FENCE) == 2):
        return text
    language, _, inside = bare.removeprefix(_FENCE).removesuffix(_FENCE).partition("\n")
    return inside.removesuffix("\n") if len(language.split()) < 2 and inside else text


def _is_all(text: str) -> bool:
    """Say whether a text begins and ends as a list or an object does."""
    bare = text.strip()
    return bare[:1] in {"[", "{"} and bare[-1:] in {"]", "}"}


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_list(form: TypeAdapter[Any]) -> bool:
    return get_origin(form._type) is list


@lru_cache(maxsize=64)
def form_of(kind: Any) -> TypeAdapter[Any] | None:
    """Return the reader of a field that is a list or an object; None for any other field."""
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return TypeAdapter(kind) if is_model or get_origin(kind) is list else None


_known: WeakKeyDictionary[type[Signature], Forms | None] = WeakKeyDictionary()


def without_thoughts(response: Response) -> Response:
    """Return a response whose text is the answer alone; its reasoning is a part of its own."""
    from dspy.lm15 import Message, TextPart, ThinkingPart

    text = response.text
    if not text:
        return _answer_among_thoughts(response)
    split = split_reply(text)
    if split.answer == text:
        return response
    other_parts = [part for part in response.message.parts if part.type != "text"]
    thoughts = [ThinkingPart(split.thoughts)] if split.thoughts.strip() else []
    answer = [TextPart(split.answer)] if split.answer.strip() else []
    message = Message(role="assistant", parts=(*other_parts, *thoughts, *answer) or (TextPart(""),))
    return replace(response, message=message)


def _answer_among_thoughts(response: Response) -> Response:
    """Return a response whose reasoning is JSON and all there is with that JSON as its answer.

    Some servers take what a model says under a schema for its reasoning.
    """
    from dspy.lm15 import Message, TextPart

    thoughts = thoughts_of(response).strip()
    if not (thoughts.startswith("{") and thoughts.endswith("}")) or response.tool_calls:
        return response
    try:
        json.loads(thoughts)
    except ValueError:
        return response
    other_parts = tuple(
        part for part in response.message.parts if part.type not in ("text", "thinking")
    )
    message = Message(role="assistant", parts=(*other_parts, TextPart(thoughts)))
    return replace(response, message=message)


def thoughts_of(response: Response) -> str:
    """Return what a model thought aloud before its answer; "" if it did not."""
    parts = (part.text for part in response.message.parts if part.type == "thinking")
    return "\n".join(filter(str.strip, parts))
