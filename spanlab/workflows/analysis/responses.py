"""Agreement on what a dataset asks, question by question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spanlab.schema import AnnotatorKind, DatasetSettings, Question, Record, Response, Status
from spanlab.scorers.raters import ResponseAgreement, matched_spans, response_agreement

MATCHED: Final = (
    "Of attributes the number is of spans: spans of one label that overlap, also through others, "
    "are the same, and of several of one annotator the longest counts."
)
ALPHAS: Final = (
    "Choices are compared as equal or not, scales by rank (ordinal); texts are left out."
)


@dataclass(frozen=True)
class QuestionAgreement:
    """Agreement on a question, or on an attribute of matched spans (see ``matched_spans``)."""

    question: Question
    of_spans: bool
    persons: ResponseAgreement
    independent: ResponseAgreement

    @property
    def line(self) -> str:
        """What is agreed on, in words."""
        what = "attribute" if self.of_spans else "question"
        return f"{what}: {self.question.shown} ({self.question.kind})"


class ResponseTally:
    """Collects responses item by item: of choices and scales, by those who finished."""

    def __init__(self, kinds: Mapping[str, AnnotatorKind], settings: DatasetSettings) -> None:
        self._kinds = kinds
        asked = [(attribute, True) for attribute in settings.attributes]
        asked += [(question, False) for question in settings.questions]
        self._asked = [
            (question, of_spans) for question, of_spans in asked if question.kind != "text"
        ]
        self._units: dict[str, list[dict[str, Response]]] = defaultdict(list)

    def add(self, record: Record) -> None:
        """Take in an item."""
        if not self._asked:
            return
        done = [one for one in record.annotations if one.status is Status.DONE]
        whole = {one.annotator: one.responses for one in done}
        matched = list(matched_spans(done))
        for asked, of_spans in self._asked:
            spans = (
                {name: span.attributes for name, span in group.items()}
                for group in matched
                if asked.is_asked_of(next(iter(group.values())).label)
            )
            for given in spans if of_spans else [whole]:
                fitting = {
                    name: responses[asked.name]
                    for name, responses in given.items()
                    if asked.is_answered_in(responses)
                }
                if len(fitting) > 1:
                    self._units[asked.name].append(fitting)

    def result(self) -> tuple[QuestionAgreement, ...]:
        """Return the agreement on each question, attributes first."""
        people = (AnnotatorKind.PERSON,)
        both = (AnnotatorKind.PERSON, AnnotatorKind.DETECTOR)
        return tuple(
            QuestionAgreement(asked, of_spans, self._of(asked, people), self._of(asked, both))
            for asked, of_spans in self._asked
        )

    def _of(self, asked: Question, wanted: tuple[AnnotatorKind, ...]) -> ResponseAgreement:
        units = (
            [response for name, response in unit.items() if self._kinds.get(name) in wanted]
            for unit in self._units[asked.name]
        )
        return response_agreement(units, ordinal=asked.kind == "scale")
