"""What every detector is: something with a name that annotates an item."""

from __future__ import annotations

from typing import Protocol

from spanlab.schema import Annotation, Item


class Detector(Protocol):
    """Finds hallucinated spans; a detector keeps no state between items and may be shared."""

    @property
    def name(self) -> str:
        """The name it is asked for by, and signs its annotations with."""
        ...

    def annotate(self, item: Item) -> Annotation:
        """Mark what is likely hallucinated in the item's answer.

        Args:
            item: question, answer and, if there are any, the passages to judge it by.

        Returns:
            An annotation of this detector that fits the item. Done without spans means that it
            looked and found nothing; failed means that it could not look, and says why.
        """
        ...
