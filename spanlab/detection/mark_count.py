"""How many answers a detector marks: where that is nearly all, it has to learn what is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from spanlab.schema import Annotation
from spanlab.text.labels import hard_of

LEAST: Final = 30  # answers to judge a detector by, and finished ones that it learns from
_NEARLY_ALL = 0.9


@dataclass
class MarkCount:
    """Counts the answers that a detector has finished, and those of them that it marks."""

    done: int = 0
    marked: int = 0

    def add(self, annotation: Annotation) -> None:
        """Count a finished annotation; one that only has doubts marks nothing."""
        self.done += 1
        self.marked += bool(hard_of(annotation))

    @property
    def is_nearly_all(self) -> bool:
        """Whether more than 90 % of 30 answers or more are marked."""
        return self.done >= LEAST and self.marked > _NEARLY_ALL * self.done

    def remark(self, dataset: str | None) -> str:
        """Say so, and what to do; without a dataset, files have to be imported first."""
        first = "" if dataset else "import the file, "
        return (
            f"marks {self.marked:,} of {self.done:,} answers, which is too many if most of them "
            f"are right: {first}review {LEAST}, then run spanlab fit {dataset or 'DATASET'}"
        )
