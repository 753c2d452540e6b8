"""One round of the conversation between editor and Python, free of Streamlit.

The editor sends its whole outbox, where it is and what it already has; the answer says what
became of each write and carries what the editor lacks. Nothing is remembered between rounds, so
a round that is lost on the way costs nothing: the editor asks again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Final, cast

from pydantic import JsonValue

from spanlab.base.errors import SpanlabError
from spanlab.oplog.operations import Review
from spanlab.people.entrance import prepare_queue
from spanlab.review import queue as review
from spanlab.review import traces
from spanlab.review.span_editor.payload import (
    EditorMessage,
    EvidenceSent,
    ItemsWanted,
    TraceWanted,
    is_status,
    item_payload,
    item_row,
    trace_payload,
)
from spanlab.review.writes import AddedEvidence, add_evidence, apply_writes
from spanlab.schema import QueueQuery, Status
from spanlab.storage.store import Store
from spanlab.worklists import entrances
from spanlab.worklists.names import ItemNames, item_names

_OWN_ORDERS: Final = ("import", "status", "passages")  # the others tell what others said


@dataclass(frozen=True)
class ReviewQueue:
    """Where a reviewer is: a dataset and a queue in it; ``entry`` is an item that the URL names.

    Where an ``author`` adjudicates, the queue's reviewer names the gold labels that this makes.
    ``decided_at_once`` counts what changed many items behind the editor's back.
    """

    dataset: str
    query: QueueQuery
    entry: str | None
    author: str | None = None
    decided_at_once: int = 0

    @property
    def reviewer(self) -> str:
        """The name under which this person reviews."""
        return self.query.reviewer

    @property
    def adjudicating(self) -> bool:
        """Whether gold labels are made from what others said."""
        return self.author is not None

    @cached_property
    def id(self) -> str:
        """A name for dataset, reviewer and filters, whichever item the URL asked for."""
        sample, fields = self.query.sample, asdict(replace(self.query, sample=())).items()
        queue = {
            "dataset": self.dataset,
            "query": {name: value for name, value in fields if value not in (None, False, ())},
            "author": self.author,
            "decided_at_once": self.decided_at_once,
            **({"sample": sha256("\0".join(sample).encode()).hexdigest()} if sample else {}),
        }
        return json.dumps(queue, sort_keys=True, default=str)


@dataclass(frozen=True)
class EditorReply:
    """Python's answer to the editor; ``open`` is the item that the editor shows from here on."""

    open: str | None
    json: dict[str, JsonValue]


def exchange(store: Store, place: ReviewQueue, sent: EditorMessage) -> EditorReply:
    """Apply what was sent and answer with what the editor lacks.

    Args:
        store: the annotation database.
        place: where the page's widgets and the URL say that the reviewer is.
        sent: what arrived; an editor that knows nothing yet sends ``EditorMessage()``.

    Raises:
        NotFoundError: the dataset was deleted meanwhile.
    """
    outcomes = apply_writes(store, sent.writes, place.reviewer, adjudicating=place.adjudicating)
    is_same_place = sent.place == place.id
    names = item_names(store, place.dataset, place.reviewer, adjudicating=place.adjudicating)
    if place.query.listed and (sent.near or not is_same_place):
        prepare_queue(
            store, place.dataset, place.reviewer, place.query.sample, anew=not is_same_place
        )
    added = _add_evidence(place, names, sent.evidence) if is_same_place and sent.evidence else None
    item, about = _choose_item(place, names, sent if is_same_place else EditorMessage())
    name = None if item is None else names.name(item)
    answer: dict[str, JsonValue] = {
        "attempt": sent.attempt,
        "place": {
            "id": place.id,
            "dataset": place.dataset,
            "reviewer": place.reviewer,
            "author": place.author,
            "blind": place.query.blind,
            "decided_at_once": place.decided_at_once,
        },
        "open": name,
        "empty": None if item else _explain_empty(store, place),
        "results": [asdict(outcome) for outcome in outcomes],
        "progress": None,
        "trace": _read_trace(place, names, sent.trace) if is_same_place and sent.trace else None,
        "evidence_added": added,
        "guidelines_read": None
        if is_same_place and not sent.confirmed
        else _confirm_guidelines(store, place, sent.confirmed),
        "items_found": _list_items(place, names, sent.items)
        if is_same_place and sent.items
        else None,
        "standing": None,
        **about,
    }
    if is_same_place and (shown_anew := _reread_decided(place, names, sent)):
        answer["items"] = [*cast("list[JsonValue]", answer["items"]), *shown_anew]
    # A refusal may mean that the whole dataset is gone; asking how far it is finds out.
    refused = not all(outcome.stored for outcome in outcomes)
    if not is_same_place or sent.near or refused or any(map(is_status, sent.writes)):
        how_far = review.progress(
            store, place.dataset, place.reviewer, adjudicating=place.adjudicating
        )
        answer["progress"] = asdict(how_far)
    if item is not None and (sent.standing or not is_same_place):
        stands = review.standing(store, place.dataset, place.query, item)
        answer["standing"] = {"item": name, **asdict(stands)}
    return EditorReply(name, answer)


def _choose_item(
    place: ReviewQueue, names: ItemNames, sent: EditorMessage
) -> tuple[str | None, dict[str, JsonValue]]:
    """Return the id of the item to show, with what the editor lacks of it.

    That is where the editor is, else what the URL asks for, else where the queue begins; an item
    that is gone is passed over.
    """
    for name in (sent.open, place.entry):
        item = names.find(name)
        if item is not None:
            return item, _collect_lacking(place, names, sent, item)
        if name is not None:
            sent = EditorMessage()
    first_id = review.first_item(names.store, place.dataset, place.query)
    if first_id is None:
        return None, {"items": [], "versions": {}, "near": {}, "taken": None}
    return first_id, _collect_lacking(place, names, EditorMessage(), first_id)


