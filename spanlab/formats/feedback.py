"""Feedback that traces and logs of evaluations carry, as verdicts on whole answers.

    "scores": [{"name": …, "value": …, "source": "ANNOTATION"}]                        Langfuse
    "annotations": [{"name": …, "annotator_kind": "HUMAN", "result": {"label": …}}]     Phoenix
    "assessments": [{"assessment_name": …, "feedback": {"value": …}, "source": {…}}]    MLflow
    "feedback": [{"key": …, "score": …, "feedback_source": {"type": "app"}}]            LangSmith
    "scores": {scorer: {"value": "C", …}}                                               Inspect
    "results": [{"name": …, "passed": true}]                                            OpenAI

A name and a value that say it by themselves (``verdict_in``) are a verdict: of a person, where the
program says so or a user gave it, else of a judge. Shares and judgements on other questions stay
where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from spanlab.formats.columns import words_of
from spanlab.formats.verdict_columns import verdict_in
from spanlab.schema import Annotation, AnnotatorKind

_LISTS: Final = ("scores", "annotations", "assessments", "feedback", "results")
_AROUND: Final = ("info", "trace_info", "trace")  # objects that these may be in
_NAMES: Final = ("name", "assessment_name", "key")
_GRADES: Final = {"C": False, "I": True}  # of Inspect: correct and incorrect
_HUMAN: Final = frozenset(("human", "annotation", "app"))
_OF_USERS: Final = frozenset(("user", "users", "thumbs", "thumb", "human", "customer"))


class _Feedback(NamedTuple):
    """One piece of feedback: what it is called, who gave it, and whether that says hallucinated."""

    name: str
    source: str
    giver: str
    hallucinated: bool | None


def feedback_in(record: Mapping[str, Any]) -> tuple[Annotation, ...]:
    """Return the verdicts that the feedback in a record says, one an annotator."""
    by_name: dict[str, Annotation] = {}
    places = [record, *(record.get(name) for name in _AROUND)]
    for place in places:
        for given in _listed(place) if isinstance(place, Mapping) else ():
            if given.hallucinated is None:
                continue
            is_user = not _OF_USERS.isdisjoint(words_of(given.name).split())
            is_person = given.source in _HUMAN or (given.source in ("", "api") and is_user)
            name = given.giver if is_person and given.giver else given.name
            by_name.setdefault(
                name,
                Annotation(
                    annotator=name,
                    kind=AnnotatorKind.PERSON if is_person else AnnotatorKind.DETECTOR,
                    answer_hallucinated=given.hallucinated,
                ),
            )
    return tuple(by_name.values())


def _listed(record: Mapping[str, Any]) -> Iterator[_Feedback]:
    for field in _LISTS:
        listed = record.get(field)
        if isinstance(listed, Mapping) and field == "scores":
            for name, score in listed.items():
                grade = score.get("value") if isinstance(score, Mapping) else None
                called = _GRADES.get(grade) if isinstance(grade, str) else None
                yield _Feedback(str(name), "code", "", called)
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, Mapping) and (given := _read(entry)) is not None:
                yield given


def _read(entry: Mapping[str, Any]) -> _Feedback | None:
    name = next((str(entry[key]) for key in _NAMES if isinstance(entry.get(key), str)), "").strip()
    if not name:
        return None
    source = entry.get("source", entry.get("feedback_source", entry.get("annotator_kind", "")))
    about = source if isinstance(source, Mapping) else {"type": source}
    kind = str(about.get("source_type") or about.get("type") or "").lower()
    giver = about.get("source_id") or about.get("user_id") or ""
    if isinstance(entry.get("passed"), bool):
        return _Feedback(name, kind or "code", "", not entry["passed"])
    inner: Mapping[str, Any] = next(
        (entry[at] for at in ("feedback", "result") if isinstance(entry.get(at), dict)), {}
    )
    values = (
        *(entry.get("stringValue"), inner.get("label"), inner.get("value"), entry.get("value")),
        *(entry.get("label"), inner.get("score"), entry.get("score")),
    )
    said = (verdict_in(name, value) for value in values if not isinstance(value, dict | list))
    return _Feedback(name, kind, str(giver), next((one for one in said if one is not None), None))
