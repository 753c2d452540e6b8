"""Writes of reviewers: their operations on spans as a browser sends them, and added evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from spanlab.base.errors import StoreError, UsageError
from spanlab.base.fields import message_of, storable
from spanlab.base.runtime import submit
from spanlab.base.settings import Settings
from spanlab.oplog.operations import Operation, SentOperation, SetStatus
from spanlab.output.notices import notify
from spanlab.people.entrance import check_may_write, prepare_queue
from spanlab.schema import BY_HAND, Annotation, Item, Name, Passage, Retrieval, Status, joined
from spanlab.storage import Store
from spanlab.worklists.names import item_names

_LARGEST = 2**53 - 1  # of the numbers that JavaScript counts without gaps


class SentWrite(BaseModel):
    """One operation as a browser sends it, with its log and that log's length (``base``).

    ``item`` is what the browser calls it (see ``ItemNames``). ``reviewer`` is
    the annotator whose log it is; of gold labels, ``author`` is who adjudicates.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    session: Name
    seq: int = Field(ge=1, le=_LARGEST)
    base: int = Field(ge=0, le=_LARGEST)
    dataset: Name
    item: Name
    reviewer: Name
    author: Name | None = None
    op: Operation
    guidelines: int = Field(default=0, ge=0, le=2**31 - 1)
    seconds: float | None = Field(default=None, ge=0, le=_LARGEST)


@dataclass(frozen=True)
class WriteOutcome:
    """The outcome of one write: stored, or refused with the reason.

    ``stale`` says that the log had grown meanwhile: somebody else, or the same person in another
    tab, has changed the annotation.
    """

    session: str
    seq: int
    stored: bool
    reason: str | None = None
    stale: bool = False


def apply_writes(
    store: Store,
    sent: Iterable[Mapping[str, JsonValue]],
    reviewer: str,
    *,
    adjudicating: bool = False,
) -> list[WriteOutcome]:
    """Store the writes that a browser sends; sending one again does no harm.

    Args:
        store: the annotation database.
        sent: the outbox as it arrived, in the order of typing. Nothing in it is trusted.
        reviewer: the name under which the editor is open; writes under another are refused.
        adjudicating: whether that names gold labels, and each write must name its author.

    Returns:
        One outcome for every write that names its session and number; empty for none.
    """
    writes: list[SentWrite] = []
    outcomes: list[WriteOutcome] = []
    for raw in sent:
        try:
            write = SentWrite.model_validate(raw)
        except ValidationError as error:
            outcomes.extend(_refuse_unreadable(raw, error))
            continue
        if (write.author is not None) is not adjudicating:
            reason = "an adjudication, and it alone, says who decided"
            outcomes.append(WriteOutcome(write.session, write.seq, stored=False, reason=reason))
        elif write.reviewer == reviewer:
            writes.append(write)
        else:
            reason = f"made as {write.reviewer!r}, but {reviewer!r} is reviewing here now"
            outcomes.append(WriteOutcome(write.session, write.seq, stored=False, reason=reason))
    for (_, dataset, item), group in groupby(writes, key=_log_of):
        outcomes += _apply_to_log(store, (dataset, item, reviewer), list(group))
    return outcomes


def _log_of(write: SentWrite) -> tuple[str, str, str]:
    return (write.session, write.dataset, write.item)


def _apply_to_log(
    store: Store, log: tuple[str, str, str], writes: list[SentWrite]
) -> list[WriteOutcome]:
    dataset, name, reviewer = log
    batch = [
        SentOperation(
            session=w.session,
            seq=w.seq,
            base=w.base,
            operation=w.op,
            author=w.author,
            guidelines=w.guidelines,
            seconds=w.seconds,
        )
        for w in writes
    ]
    try:
        adjudicates = writes[0].author is not None
        if not adjudicates:
            prepare_queue(store, dataset, reviewer)
        item = item_names(store, dataset, reviewer, adjudicating=adjudicates).item(name)
        if not adjudicates:
            check_may_write(store, dataset, reviewer, item)
        refusals = store.apply(dataset, item, reviewer, batch).refused
    except (StoreError, UsageError) as error:
        return [WriteOutcome(w.session, w.seq, stored=False, reason=str(error)) for w in writes]
    refused = {refusal.seq: refusal for refusal in refusals}
    for w in writes:
        is_done = isinstance(w.op, SetStatus) and w.op.status is Status.DONE
        if is_done and w.seq not in refused:
            key = f"{w.session}-{w.seq}"
            notify("item done", key, dataset=dataset, item=item, annotator=reviewer)
    return [
        WriteOutcome(w.session, w.seq, stored=True)
        if w.seq not in refused
        else WriteOutcome(
            w.session,
            w.seq,
            stored=False,
            reason=refused[w.seq].reason,
            stale=refused[w.seq].stale,
        )
        for w in writes
    ]


