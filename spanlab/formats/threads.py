"""Messages that stand alone, one a record, joined to the chats that they belong to.

    {"message_id", "parent_id", "role": "prompter", "text", "message_tree_id"}     OpenAssistant
    {"session_id", "role": "user", "content"}                                      logs of chats

Every message of the model is a record, with the chat that led to it: the messages that its parents
are, or those before it that have the same chat's id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic_core import to_json

from spanlab.formats.chats import HOLDS, is_said_by_model, is_user, places_in, without_classes
from spanlab.formats.columns import words_of
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.guess import guess
from spanlab.formats.reader import parse_object
from spanlab.formats.vocabulary import words_in
from spanlab.output.figures import counted

_OWN, _PARENT, _CHAT = (words_in("threads", name) for name in ("own", "parent", "chat"))


class Thread(NamedTuple):
    """The columns by which messages are joined; "" for one that is not there."""

    role: str
    texts: Collection[str]
    own: str
    parent: str
    chat: str
    sources: Mapping[str, str]  # the columns of the file that one of the joined records is made of

    def joined(
        self, rows: Iterator[FileRow], file: InputFile, tell: Callable[[str], None]
    ) -> Iterator[FileRow]:
        """Yield a record for each message of the model, with the ``messages`` up to it.

        What becomes of the messages is told before the first record.

        Raises:
            InputError: the file is too large to be held.
        """
        said: list[tuple[FileRow, Mapping[str, Any]]] = []
        for row in file.held(rows):
            if isinstance(message := row.readable, Mapping):
                said.append((row, _unpacked(message)))
            else:
                yield row  # which says so when its turn comes
        tell(self._in_words([message for _, message in said]))
        by_id = {str(message.get(self.own)): message for _, message in said} if self.own else {}
        chats: dict[str, list[Mapping[str, Any]]] = {}
        for row, message in said:
            name = str(message.get(self.chat))
            chat = chats.setdefault(name, [])
            chat.append(message)
            if is_said_by_model(message):
                path = self._path(message, by_id) if self.parent else chat
                own = message.get(self.own) or f"{name if self.chat else 'message'}-{len(chat)}"
                yield file.row(row.line, to_json(self._record(path, own)), row.unit, row.number)

    def _in_words(self, messages: Sequence[Mapping[str, Any]]) -> str:
        n_items = sum(map(is_said_by_model, messages))
        said = f"{counted(len(messages), 'message')}, one a record, became "
        said += f"{counted(n_items, 'item')}, one for each message of the model; "
        if not (self.parent or self.chat):
            return said + "no field says to which chat they belong: they are read as one chat"
        n_left = self._unanswered(messages)
        return said + f"{counted(n_left, 'user message')} without an answer left out"

    def _unanswered(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Return how many of the users' messages are followed by none of the model's."""
        if self.parent:
            answered = {str(each.get(self.parent)) for each in messages if is_said_by_model(each)}
            return sum(is_user(m) and str(m.get(self.own)) not in answered for m in messages)
        pending: Counter[str] = Counter()
        for message in messages:
            chat = str(message.get(self.chat))
            if is_user(message):
                pending[chat] += 1
            elif is_said_by_model(message):
                pending[chat] = 0
        return pending.total()

    def _path(
        self, message: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return a message behind its parents, the first of them first."""
        path = [message]
        while (parent := by_id.get(str(path[-1].get(self.parent)))) and parent not in path:
            path.append(parent)
        return path[::-1]

    def _record(self, path: Sequence[Mapping[str, Any]], name: Any) -> dict[str, Any]:
        about = {k: v for k, v in path[-1].items() if k not in (self.role, *self.texts)}
        about.pop(self.own, None)
        return {"id": name, "messages": path, **about}


def thread_in(samples: Iterable[Mapping[str, Any]]) -> Thread | None:
    """Return how records are joined if each is a message, of which some are the user's."""
    given = iter(samples)
    first = _unpacked(as_given := next(given, {}))
    places = places_in(first)
    if places is None:
        return None
    messages = [first, *map(_unpacked, given)]
    both_speak = any(map(is_user, messages)) and any(map(is_said_by_model, messages))
    found = dict.fromkeys(map(places_in, messages))
    texts = {one.text: None for one in found if one is not None and one.role == places.role}
    if not both_speak or None in found or len(texts) < len(found):
        return None
    columns = tuple(first)
    if guess(columns).get("answer", places.text) not in texts:
        return None
    named = {words_of(column): column for column in reversed(columns)}
    own, parent, chat = (
        next((named[name] for name in names if name in named), "")
        for names in (_OWN, _PARENT, _CHAT)
    )
    said_in = (places.role, *texts)
    inside = first.keys() - as_given.keys()
    made_of = dict.fromkeys("message" if name in inside else name for name in said_in)
    sources = {"messages": ", ".join(made_of), "id": own}
    return Thread(places.role, tuple(texts), own, parent if own else "", chat, sources)


_TELLING, _NAMES = (words_in("threads", name) for name in ("telling", "speakers"))


def speaker_of(message: Mapping[str, Any]) -> str:
    """Return who says a message that has a name and no role; "" for what is no such message."""
    said = next((value for n, value in message.items() if value and words_of(n) in _NAMES), None)
    name = said.get("name") if isinstance(said, Mapping) else said
    has_text = any(isinstance(message.get(field), str) for field in HOLDS if field != "output")
    return name if isinstance(name, str) and has_text and places_in(message) is None else ""


_FEW: Final = 5  # names that may be those of a chat in which nobody speaks twice


class Speakers(NamedTuple):
    """Who speaks in records that have names and no roles, and whether they are sure to be a talk.

    Texts of authors look the same: a talk shows in somebody who speaks twice, or in a field.
    """

    names: Sequence[str] = ()
    is_talk: bool = False


def speakers_in(messages: Sequence[Mapping[str, Any]]) -> Speakers:
    """Return who speaks in messages that have names and no roles; nobody for other records."""
    speakers = [speaker_of(message) or ("user" if is_user(message) else "") for message in messages]
    names = list(dict.fromkeys(speakers))
    fields = guess(tuple(messages[0]) if messages else ())
    texts = {fields[field] for field in ("question", "answer") if field in fields}
    means_other = len(texts) > 1 or not texts.issubset(HOLDS)
    if means_other or not all(speakers) or len(names) < 2:
        return Speakers()
    fields_there = {words_of(name) for message in messages for name in message}
    is_talk = bool(fields_there & {*_CHAT, *_TELLING}) or len(names) < len(speakers)
    return Speakers(names, is_talk) if is_talk or len(names) <= _FEW else Speakers()


def model_beside_user(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return who speaks with a user in messages of which the model's have a name and no role."""
    named = {speaker_of(message) for message in messages if not is_user(message)}
    is_one = len(named) == 1 and any(map(is_user, messages))
    return named.pop() or None if is_one else None


def with_roles(value: Any, model: str) -> Any:
    """Return a value whose messages have a role: the model's are of the speaker of this name."""
    if isinstance(value, list):
        return [with_roles(part, model) for part in value]
    if not isinstance(value, Mapping):
        return value
    if name := speaker_of(value):
        return {"role": "assistant" if name == model else "user", **value}
    if is_user(value):
        return {"role": "user", **value}
    return {field: with_roles(inner, model) for field, inner in value.items()}


def _unpacked(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with the message in its field ``message``, maybe as JSON, at its top."""
    message = without_classes(parse_object(record.get("message")))
    is_inside = isinstance(message, Mapping) and places_in(message) is not None
    return (
        {**{k: v for k, v in record.items() if k != "message"}, **message} if is_inside else record
    )