def _collect_lacking(
    place: ReviewQueue, names: ItemNames, sent: EditorMessage, item: str
) -> dict[str, JsonValue]:
    """Return the items, versions and neighbours that the editor lacks at ``item``."""
    store, ahead = names.store, names.find(sent.ahead)
    here = {each: names.name(each) for each in (item, ahead) if each is not None}
    wanted_ids = [each for each, name in here.items() if name not in sent.have]
    checked_ids = [item] if sent.check and here[item] in sent.have else []
    reviews = {each: _open_item(store, place, each) for each in (*wanted_ids, *checked_ids)}
    holders: tuple[str, ...] = ()
    if item in reviews:  # also what was asked for by name is reserved, or it is said who has it
        holders = review.reserve_item(store, place.dataset, place.query, item)
        if reviews[item].state.status is not Status.NOT_ANNOTATED:
            holders = ()
    beside = [each for each in (item if sent.near else None, ahead) if each]
    taken: dict[str, JsonValue] = {"item": here[item], "by": list(holders)}
    return {
        "taken": taken if holders else None,
        "items": [item_payload(reviews[each], place.reviewer, here[each]) for each in wanted_ids],
        "versions": {here[each]: reviews[each].version for each in checked_ids},
        "near": {here[each]: _name_neighbours(place, names, each) for each in beside},
    }


def _name_neighbours(place: ReviewQueue, names: ItemNames, item: str) -> JsonValue:
    found = review.neighbours(names.store, place.dataset, place.query, item)
    near = asdict(found).items()
    return {side: None if each is None else names.name(each) for side, each in near}


def _read_trace(place: ReviewQueue, names: ItemNames, request: TraceWanted) -> dict[str, JsonValue]:
    traced_annotation, item = None, names.find(request.item)
    if item is not None:
        record = _open_item(names.store, place, item).record
        if record.by(request.annotator) is not None:
            traced_annotation = traces.traced_annotation(
                names.store, place.dataset, item, request.annotator
            )
    return {
        "item": request.item,
        "annotator": request.annotator,
        "about": None if traced_annotation is None else trace_payload(traced_annotation),
    }


def _confirm_guidelines(store: Store, place: ReviewQueue, confirmed: int) -> int:
    """Store which version of the guidelines a person confirms, and return the newest that is."""
    person = place.author or place.reviewer
    if 0 < confirmed <= len(store.settings(place.dataset).guidelines):
        entrances.confirm_read(store, place.dataset, person, confirmed)
    versions = (
        reading.version
        for reading in entrances.readings(store, place.dataset)
        if reading.reviewer == person
    )
    return max(versions, default=0)


def _add_evidence(place: ReviewQueue, names: ItemNames, sent: EvidenceSent) -> dict[str, JsonValue]:
    """Add a passage to an item; sending it again does no harm."""
    added = AddedEvidence(sent.url, sent.text, sent.title)
    is_stored, problem = False, None
    try:
        by = None if place.author else place.query.reviewer
        item = names.item(sent.item)
        is_stored = add_evidence(names.store, place.dataset, item, added, reviewer=by)
    except SpanlabError as error:
        problem = str(error)
    return {"number": sent.number, "item": sent.item, "there": is_stored, "problem": problem}


def _list_items(place: ReviewQueue, names: ItemNames, request: ItemsWanted) -> dict[str, JsonValue]:
    order = request.order or place.query.order
    if place.query.own_only and order not in _OWN_ORDERS:
        order = place.query.order
    query = replace(
        place.query,
        text=" ".join(filter(None, (place.query.text, request.text))) or None,
        status=request.status or place.query.status,
        label=request.label or place.query.label,
        order=order,
        reverse=request.reverse,
        after=request.after,
        before=request.before,
    )
    queue_page = review.items(names.store, place.dataset, query)
    return {
        "number": request.number,
        "order": query.order,
        "reverse": query.reverse,
        "rows": [
            item_row(row, names.name(row.item_id), own_only=query.own_only)
            for row in queue_page.rows
        ],
        "previous": None if queue_page.previous is None else asdict(queue_page.previous),
        "next": None if queue_page.next is None else asdict(queue_page.next),
    }


def _open_item(store: Store, place: ReviewQueue, item: str) -> Review:
    return review.open_item(
        store, place.dataset, item, place.query, adjudicating=place.adjudicating
    )


def _reread_decided(place: ReviewQueue, names: ItemNames, sent: EditorMessage) -> list[JsonValue]:
    """Return the items just finished or reopened, where that decides what is shown of others."""
    if not place.query.shown_when_done:
        return []
    found = {name: names.find(name) for name in sent.decided}
    return [
        item_payload(_open_item(names.store, place, item), place.reviewer, name)
        for name, item in found.items()
        if item is not None
    ]


def _explain_empty(store: Store, place: ReviewQueue) -> str:
    """Say why there is no item, and what to do."""
    if not sum(store.counts(place.dataset, place.reviewer).values()):
        return "This dataset has no items. Import some on the Datasets page."
    if place.query.listed and not place.query.reserve:
        how_far = review.progress(store, place.dataset, place.reviewer)
        if not how_far.total:
            return "Nothing in this dataset is assigned to you. Ask the lead."
    if place.query.share is not None:
        return "You have finished everything assigned to you."
    if place.query.reserve and not (place.query.narrows and store.settings(place.dataset).known):
        return "Nothing left for you: other people have finished or reserved the remaining items."
    if place.query.status is not None:
        return (
            "No item of this kind is left. The queue is finished, or the filter is too narrow: "
            "choose another state under Queue."
        )
    return "No item fits this filter. Widen it under Queue."
