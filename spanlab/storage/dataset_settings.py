"""What a dataset says of how it is annotated: one JSON column of its row."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from spanlab.fields import Frozen, Name, unique
from spanlab.storage.label_sets import USUAL_LABELS, Label


class Undecided(StrEnum):
    """What becomes of suggestions that a reviewer has not decided when an item is Done."""

    REJECTED = "rejected"
    LIKELY = "likely"  # accepted where they are over 50 % probable, else rejected
    ASK = "ask"  # the reviewer says which of the two, item by item


class DatasetSettings(Frozen):
    """The settings of a dataset; what is not stored takes the default.

    ``overlap`` is how many people are to finish each item, 0 for any number. Review then offers
    reviewers what they have not finished: without ``assigned_to`` what fewer have finished or been
    offered (an item is reserved for an hour, and for another one with every edit), with it what is
    assigned to them (see ``Share``). A link opens any item, whoever has it.
    ``always_blind`` takes from reviewers the choice to see what other people marked, and with
    ``shown_when_done`` they see it of items that they have finished.
    ``guidelines`` are all texts that the guidelines have had, in Markdown, oldest first: the
    version that an annotation names is a place in it, counted from 1.
    """

    undecided: Undecided = Undecided.REJECTED
    labels: tuple[Label, ...] = USUAL_LABELS
    label_required: bool = False
    always_blind: bool = False
    shown_when_done: bool = False
    overlap: Annotated[int, Field(ge=0, le=100)] = 0
    assigned_to: tuple[Name, ...] = ()
    guidelines: tuple[Annotated[str, Field(max_length=100_000)], ...] = ()

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        unique((label.name for label in self.labels), "label")
        unique(self.assigned_to, "the person")
        if self.assigned_to and not self.overlap:
            raise ValueError("items are assigned to people, but to how many each is not said")
        unique((label.key for label in self.labels if label.key), "the key of a label:")
        return self

    @property
    def guidelines_now(self) -> str:
        """The newest guidelines, empty for none."""
        return self.guidelines[-1] if self.guidelines else ""

    def with_guidelines(self, text: str) -> Self:
        """Return the settings with ``text`` as the newest guidelines; no version if it is that."""
        if text == self.guidelines_now:
            return self
        return self.model_copy(update={"guidelines": (*self.guidelines, text)})
