"""Whether a model can do a detector's task at all: two invented answers, one of them wrong.

An endpoint may take every kind of call, and its model still mark nothing, or everything, or reply
what nobody can read. A person who runs ten thousand items with it wants to know before.
"""

from __future__ import annotations

from typing import Final

from spanlab.base.errors import SpanlabError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec, build
from spanlab.models import Meter
from spanlab.models.refusals import CheckedCall
from spanlab.schema import Annotation, Item, Passage, Status
from spanlab.search.spec import GivenSpec
from spanlab.text.labels import hard_of

# Invented, so that a model has to read the passage.
_PASSAGE: Final = Passage(
    text="The Varnholm suspension bridge was opened in 1931. It is 412 metres long and crosses "
    "the river Ilse."
)
_SENTENCE: Final = "The Varnholm suspension bridge was opened in {}."
_WRONG: Final = "1958"


def _planted(year: str) -> Item:
    question = "When was the Varnholm suspension bridge opened?"
    answer = _SENTENCE.format(year)
    return Item(id=year, lang="en", question=question, answer=answer, passages=(_PASSAGE,))


async def try_task(spec: DetectorSpec, meter: Meter, settings: Settings) -> CheckedCall:
    """Let a detector annotate a wrong and a right answer with its own prompts, past the cache.

    Args:
        spec: a detector that asks models; the answers come with their passage.
        meter: counts the calls.
        settings: where tuned prompts lie.

    Returns:
        Whether it marks the wrong word and nothing that is right; the note says what it did else.
    """
    notes = [_missed(await _annotate(spec, _planted(_WRONG), meter, settings))]
    notes.append(_excess(await _annotate(spec, _planted("1931"), meter, settings)))
    note = "; ".join(filter(None, notes))
    return CheckedCall(kind=spec.signs, works=not note, note=note, is_task=True)


async def _annotate(
    spec: DetectorSpec, item: Item, meter: Meter, settings: Settings
) -> Annotation | str:
    """Return an annotation, or why there is none."""
    given = spec.model_copy(update={"retriever": GivenSpec()})
    try:
        found = (await build(given, meter, settings, cached=False).detect(item)).annotation
    except SpanlabError as error:  # such as a wrong key
        return str(error)
    return found.note or "no reason is known" if found.status is Status.FAILED else found


def _missed(annotation: Annotation | str) -> str:
    """Say what is amiss with the annotation of the wrong answer; "" for nothing."""
    if isinstance(annotation, str):
        return f"failed on a wrong answer: {annotation}"
    start = _SENTENCE.index("{")
    found = any(part.end > start and part.start < start + 4 for part in hard_of(annotation))
    return "" if found else f"does not mark “{_WRONG}”, which is wrong"


def _excess(annotation: Annotation | str) -> str:
    """Say what is amiss with the annotation of the right answer; "" for nothing."""
    if isinstance(annotation, str):
        return f"failed on a right answer: {annotation}"
    answer = _planted("1931").answer
    marked = [answer[part.start : part.end] for part in hard_of(annotation)]
    return f"marks “{marked[0]}”, which is right" if marked else ""
