"""Queries for a queue of items, and the pages that answer them."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Literal

from spanlab.base.errors import UsageError
from spanlab.schema.record import Status

Order = Literal[
    "import",
    "disagreement",
    "disputed",
    "probability",
    "uncertainty",
    "status",
    "labels",
    "claims",
    "passages",
]


@dataclass(frozen=True)
class QueueCursor:
    """A place in a queue: an item's position and the value then that the queue is ordered by.

    In a reviewer's own list, or in a sample, the position is the item's place there.
    """

    position: int
    value: float | None = None


@dataclass(frozen=True)
class AssignedShare:
    """The items assigned to one person of several, by their places in the import order.

    Every item is assigned to ``each`` of the ``people``, or to all where there are fewer; of any
    ``people`` successive items, from a multiple of that number on, everybody gets as many. Who
    shares items with whom changes from one such round to the next. The people stand in a ring; the
    item at place p goes to the one at p and to those one step on, two steps on, … The step is
    another one in every round, and prime to the number of people, so that it leads to all of them.
    What those who are ``away``, by number and name, have not finished goes to who comes next.

    Raises:
        UsageError: ``number`` is not that of one of the people, counted from 0.
    """

    number: int
    people: int
    each: int
    away: tuple[tuple[int, str], ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.number < self.people:
            raise UsageError(f"person {self.number} is none of {self.people}")

    @property
    def steps(self) -> list[int]:
        """The steps of all rounds."""
        return [step for step in range(1, self.people + 1) if gcd(step, self.people) == 1]

    @property
    def steps_back(self) -> list[int]:
        """The inverses, modulo ``people``, of the steps of all rounds."""
        return [pow(step, -1, self.people) for step in self.steps]


@dataclass(frozen=True, kw_only=True)
class QueueQuery:
    """A filter over the items of a dataset, as one reviewer sees them; None lets all through.

    ``status`` is the reviewer's own. ``min_prob`` and ``max_prob`` bound the highest span
    probability of ``detector`` (of any detector if None), where it has finished: 0 means that it
    found nothing; items it has not annotated have none and are left out. ``detector_status``
    needs ``detector``. ``min_annotators`` and ``max_annotators`` bound how many persons have
    finished the item, and ``unfinished`` leaves out what the reviewer has. With ``reserve`` it is
    the queue of the dataset's plan: without what enough people have finished or reserved, and what
    comes next is reserved for its reviewer. ``share`` leaves the items that are assigned to the
    reviewer. All bounds are inclusive.

    ``listed`` leaves the items of the reviewer's own list, where the dataset has a plan or check
    items: it holds what the plan gives them, with check items among it that no plan gives, and
    ``import`` is its order then.

    ``sample`` leaves the items with these ids, in this order, where no other one is asked for.

    ``unplaced`` leaves the items that somebody calls hallucinated as a whole and no person, gold
    labels or vote has a span in: where their hallucinations are is still to be said.

    ``text`` is looked for in questions, answers, ids and comments: all of its words, or beginnings
    of words, must stand in one of these texts. ``label`` is one of some span of the item.

    ``blind`` queues know of no disagreement but that of detectors: not of what people said.
    ``text`` and ``label`` are then looked for in what detectors and the reviewer said. It selects
    nothing, but with ``shown_when_done`` items that the reviewer has finished are shown whole.

    ``own_only`` leaves of an item what the reviewer said: not even detectors' marks are known.

    ``order`` "status" begins with what the reviewer has not annotated, "import" with the first;
    the others begin with the highest (disagreement, probability, or number of labels, claims or
    passages; "uncertainty": how close the probability is to one half; "disputed": disagreement,
    with the items on which people are unanimous at the end). ``reverse`` turns that round; items
    without a value come last either way, and ties are in import order. ``after`` and ``before``
    (one of them) are places in that order, exclusive; ``limit`` is at most 1,000.

    Raises:
        UsageError: the fields contradict each other, or ``limit`` is out of range.
    """

    reviewer: str
    lang: str | None = None
    status: Status | None = None
    detector: str | None = None
    detector_status: Status | None = None
    min_prob: float | None = None
    max_prob: float | None = None
    min_disagreement: float | None = None
    min_annotators: int | None = None
    max_annotators: int | None = None
    unfinished: bool = False
    reserve: bool = False
    share: AssignedShare | None = None
    listed: bool = False
    sample: tuple[str, ...] = ()
    text: str | None = None
    label: str | None = None
    unplaced: bool = False
    blind: bool = False
    shown_when_done: bool = False
    own_only: bool = False
    order: Order = "import"
    reverse: bool = False
    after: QueueCursor | None = None
    before: QueueCursor | None = None
    limit: int = 50

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= 1000:
            raise UsageError(f"limit {self.limit} is not between 1 and 1000")
        if self.after is not None and self.before is not None:
            raise UsageError("a page is after a place or before one, not both")
        if self.detector_status is not None and self.detector is None:
            raise UsageError("detector_status needs the name of a detector")

    @property
    def narrows(self) -> bool:
        """Whether it goes by what was said in items or of them, such as by a text."""
        probs = self.min_prob, self.max_prob, self.min_disagreement
        said = *probs, self.detector_status, self.text, self.label
        return self.unplaced or said != (None,) * len(said)


@dataclass(frozen=True)
class QueueRow:
    """An item as a list shows it; ``position`` is its place in the dataset, or in one's own list.

    ``question`` and ``answer`` are their beginnings, in one line. ``status`` is the reviewer's.
    ``max_prob`` is the value that the query bounds, None where no detector has finished;
    ``disagreement`` is None with fewer than two finished annotations. ``labels`` are those of all
    spans, ``n_claims`` is the highest number of claims of one annotator; a blind query counts
    detectors and the reviewer. ``n_judges`` of people and gold labels have finished it,
    ``n_hallucinated`` of them call the answer hallucinated, both 0 where none judges it as a whole;
    a blind query counts the reviewer alone.
    ``value`` is what the query orders by.
    """

    item_id: str
    position: int
    lang: str
    question: str
    answer: str
    status: Status
    max_prob: float | None
    disagreement: float | None
    n_passages: int = 0
    n_claims: int = 0
    labels: tuple[str, ...] = ()
    n_judges: int = 0
    n_hallucinated: int = 0
    value: float | None = None

    @property
    def cursor(self) -> QueueCursor:
        """The row's own place in the order of its query."""
        return QueueCursor(self.position, self.value)


@dataclass(frozen=True)
class QueuePlace:
    """Which item of a queue one is, from 1, of how many; None for one that is not in the queue."""

    number: int | None
    total: int


@dataclass(frozen=True)
class QueuePage:
    """Some rows of a queue; ``previous`` and ``next`` are None where the queue ends.

    ``previous`` is for ``QueueQuery.before``, ``next`` for ``QueueQuery.after``.
    """

    rows: tuple[QueueRow, ...]
    previous: QueueCursor | None
    next: QueueCursor | None
