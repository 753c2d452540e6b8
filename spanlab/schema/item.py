"""An item: an answer under review with its question, passages, process and retrievals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Discriminator, Field, JsonValue, Tag, model_validator

from spanlab.base.fields import FrozenModel, Language, Name, Offset
from spanlab.schema.process import Process
from spanlab.schema.shared_process import SharedProcess

UNDETERMINED = "und"  # BCP 47 for a text whose language nobody stated


class Passage(FrozenModel):
    """A piece of evidence text; ``title``, ``url`` and ``date`` (as its source has it) if known."""

    text: str
    title: str | None = None
    url: str | None = None
    date: str | None = None


class Retrieval(FrozenModel):
    """What a retriever was asked for an item and found, noted also if that is nothing.

    ``query``, ``k`` and ``before`` are what a detector asked: a text, how many passages at most,
    and the day before which they must be published. Without ``query`` it is what the retriever
    searches an item by, its question or claims. ``queries`` are the texts that were searched for,
    such as a translation; ``passages`` are 0-based indices of the item's.
    """

    retriever: Name
    queries: tuple[str, ...] = ()
    passages: tuple[Offset, ...] = ()
    query: str | None = None
    k: Annotated[int, Field(ge=1)] | None = None
    before: date | None = None

    @property
    def key(self) -> tuple[str, str | None, int | None, date | None]:
        """What an item has one retrieval of: who was asked for what."""
        return (self.retriever, self.query, self.k, self.before)


def _is_shared(process: object) -> str:
    shared = isinstance(process, SharedProcess) or (isinstance(process, dict) and "id" in process)
    return "shared" if shared else "own"


class Citation(FrozenModel):
    """Characters ``[start, end)`` of the answer for which it cites ``passages`` (0-based indices).

    As the API that wrote the answer said it; what markers in the text say is read from the text.
    """

    start: Offset
    end: Offset
    passages: Annotated[tuple[Offset, ...], Field(min_length=1)]


AnyProcess = Annotated[
    Annotated[Process, Tag("own")] | Annotated[SharedProcess, Tag("shared")],
    Discriminator(_is_shared),
]


class Item(FrozenModel):
    """One LLM output under review: an answer, its question and language, and the passages given.

    ``meta`` keeps further fields of the dataset. ``citations`` are those that the answer's API gave
    with offsets; markers such as [1] stand in the answer itself (``spanlab.text.citations``).
    """

    id: Name
    lang: Language = UNDETERMINED
    question: str = ""
    answer: str
    passages: tuple[Passage, ...] = ()
    process: AnyProcess | None = None
    retrievals: tuple[Retrieval, ...] = ()
    citations: tuple[Citation, ...] = ()
    meta: dict[str, JsonValue] = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields, as a script may give them
            self,
            *,
            id: str,  # noqa: A002 - the field's name
            lang: str = ...,
            question: str = ...,
            answer: str,
            passages: Iterable[Passage] = ...,
            process: AnyProcess | None = ...,
            retrievals: Iterable[Retrieval] = ...,
            citations: Iterable[Citation] = ...,
            meta: Mapping[str, Any] = ...,
        ) -> None: ...

    @model_validator(mode="after")
    def _retrieved_and_cited_passages_exist(self) -> Self:
        for index, citation in enumerate(self.citations):
            self._check_citation(citation, f"citations.{index}")
        if not self.retrievals:  # as most items, which are read by the million
            return self
        if len({retrieval.key for retrieval in self.retrievals}) < len(self.retrievals):
            raise ValueError("a retriever was asked the same twice")
        for index, retrieval in enumerate(self.retrievals):
            for passage in retrieval.passages:
                if passage >= len(self.passages):
                    raise ValueError(
                        f"retrievals.{index}: passage {passage} does not exist, "
                        f"the item has {len(self.passages)}"
                    )
        return self

    def _check_citation(self, citation: Citation, field: str) -> None:
        if not citation.start < citation.end <= len(self.answer):
            raise ValueError(
                f"{field}: [{citation.start}, {citation.end}) are no characters of the answer, "
                f"which has {len(self.answer)}"
            )
        if max(citation.passages) >= len(self.passages):
            raise ValueError(
                f"{field}: passage {max(citation.passages)} does not exist, "
                f"the item has {len(self.passages)}"
            )
