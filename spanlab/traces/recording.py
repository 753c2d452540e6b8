"""Record how a Python pipeline makes an answer, as the process that detectors trace it through.

    @spanlab.recorded(stage="summary")
    def summarise(chunk: str) -> str: ...

    with spanlab.record() as process:
        answer = combine([summarise(chunk) for chunk in chunks])
    item = process.item("report-1", question="What happened?")

Texts are told apart by what they say: an argument that an earlier step returned is that step's, one
that holds such texts word for word (a prompt made from them) stands for them, and any other is a
source text. Threads and tasks may record at the same time.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from functools import wraps
from threading import Lock
from typing import Any, Final, TypeVar, cast, overload

from pydantic import ValidationError

from spanlab.base.errors import UsageError
from spanlab.schema import UNDETERMINED, Item, Passage, Process, ProcessNode

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
SOURCE: Final = "source"  # the stage of texts that no recorded step returned
_TOOLS: Final = frozenset(("tool", "function"))  # roles of what tools returned
_INSTRUCTING: Final = frozenset(("system", "developer"))
_ASKING: Final = frozenset(("question", "query"))  # parameters that hold no source
# Where the objects of libraries have their text: openai's, LangChain's, LlamaIndex's, dspy's.
_HOLDS: Final = (
    *("output_text", "choices", "message", "page_content", "content", "text", "response"),
    "answer",
)
_INSIDE: Final = 20  # characters from which a text is looked for inside an argument


class Recorder:
    """The texts of one run, in the order in which they came."""

    def __init__(self) -> None:
        self._nodes: dict[str, ProcessNode] = {}
        self._by_text: dict[str, str] = {}  # the latest node with a text
        self._found: dict[str, None] = {}  # texts that were noted as sources
        self._lock = Lock()

    def step(self, inputs: Iterable[str], output: str, stage: str) -> None:
        """Note that ``output`` was made from ``inputs``; an output that is one of them is no step.

        Args:
            inputs: texts; blank ones are left out.
            output: the text that the step returned.
            stage: what the step is called.
        """
        texts = [text for text in dict.fromkeys(inputs) if text.strip()]
        if output in texts or not output.strip():
            return
        with self._lock:
            same = self._by_text.get(output)  # two listeners may hear the same call
            sources = dict.fromkeys(source for text in texts for source in self._sources(text))
            sources.pop(same or "", None)
            if same is None or self._nodes[same].sources != tuple(sources):
                self._add(output, stage, tuple(sources))

    def call(self, messages: Iterable[tuple[str, str]], outputs: Iterable[str], stage: str) -> None:
        """Note what a model's call read and wrote.

        What tools returned was read, and messages that hold noted texts. Only where there are none
        a user's message is a source; otherwise it is the question. Instructions never are.

        Args:
            messages: role and text of what was read.
            outputs: the texts that it wrote.
            stage: what the step is called.
        """
        read = [(role, text) for role, text in messages if text.strip()]
        inputs = [text for role, text in read if role in _TOOLS or self.knows(text)]
        inputs = inputs or [text for role, text in read if role not in _INSTRUCTING]
        for output in outputs:
            self.step(inputs, output, stage)

    def source(self, text: str, stage: str = SOURCE) -> None:
        """Note a text that no step made, such as a document that was retrieved: a passage."""
        with self._lock:
            if text.strip():
                self._found[text] = None
                if text not in self._by_text:
                    self._add(text, stage, ())

    def found(self) -> list[str]:
        """Return the texts that were noted as sources."""
        with self._lock:
            return list(self._found)

    def knows(self, text: str) -> bool:
        """Say whether a text was noted, or holds one that was."""
        with self._lock:
            return text in self._by_text or bool(self._inside(text))

    def process(self, answer: str | None = None, question: str = "") -> Process:
        """Return what led to an answer.

        Args:
            answer: a text that was noted; None for the last one.
            question: what was asked, which is no source.

        Returns:
            The texts from which it was made. Stages are those noted, or counted where these
            contradict each other, as in a function that summarises its own summaries.

        Raises:
            UsageError: nothing was noted, or no step returned this answer.
        """
        with self._lock:
            nodes, by_text = dict(self._nodes), dict(self._by_text)
        last = next((node.text for node in reversed(nodes.values())), None)
        answer = last if answer is None else answer
        if answer is None or answer not in by_text:
            raise UsageError(
                "no recorded step returned this answer; decorate the function that returns it "
                "with @spanlab.recorded, or note it with process.step"
            )
        needed = {by_text[answer]}
        for name, node in reversed(nodes.items()):  # what a text was made from came before it
            needed.update(node.sources if name in needed else ())
        asked = question.strip()
        kept = {
            name: node
            for name, node in nodes.items()
            if name in needed and (node.stage, node.text.strip()) != (SOURCE, asked)
        }
        made_from = {name: tuple(filter(kept.get, node.sources)) for name, node in kept.items()}
        sources = tuple(n.model_copy(update={"sources": made_from[n.id]}) for n in kept.values())
        try:
            return Process(nodes=sources)
        except ValidationError:
            return Process(nodes=tuple(node.model_copy(update={"stage": ""}) for node in sources))

    def item(
        self, name: str, question: str = "", *, lang: str = UNDETERMINED, answer: str | None = None
    ) -> Item:
        """Return the answer as an item of this id, with its process; see ``process``.

        Its passages are what was noted as sources, whether the answer was made from it or not.
        """
        process = self.process(answer, question)
        text = process.terminal.text
        with self._lock:
            passages = tuple(Passage(text=found) for found in self._found if found != text)
        item = Item(id=name, question=question, lang=lang, answer=text, process=process)
        return item.model_copy(update={"passages": passages})

    def _sources(self, text: str) -> Sequence[str]:
        node = self._by_text.get(text)
        if node is not None:
            return (node,)
        return self._inside(text) or (self._add(text, SOURCE, ()),)

    def _inside(self, text: str) -> list[str]:
        return [
            node
            for known, node in self._by_text.items()
            if _INSIDE <= len(known) < len(text) and known in text
        ]

    def _add(self, text: str, stage: str, sources: tuple[str, ...]) -> str:
        name = f"text {len(self._nodes) + 1}"
        self._nodes[name] = ProcessNode(id=name, text=text, stage=stage, sources=sources)
        self._by_text[text] = name
        return name


_CURRENT: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
_OPEN: list[Recorder] = []  # for threads, which do not inherit the context of who started them


@contextmanager
def record() -> Iterator[Recorder]:
    """Record what decorated functions are given and return; see ``listening.record``.

    Threads that the block starts are recorded, too, unless two recordings are open at once.
    """
    recorder = Recorder()
    token = _CURRENT.set(recorder)
    _OPEN.append(recorder)
    try:
        yield recorder
    finally:
        _OPEN.remove(recorder)
        _CURRENT.reset(token)


def current() -> Recorder | None:
    """Return what records here: this context's recording, or the only one that is open."""
    return _CURRENT.get() or (_OPEN[0] if len(_OPEN) == 1 else None)


