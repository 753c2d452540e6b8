"""One answer, judged at once: what the command, the page and `spanlab.check` have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from spanlab.base.errors import InputError, PageError, UsageError, unreadable
from spanlab.base.options import problem
from spanlab.base.runtime import wait
from spanlab.base.settings import Settings
from spanlab.detection.file_run import FileRun
from spanlab.detection.request import RunOptions, RunRequest
from spanlab.detection.specifications import remarks_on, specifications
from spanlab.output.wording import usage_in_words
from spanlab.schema import (
    OWNER,
    UNDETERMINED,
    Actor,
    Annotation,
    Item,
    Passage,
    Permission,
    Record,
    Status,
    storable,
)
from spanlab.search.page_text import read_apart
from spanlab.search.pages import web_pages
from spanlab.text.languages import language_of
from spanlab.text.thoughts import REASONING, UNJUDGED, without_thoughts

LONGEST: Final = 400_000  # characters of an answer, and bytes of a text file
OFFLINE: Final = "offline"  # the detector that nothing has to be set for
MOST: Final = 20 * 2**20  # bytes of a PDF
_MOST_SOURCES: Final = 1000
_PAGE: Final = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body|meta|title|style|script)\b",
    re.IGNORECASE | re.DOTALL,
)
_HEAD: Final = 4_096  # bytes in which a page says that it is one
_RULE: Final = "---"  # a line between two passages


@dataclass(frozen=True)
class CheckedAnswer:
    """An answer with what a detector says of it.

    ``record`` has the item and all that the detector made, ``annotation`` is its own. ``remarks``
    say what people should know of the run, such as what it has cost.
    """

    record: Record
    annotation: Annotation
    remarks: tuple[str, ...]


def check_answer(item: Item, options: RunOptions, *, actor: Actor = OWNER) -> CheckedAnswer:
    """Let a detector judge one answer.

    Args:
        item: the answer with its passages; see ``answer_item``.
        options: the detector, ``offline`` if it names none, and its model.
        actor: who asks, and has to be a lead of all datasets: a model may cost money.

    Raises:
        AccessError: they may not.
        UsageError: several detectors are named, or one cannot be built.
        InputError: the detector failed; says why.
        BudgetError: the budget is used up.
        ConfigurationError: key, address or name of the model is wrong.
    """
    actor.require(Permission.ADMINISTER)
    specs = specifications(
        options.model_copy(update={"detectors": options.detectors or (OFFLINE,)})
    )
    if len(specs) > 1:
        raise UsageError(
            "check takes one detector (--detector); an ensemble, such as ucsc, asks several"
        )
    run = FileRun.of(RunRequest.of(options, detectors=specs))
    (record,) = run.annotate([Record(item=item)])
    annotation, spent = record.by(specs[0].signs), str(run.spent or "")
    if annotation is None and run.spent is not None:
        raise run.spent
    if annotation is None or annotation.status is Status.FAILED:
        raise InputError(f"{specs[0].signs} failed: {annotation.note if annotation else ''}")
    aside = UNJUDGED if REASONING in item.meta else None
    told = (*remarks_on(specs), aside, annotation.note, spent, usage_in_words(run.usage))
    return CheckedAnswer(record, annotation, tuple(filter(None, told)))


def require_answer(answer: object) -> None:
    """Check that there is an answer; raises UsageError for an empty one, and what is no text."""
    if not isinstance(answer, str):
        raise UsageError(f"the answer has to be a text, not {type(answer).__name__}")
    if not answer.strip():
        raise UsageError("there is no answer to check")


def answer_item(
    answer: str, passages: Iterable[Passage], question: str = "", lang: str = UNDETERMINED
) -> Item:
    """Return an answer as an item; passages without text are left out.

    Reasoning in tags before the answer is kept in ``meta`` and not judged. A language that is not
    stated is told from the answer, or else from the passages.

    Raises:
        UsageError: there is no answer.
        InputError: the language is not a tag, a text is too long, or there is reasoning only.
    """
    require_answer(answer)
    said, thoughts = without_thoughts(answer)
    told = tuple(passage for passage in passages if passage.text.strip())
    if lang == UNDETERMINED:
        lang = language_of(f"{question} {said}", *(passage.text for passage in told))
    try:
        return Item(
            id="answer",
            lang=lang,
            question=storable(question),
            answer=storable(said),
            passages=told,
            meta=dict(thoughts),
        )
    except ValidationError as error:
        raise InputError(f"check: {problem(error)}") from None


def is_address(text: str) -> bool:
    """Say whether a text is the address of a web page, and nothing else."""
    return text.startswith(("http://", "https://")) and len(text.split()) == 1


def numbered_passages(sources: Sequence[str]) -> list[Passage]:
    """Return the sources that an answer cites by number, in the order of their numbers.

    Args:
        sources: texts such as "1=report.pdf": a number and what ``read_passage`` reads.

    Returns:
        The passages from number 1 to the last; those that are not given have no text.

    Raises:
        UsageError: a source has no number from 1 to 999, or two have the same.
        InputError, PageError: one cannot be read; see ``read_passage``.
    """
    numbered: dict[int, Passage] = {}
    for source in sources:
        number, equals, place = source.partition("=")
        if not (equals and place and number.isascii() and number.isdecimal()):
            raise UsageError(f"--source {source}: a number and a file are expected: 1=report.pdf")
        at = int(number)
        if not 0 < at < _MOST_SOURCES or at in numbered:
            wrong = "is given twice" if at in numbered else "is not from 1 to 999"
            raise UsageError(f"--source {source}: the number {at} {wrong}")
        numbered[at] = read_passage(place)
    return [numbered.get(at, Passage(text="")) for at in range(1, max(numbered, default=0) + 1)]


def read_passage(source: str | Path) -> Passage:
    """Return a web page or a file as a passage: HTML, PDF (extra ``web``) or text.

    Args:
        source: an address, which must be public, or the path of a file.

    Raises:
        PageError: the page cannot be read, or its address is private.
        InputError: the file cannot be read, is too large, or neither text nor PDF.
    """
    from spanlab.formats.files import check_file

    if isinstance(source, str) and is_address(source):
        page = wait(web_pages(Settings.read()).read(source))
        return Passage(text=page.text, title=page.title, url=page.url, date=page.date)
    path = Path(source)
    check_file(path)
    try:
        with path.open("rb") as file:
            return file_passage(str(path), file.read(MOST + 1))
    except FileNotFoundError:
        raise InputError(
            "there is no such file",
            file=str(source)[:200],
            expected="a file or a public web address; put a text into a file",
        ) from None
    except OSError as error:
        raise unreadable(path, error) from error


def file_passage(name: str, data: bytes) -> Passage:
    """Return a file's text as a passage: that of a PDF or web page (extra ``web``), or UTF-8.

    Raises:
        PageError: the PDF or web page cannot be read.
        InputError: it is too large, has no text, or is neither text nor PDF.
    """
    is_pdf = data.startswith(b"%PDF-")
    is_page = bool(_PAGE.match(data[:_HEAD])) or name.lower().endswith((".html", ".htm"))
    most = MOST if is_pdf else LONGEST
    if len(data) > most:
        raise InputError(f"larger than {most:,} bytes", file=name)
    if not (is_pdf or is_page):
        try:
            text = storable(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise InputError("neither PDF nor UTF-8 text", file=name) from None
        if not text.strip():
            raise InputError("this file has no text", file=name)
        return Passage(text=text)
    try:
        page = wait(read_apart(data, "application/pdf" if is_pdf else "text/html"))
    except PageError as error:
        raise PageError(f"{name}: {error}") from None
    if not page.text.strip():
        what = "PDF has no text: it may be scanned pages" if is_pdf else "page has no text"
        raise InputError(f"this {what}", file=name)
    return Passage(text=storable(page.text.replace("\0", "")), title=page.title or Path(name).name)


def typed_passages(text: str) -> Iterator[Passage]:
    """Yield what is typed into the box of passages: each line that is an address is a web page.

    The rest is one passage, or several where a line ``---`` separates them.

    Raises:
        PageError: a page cannot be read, or its address is private.
    """
    own: list[str] = []
    for line in (*text.splitlines(), _RULE):
        address = line.strip() if is_address(line.strip()) else None
        if address is None and line.strip() != _RULE:
            own.append(line)
            continue
        if block := "\n".join(own).strip():
            yield Passage(text=storable(block))
        own.clear()
        if address is not None:
            yield read_passage(address)
