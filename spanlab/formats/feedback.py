"""Feedback that traces and logs of evaluations carry, as verdicts on whole answers.

    "scores": [{"name": …, "value": …, "source": "ANNOTATION"}]                        Langfuse
    "annotations": [{"name": …, "annotator_kind": "HUMAN", "result": {"label": …}}]     Phoenix
    "assessments": [{"assessment_name": …, "feedback": {"value": …}, "source": {…}}]    MLflow
    "feedback": [{"key": …, "score": …, "feedback_source": {"type": "app"}}]            LangSmith
    "feedback_stats": {key: {"n": 1, "avg": 0.0}}                          LangSmith, of its runs
    "scores": {scorer: {"value": "C", …}}                                               Inspect
    "scores": {scorer: 1}                                                           Braintrust
    "feedback_scores": [{"name": "hallucination_metric", "value": 1.0}]                   Opik
    "results": [{"name": …, "passed": true}]                                            OpenAI
    "annotations": [{"annotator": "ann", "label": "hallucinated"}]                   of many
    "votes": {"ann": "hallucinated", "bob": "faithful"}                              of many

A name and a value that say it by themselves (``verdict_in``) are a verdict: of a person, where the
program says so or a user gave it, else of a judge. Scales need a threshold (``--hallucinated-if``);
they and judgements on other questions are kept as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, Final, NamedTuple

from spanlab.formats.columns import Samples, words_of
from spanlab.formats.verdict_columns import (
    Rules,
    VerdictColumn,
    VerdictColumns,
    annotator_kind,
    counts_in_words,
    described,
    may_judge,
    named_values,
    unclear,
    values_by_name,
    verdict_in,
)
from spanlab.formats.verdict_words import NO, YES, tells
from spanlab.formats.vocabulary import words_in
from spanlab.output.figures import named_ids
from spanlab.schema import Annotation, AnnotatorKind

_LISTS: Final = words_in("judged", "lists")
_JUDGES: Final = words_in("judged", "judges")
_PLACED: Final = frozenset(("start", "end", "span", "spans", "text"))  # not of the whole answer
_BY_NAME: Final = words_in("judged", "by_name")
_BY_PEOPLE: Final = frozenset(words_in("judged", "by_people"))
_QUALITIES: Final = frozenset(
    word
    for name in ("bad", "good", "measures", "nameless", "qualities")
    for word in words_in("judged", name)
)
_NAMED: Final = 5  # annotators that a remark names
_AROUND: Final = ("info", "trace_info", "trace")  # objects that these may be in
_NAMES: Final = ("name", "assessment_name", "key")
_GRADES: Final[dict[object, bool]] = {"C": False, "I": True}  # of Inspect: correct and incorrect
_HUMAN: Final = frozenset(("human", "annotation", "app"))
_OF_USERS: Final = frozenset(("user", "users", "thumbs", "thumb", "human", "customer"))


Entry = Mapping[str, Any]  # one piece of feedback as a program writes it


class Feedback(NamedTuple):
    """One piece of feedback: its name and value, and the verdict that it is; None for none."""

    name: str
    value: Any
    verdict: Annotation | None


def feedback_in(record: Mapping[str, Any]) -> Iterator[Entry]:
    """Yield the feedback in a record, or in what describes it, each piece with its name."""
    for place in (record, *(record.get(name) for name in _AROUND)):
        if not isinstance(place, Mapping):
            continue
        for field in _LISTS:
            listed = place.get(field)
            for entry in listed if isinstance(listed, list) else ():
                if isinstance(entry, Mapping) and name_of(entry):
                    yield entry
        for field in _BY_NAME:
            named = place.get(field)
            for name, entry in named.items() if isinstance(named, Mapping) else ():
                if isinstance(entry, Mapping | str | int | float):
                    said = entry if isinstance(entry, Mapping) else {"value": entry}
                    yield {**said, "name": str(name)}


def fields_with_verdicts(record: Mapping[str, Any], rules: Rules | None) -> Iterator[str]:
    """Yield the fields of a record whose feedback is read as verdicts."""
    for name in (*_LISTS, *_BY_NAME, *_AROUND):
        held = {name: record.get(name)}
        if verdicts_of(read_feedback(feedback_in(held), rules)) or any(judges_in(held)):
            yield name


def votes_in(samples: Samples, taken: Collection[str], rules: Rules | None) -> VerdictColumns:
    """Return the columns with what annotators say of the answer, by their names.

    Names of what else may be judged ("fluency") and of options ("A") are nobody's.

    Args:
        samples: some records.
        taken: columns that are read as something else.
        rules: what people say of columns: others judge nothing then; None for nothing.
    """
    found: list[VerdictColumn] = []
    remarks: list[str] = []
    for column in dict.fromkeys(chain.from_iterable(samples)):
        held = [values_by_name(sample.get(column)) for sample in samples if column not in taken]
        names = list(dict.fromkeys(chain.from_iterable(held)))
        values = [value for by_name in held for value in by_name.values()]
        are_votes = words_of(column).endswith("votes")
        are_people = all(_may_annotate(name, are_votes=are_votes) for name in names)
        if not names or not are_people or not all(isinstance(v, str | int) for v in values):
            continue
        said = described(column, values)
        if said is None or not said.has_known_owner:
            said = VerdictColumn(column, "label", values=tuple(values))
            if not are_votes and words_of(column) not in _BY_PEOPLE:
                continue
        said = replace(said, is_by_name=True)
        is_clear = said.polarity or are_votes or any(map(tells, values))
        if rules is not None:
            if rule := rules.get(column):
                found.append(replace(said, rules=tuple(rule)))
        elif is_clear and not said.is_scale and all(map(said.knows, values)):
            found.append(said)
        elif are_votes and said.words <= YES | NO:
            shown = f"{column!r} ({named_values(values)} of {named_ids(names, _NAMED)})"
            remarks.append(may_judge(shown, column))
    return VerdictColumns(tuple(found), tuple(remarks))


def _may_annotate(name: str, *, are_votes: bool) -> bool:
    return _QUALITIES.isdisjoint(words_of(name).split()) and (are_votes or len(name) > 1)


def judges_in(record: Mapping[str, Any]) -> Iterator[Annotation]:
    """Yield the verdicts in lists of objects that name an annotator and say no place."""
    for field in _LISTS:
        listed = record.get(field)
        for entry in listed if isinstance(listed, list) else ():
            if not isinstance(entry, Mapping) or name_of(entry) or _PLACED & entry.keys():
                continue
            names = [str(entry[key]).strip() for key in _JUDGES if entry.get(key)]
            said = [verdict_in(str(key), v) for key, v in entry.items() if key not in _JUDGES]
            verdict = next((one for one in said if one is not None), None)
            if names and verdict is not None:
                kind = annotator_kind(names[0])
                yield Annotation(annotator=names[0], kind=kind, answer_hallucinated=verdict)


def name_of(entry: Entry) -> str:
    """Return what a piece of feedback is called; "" if it has no name."""
    names = (entry.get(key) for key in _NAMES)
    return next((name for name in names if isinstance(name, str)), "").strip()


def read_feedback(entries: Iterable[Entry], rules: Rules | None = None) -> list[Feedback]:
    """Return what feedback says.

    Args:
        entries: what ``feedback_in`` yields.
        rules: what people say of some names: no others are verdicts then; None for nothing.

    Raises:
        InputError: a rule compares what is no number.
    """
    return [_read(entry, rules) for entry in entries]


def verdicts_of(feedback: Iterable[Feedback]) -> tuple[Annotation, ...]:
    """Return the verdicts that feedback says, one an annotator, the first of each."""
    by_name: dict[str, Annotation] = {}
    for verdict in filter(None, (given.verdict for given in feedback)):
        by_name.setdefault(verdict.annotator, verdict)
    return tuple(by_name.values())


def unread_shares(samples: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield remarks on feedback with numbers on a scale, for people who can say what they mean."""
    values: dict[str, list[Any]] = {}
    for given in read_feedback(chain.from_iterable(map(feedback_in, samples))):
        values.setdefault(given.name, []).append(given.value)
    for name, of_it in values.items():
        column = described(name, of_it)
        if column is not None and column.is_scale:
            yield unclear(column, may_refuse=False)