def _refuse_unreadable(
    raw: Mapping[str, JsonValue], error: ValidationError
) -> Iterable[WriteOutcome]:
    session, seq = raw.get("session"), raw.get("seq")
    if isinstance(session, str) and isinstance(seq, int):
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        reason = storable(f"{field}: {message_of(first)}")
        yield WriteOutcome(storable(session), seq, stored=False, reason=reason)


_LONGEST = 1_000_000  # characters of a pasted text
_MOST_PASSAGES = 1_000  # of an item, before people may add no more to it
_PATIENCE = 1.0  # seconds that a person who adds a page waits for it at once


@dataclass(frozen=True)
class AddedEvidence:
    """Evidence that a person adds: the address of a page, or a text with an optional title."""

    url: str = ""
    text: str = ""
    title: str = ""


@dataclass(frozen=True)
class _ItemWithPassage:
    """An item with one more passage and no annotations, as the store saves findings."""

    item: Item
    annotations: tuple[Annotation, ...] = ()


def add_evidence(
    store: Store,
    dataset: str,
    item_id: str,
    added: AddedEvidence,
    settings: Settings | None = None,
    *,
    reviewer: str | None = None,
) -> bool:
    """Give an item one more passage, which all detectors read from then on.

    Args:
        store: the annotation database.
        dataset: name of the dataset.
        item_id: id of the item; adding a passage again changes nothing.
        added: the evidence. The page of an address without a text is fetched.
        settings: where pages are cached; None reads the environment.
        reviewer: who reviews the item; None for somebody who does not, such as an adjudicator.

    Returns:
        Whether it is stored. False while its page is still being fetched: call it again.

    Raises:
        NotFoundError: there is no such dataset or item.
        UsageError: there is neither an address nor a text, the text is too long, the item has all
            the evidence that it may have, the reviewer has a test to pass before, or others would
            tell check items by what a reviewer adds.
        PageError: the address is refused, or the page cannot be read.
        StoreError: the database refuses.
    """
    if reviewer is not None:
        check_may_write(store, dataset, reviewer, item_id)
        if store.settings(dataset).known is not None:
            raise UsageError(
                "reviewers add no evidence to a dataset with check items: others would see it, and "
                "tell check items by it. Ask its lead, who can add it on the page Adjudicate"
            )
    item = store.record(dataset, item_id).item
    if len(item.passages) >= _MOST_PASSAGES:
        raise UsageError(f"this item has {len(item.passages)} passages: that is as many as it may")
    passage = _make_passage(added, settings)
    if passage is None:
        return False
    retrieval = Retrieval(retriever=BY_HAND, queries=(passage.url,) if passage.url else ())
    # Storing merges it with what was added by hand before.
    bare = item.model_copy(update={"retrievals": ()})
    store.save_findings(dataset, [_ItemWithPassage(joined(bare, retrieval, [passage]))])
    return True


def _make_passage(added: AddedEvidence, settings: Settings | None) -> Passage | None:
    url, text = added.url.strip(), storable(added.text)
    title = storable(added.title).strip() or None
    if text.strip():
        if len(text) > _LONGEST:
            raise UsageError(
                f"the text has {len(text):,} characters, at most {_LONGEST:,} are kept"
            )
        return Passage(text=text, title=title, url=url or None)
    if not url:
        raise UsageError("give an address or a text")
    from spanlab.search.pages import web_pages

    reading = submit(web_pages(settings or Settings.read()).read(url))
    try:
        page = reading.result(_PATIENCE)
    except TimeoutError:
        return None  # once it is read it lies in the cache
    return Passage(text=page.text, title=title or page.title, url=url)
