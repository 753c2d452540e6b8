"""What a job is asked to do, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from spanlab.schema.usage import CallLimits

if TYPE_CHECKING:
    from spanlab.base.settings import Settings


class JobRequest(CallLimits, ABC):
    """What a job is asked to do, and within which limits; it is kept with the job as JSON.

    Each kind of job has one, which takes what people set by name: ``of(options, …)``. ``kind`` is
    the kind's name at its room's door.
    """

    kind: ClassVar[str]

    @property
    @abstractmethod
    def title(self) -> str:
        """What the job is called."""

    @abstractmethod
    def prepared(self, settings: Settings) -> JobRequest:
        """Return the request as it is queued, once it is clear that the job can be done.

        Raises:
            SpanlabError: it cannot; says what would be right.
        """
