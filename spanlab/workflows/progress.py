"""How far a stream of records is, told while it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spanlab.schema import Record

_REPORT_EVERY = 1000  # items between two calls of `on_progress`


def reported(
    records: Iterable[Record],
    on_progress: Callable[[int], None] | None,
    every: int = _REPORT_EVERY,
) -> Iterator[Record]:
    """Yield ``records``, and call ``on_progress`` with their number after ``every`` so many."""
    for count, record in enumerate(records, start=1):
        yield record
        if on_progress is not None and count % every == 0:
            on_progress(count)
