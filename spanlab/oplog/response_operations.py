"""What a reviewer responds to the questions of a dataset."""

from __future__ import annotations

from typing import Literal

from spanlab.oplog.state import BaseEdit, ReviewState, change_span, own_span
from spanlab.schema import DatasetSettings, Item, Name, Response


class Respond(BaseEdit):
    """Answer a question on one of the reviewer's own spans, or with ``span`` None on the item.

    Without a ``response`` the one there is goes.
    """

    kind: Literal["respond"] = "respond"
    span: Name | None = None
    question: Name
    response: Response | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        before = state.responses if self.span is None else own_span(state, self.span).attributes
        left = {name: given for name, given in before.items() if name != self.question}
        given = left if self.response is None else {**left, self.question: self.response}
        if self.span is None:
            return state.model_copy(update={"responses": given})
        return change_span(state, self.span, {"attributes": given})

    def problem(self, settings: DatasetSettings) -> str | None:
        """Say why the settings of the dataset do not allow this, if they do not."""
        asked = settings.questions if self.span is None else settings.attributes
        for question in asked:
            if question.name == self.question:
                return None if self.response is None else question.problem(self.response)
        return f"this dataset does not ask {self.question!r} (any more)"
