"""A person who leaves, and what is said of what became of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from spanlab.output.figures import counted
from spanlab.storage import Store
from spanlab.storage.datasets import digest_of

UNREACHED: Final = (
    "not reached: files that were exported, backups and copies that an upgrade made (backups/), "
    "jobs, logs of servers, and what was sent to other programs"
)


def forget_person(store: Store, name: str, *, keep: bool = True) -> list[str]:
    """Put a pseudonym in place of a person's name in the whole database.

    Args:
        store: the annotation database, bound to who leads all datasets.
        name: of somebody who has logged in, was invited, or has annotated.
        keep: whether what they marked stays, under the pseudonym; otherwise it is deleted.

    Returns:
        What became of them, in sentences.

    Raises:
        AccessError: the actor does not lead all datasets, or is the person.
        NotFoundError: nobody is called so.
        StoreError: an import is under way.
    """
    forgotten = store.forget_person(name, keep=keep)
    digests = {version: digest_of(store, version) for version in forgotten.versions}
    for version, digest in digests.items():
        store.seal_version(version, digest)

    def sentences() -> Iterator[str]:
        marks = "stay under that name" if keep else "were deleted"
        yield f"they are {forgotten.pseudonym} now, versions and the log included; marks {marks}"
        for version, digest in digests.items():
            yield f"the SHA-256 of {version} is {digest} now"
        for table, count in forgotten.texts.items():
            yield f"the name is still in texts: {counted(count, 'row')} of {table}"
        if not forgotten.is_erased:
            yield (
                "the database may hold rows that are gone until it is vacuumed (PostgreSQL: VACUUM "
                "FULL; SQLite: once no other program has it open, run this for the next person, or "
                "sqlite3 spanlab.db VACUUM)"
            )
        yield UNREACHED

    return list(sentences())