@overload
def recorded(function: F, /) -> F: ...
@overload
def recorded(
    *, stage: str | None = None, inputs: Sequence[str] | None = None, sources: bool = False
) -> Callable[[F], F]: ...


def recorded(
    function: F | None = None,
    /,
    *,
    stage: str | None = None,
    inputs: Sequence[str] | None = None,
    sources: bool = False,
) -> F | Callable[[F], F]:
    """Record each call of a function or coroutine function as a step, while a recording is open.

    Args:
        function: what to decorate.
        stage: what the step is called; by default the function's name.
        inputs: the parameters that hold texts, also inside lists, dictionaries, messages and
            objects; by default all but ``question`` and ``query``.
        sources: whether it finds texts, as a search does, instead of making them: what it returns
            are sources, and passages of the item.

    Returns:
        The function, unchanged in what it does. Each text that it returns is recorded, also in a
        list or an object. If it yields pieces of text, they are recorded as one text.
    """
    if function is None:
        return lambda inner: _decorated(inner, stage, inputs, sources)
    return _decorated(function, stage, inputs, sources)


def _decorated(function: F, stage: str | None, inputs: Sequence[str] | None, sources: bool) -> F:
    signature, name = inspect.signature(function), stage or function.__name__

    def note(result: Any, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        if (recorder := current()) is None:
            return result
        given = {} if sources else signature.bind(*args, **kwargs).arguments
        names = inputs or [name for name in given if name not in _ASKING]
        texts = list(_texts([given[name] for name in names if name in given]))
        for output in _texts(result):
            if sources:
                recorder.source(output, name)
            else:
                recorder.step(texts, output, name)
        return result

    @wraps(function)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return note(await function(*args, **kwargs), args, kwargs)

    @wraps(function)
    async def streamed(*args: Any, **kwargs: Any) -> Any:
        pieces = function(*args, **kwargs)
        async with aclosing(passed_on_async(pieces, lambda p: note(_joined(p), args, kwargs))) as p:
            async for piece in p:
                yield piece

    @wraps(function)
    def yielded(*args: Any, **kwargs: Any) -> Any:
        pieces = function(*args, **kwargs)
        yield from passed_on(pieces, lambda p: note(_joined(p), args, kwargs))

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return note(function(*args, **kwargs), args, kwargs)

    ways = (
        (inspect.iscoroutinefunction, awaited),
        (inspect.isasyncgenfunction, streamed),
        (inspect.isgeneratorfunction, yielded),
    )
    way: Any = next((way for is_one, way in ways if is_one(function)), called)
    return cast(F, way)  # called as before


def passed_on(pieces: Iterable[T], note: Callable[[list[T]], None]) -> Iterator[T]:
    """Yield pieces as they come; what came is noted in the end, however that comes."""
    came: list[T] = []
    try:
        for piece in pieces:
            came.append(piece)
            yield piece
    finally:
        note(came)


async def passed_on_async(
    pieces: AsyncIterable[T], note: Callable[[list[T]], None]
) -> AsyncGenerator[T]:
    """Yield pieces as ``passed_on`` does."""
    came: list[T] = []
    try:
        async for piece in pieces:
            came.append(piece)
            yield piece
    finally:
        note(came)


def _joined(pieces: Sequence[object]) -> object:
    """Return an answer that came in pieces as one text; other things as they are."""
    texts = [piece for piece in pieces if isinstance(piece, str)]
    return "".join(texts) if len(texts) == len(pieces) else pieces


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value; of a message its content, of an object what holds its text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        is_message = "role" in value and "content" in value
        for inner in [value["content"]] if is_message else value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _texts(inner)
    elif value is not None and not isinstance(value, bytes | type):
        held = next(
            (attribute for name in _HOLDS if (attribute := getattr(value, name, None))), None
        )
        if held is None and is_dataclass(value):
            held = [getattr(value, field.name) for field in fields(value)]
        if held is not None and not callable(held):
            yield from _texts(held)
