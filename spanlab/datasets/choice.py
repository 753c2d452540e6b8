"""Whose annotation is meant when several stand in a file and nobody was named."""

from __future__ import annotations

from typing import Literal

from spanlab.errors import InputError
from spanlab.schema import Annotation, Kind, Record, Status

Role = Literal["gold", "prediction"]

# Who is meant, the first tier that is there at all deciding.
_TIERS: dict[Role, tuple[frozenset[Kind], ...]] = {
    "gold": (frozenset({Kind.GOLD}), frozenset({Kind.DETECTOR, Kind.VOTE, Kind.PERSON})),
    "prediction": (
        frozenset({Kind.DETECTOR, Kind.VOTE}),
        frozenset({Kind.PERSON}),
        frozenset({Kind.GOLD}),
    ),
}


class Chooser:
    """Picks one annotator's finished annotations out of the records of a file.

    Args:
        annotator: whose; None chooses, and keeps to the same name in the whole file.
        role: what None chooses: "gold" the gold labels, else the only annotator; "prediction" the
            only detector or vote, else the only person, else the gold labels.
    """

    def __init__(self, annotator: str | None, role: Role) -> None:
        self._tiers = () if annotator is not None else _TIERS[role]
        self._chosen = annotator

    def done(self, record: Record) -> Annotation | None:
        """Return the finished annotation, or None if this item has none.

        A failed or skipped annotation is not "nothing found", so it is None too.

        Raises:
            InputError: nobody was named and several annotators could be meant.
        """
        self._look(record)
        annotation = None if self._chosen is None else record.by(self._chosen)
        if annotation is None or annotation.status is not Status.DONE:
            return None
        return annotation

    def _look(self, record: Record) -> None:
        for index, kinds in enumerate(self._tiers):
            names = [a.annotator for a in record.annotations if a.kind in kinds]
            if not names:
                continue
            if self._chosen is None and len(names) == 1:
                self._chosen = names[0]
                # Lower tiers no longer matter; a rival of this or a higher one would.
                self._tiers = self._tiers[: index + 1]
                return
            rivals = [name for name in names if name != self._chosen]
            if rivals:
                known = [] if self._chosen is None else [self._chosen]
                raise InputError(
                    f"item {record.item.id!r}: it is not clear whose annotation is meant",
                    found=", ".join([*known, *rivals]),
                    expected="the name of one annotator",
                )
