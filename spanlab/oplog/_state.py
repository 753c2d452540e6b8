"""What a reviewer has made of an item so far."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from spanlab.schema import Annotation, Claim, Kind, Span, Status


class ReviewState(BaseModel):
    """A person's annotation with an id per span and claim, in the order in which they were made.

    ``noted`` are suggestions with a comment that are not decided: they are no part of the
    annotation, and a comment moves to the span once its suggestion is accepted or rejected.
    """

    model_config = ConfigDict(frozen=True)

    spans: dict[str, Span] = Field(default_factory=dict)
    rejected: tuple[Span, ...] = ()
    noted: tuple[Span, ...] = ()
    claims: dict[str, Claim] = Field(default_factory=dict)
    rejected_claims: tuple[Claim, ...] = ()
    status: Status = Status.NOT_ANNOTATED
    note: str | None = None

    @classmethod
    def of(cls, annotation: Annotation | None) -> ReviewState:
        """Return the state an imported annotation starts from; ids count up from ``i0``."""
        if annotation is None:
            return cls()
        return cls(
            spans={f"i{index}": span for index, span in enumerate(annotation.spans)},
            rejected=annotation.rejected,
            claims={f"i{index}": claim for index, claim in enumerate(annotation.claims)},
            rejected_claims=annotation.rejected_claims,
            status=annotation.status,
            note=annotation.note,
        )

    def annotation(self, annotator: str, kind: Kind = Kind.PERSON) -> Annotation:
        """Return what this state says as the annotation of ``annotator``, spans in text order."""
        return Annotation(
            annotator=annotator,
            kind=kind,
            status=self.status,
            spans=tuple(sorted(self.spans.values(), key=_place)),
            rejected=tuple(sorted(self.rejected, key=_place)),
            claims=tuple(self.claims.values()),
            rejected_claims=self.rejected_claims,
            # A review may take the note of an imported failure, but a failure has a reason.
            note=self.note or ("no reason was given" if self.status is Status.FAILED else None),
        )


def _place(span: Span) -> tuple[int, int, str]:
    return (span.start, span.end, span.label or "")