class FeedbackCounts:
    """How often each annotator of feedback said what, over the records of a file."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[bool | None]] = {}

    def add(self, verdicts: Iterable[Annotation]) -> None:
        """Count the verdicts on an answer."""
        for verdict in verdicts:
            counts = self._counts.setdefault(verdict.annotator, Counter())
            counts[bool(verdict.answer_hallucinated)] += 1

    def told(self) -> Iterator[str]:
        """Yield what was read, with counts."""
        for name, counts in self._counts.items():
            yield f"feedback of {name!r} judges whole answers: {counts_in_words(counts)}"


def _read(entry: Entry, rules: Rules | None) -> Feedback:
    name, values = name_of(entry), list(_values(entry))
    source = entry.get("source", entry.get("feedback_source", entry.get("annotator_kind", "")))
    about = source if isinstance(source, Mapping) else {"type": source}
    kind = str(about.get("source_type") or about.get("type") or "").lower()
    is_user = not _OF_USERS.isdisjoint(words_of(name).split())
    is_person = kind in _HUMAN or (kind in ("", "api") and is_user)
    giver = about.get("source_id") or about.get("user_id") or entry.get("authorUserId") or ""
    value = next(iter(values), None)
    said = (_GRADES[v] if v in _GRADES else verdict_in(name, v) for v in values)
    hallucinated: bool | None = None
    if rules is not None and value is not None and name in rules:
        hallucinated = any(rule.applies(value) for rule in rules[name])
    elif rules is None and isinstance(passed := entry.get("passed"), bool):
        hallucinated = not passed
    elif rules is None:
        hallucinated = next((one for one in said if one is not None), None)
    if hallucinated is None:
        return Feedback(name, value, None)
    by = str(giver) if is_person and giver else name
    kind_of = AnnotatorKind.PERSON if is_person else AnnotatorKind.DETECTOR
    verdict = Annotation(annotator=by, kind=kind_of, answer_hallucinated=hallucinated)
    return Feedback(name, value, verdict)


def _values(entry: Entry) -> Iterator[str | float]:
    """Yield what a piece of feedback says, the words before the numbers that stand for them."""
    inner: Entry = next(
        (entry[at] for at in ("feedback", "result") if isinstance(entry.get(at), dict)), {}
    )
    values = (
        *(entry.get("stringValue"), inner.get("label"), inner.get("value"), entry.get("value")),
        *(entry.get("label"), inner.get("score"), entry.get("score"), entry.get("avg")),
    )
    yield from (value for value in values if isinstance(value, str | int | float))
