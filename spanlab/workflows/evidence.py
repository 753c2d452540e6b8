"""Evidence that people add to an item by hand: a page by its address, or text that they paste."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.errors import UsageError
from spanlab.runtime import submit
from spanlab.schema import BY_HAND, Annotation, Item, Passage, Retrieval, joined, storable
from spanlab.settings import Settings
from spanlab.storage import Store

_LONGEST = 1_000_000  # characters of a pasted text
_PATIENCE = 1.0  # seconds that whoever adds a page waits for it at once


@dataclass(frozen=True)
class AddedEvidence:
    """What somebody wants to add: an address, or a text with a title where it has one."""

    url: str = ""
    text: str = ""
    title: str = ""


@dataclass(frozen=True)
class _ItemWithPassage:
    """An item with one more passage, of which nobody says anything yet."""

    item: Item
    annotations: tuple[Annotation, ...] = ()


def add_evidence(
    store: Store, dataset: str, item_id: str, added: AddedEvidence, settings: Settings | None = None
) -> bool:
    """Give an item one more passage, which all detectors read from then on.

    Args:
        store: the annotation database.
        dataset: its name.
        item_id: the item; adding what it has already changes nothing.
        added: what to add. Of an address without a text the page is fetched.
        settings: where pages are cached; None reads the environment.

    Returns:
        Whether it is there. False while its page is still being read, which goes on: ask again.

    Raises:
        NotFoundError: there is no such dataset or item.
        UsageError: there is neither an address nor a text, or the text is too long.
        PageError: the address is refused, or the page cannot be read.
        StoreError: the database refuses.
    """
    item = store.record(dataset, item_id).item
    passage = _passage(added, settings)
    if passage is None:
        return False
    asked = Retrieval(retriever=BY_HAND, queries=(passage.url,) if passage.url else ())
    # Storing merges it with what was added by hand before.
    bare = item.model_copy(update={"retrievals": ()})
    store.save_findings(dataset, [_ItemWithPassage(joined(bare, asked, [passage]))])
    return True


def _passage(added: AddedEvidence, settings: Settings | None) -> Passage | None:
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
    from spanlab.retrievers.pages import web_pages

    reading = submit(web_pages(settings or Settings.read()).read(url))
    try:
        page = reading.result(_PATIENCE)
    except TimeoutError:
        return None  # once it is read it lies in the cache
    return Passage(text=page.text, title=title or page.title, url=url)
