"""Tabs of the page Compare that rooms bring."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from spanlab import doors
from spanlab.schema import Record
from spanlab.schema.datasets import DatasetSummary


@dataclass(frozen=True)
class Panel:
    """A tab of Compare, as a room offers it under "panels".

    Attributes:
        title: of the tab.
        order: its place among the tabs; Claims has 40.
        show: draws it for a dataset, and the names of the annotators that are chosen.
        in_record: whether a record has something to show; None where the dataset does not matter.
        is_there: whether there is anything to show, by what is known of the dataset at once.
    """

    title: str
    order: int
    show: Callable[[DatasetSummary, Collection[str]], None]
    in_record: Callable[[Record], bool] | None = None
    is_there: Callable[[DatasetSummary], bool] = lambda _summary: True


def panels() -> tuple[Panel, ...]:
    """Return the tabs of all rooms."""
    return tuple(offer.load() for offer in doors.offers("panels"))
