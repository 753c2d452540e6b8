"""Datasets: their summaries, their settings, and the labels that spans may have in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator

from spanlab.base.fields import FrozenModel, Name, unique
from spanlab.schema.fits import DetectorFit, answer_hash
from spanlab.schema.questions import Question
from spanlab.schema.queue import AssignedShare
from spanlab.schema.record import Annotation, AnnotatorKind, Record, Status


class SpanLabel(FrozenModel):
    """A kind of hallucination that a span can have.

    ``colour`` is ``#rrggbb``, None for one of the editor's own; ``key`` the digit that sets the
    label, None for the first digit that no other label has.
    """

    name: Name
    colour: Annotated[str, Field(pattern=r"^#[0-9a-f]{6}$")] | None = None
    key: Annotated[str, Field(pattern=r"^[1-9]$")] | None = None
    description: Annotated[str, Field(max_length=2_000)] = ""


class CitationLabel(StrEnum):
    """What can be wrong with a citation or a quotation."""

    NOT_IN_SOURCE = "not in the cited source"
    ANOTHER_SOURCE = "supported by another source"
    NO_SOURCE = "no such source"
    MISATTRIBUTED = "misattributed quotation"
    FABRICATED = "fabricated quotation"
    CHANGED = "changed quotation"


def _set(*labels: tuple[str, str]) -> tuple[SpanLabel, ...]:
    return tuple(SpanLabel(name=name, description=description) for name, description in labels)


USUAL_LABELS = _set(
    ("contradicted", "The evidence says otherwise."),
    ("unsupported", "The evidence does not say so."),
    ("wrong name", "A person, place or thing is called what it is not."),
    ("wrong number", "A count, measure or amount is wrong."),
    ("wrong date", "A day, year or period is wrong."),
    ("other", "Hallucinated in another way."),
)

LABEL_SETS: Mapping[str, tuple[SpanLabel, ...]] = {
    "spanlab": USUAL_LABELS,
    # What most annotated sets of hallucinations tell apart, in the words of none of them.
    "common": _set(
        ("contradiction", "The evidence says otherwise."),
        ("unsupported addition", "The evidence says nothing of it."),
        ("fabricated reference", "A source, link or quotation that does not exist."),
    ),
    # Bao et al., "FaithBench" (2024), section 3: unwanted hallucinations are of two kinds.
    "FaithBench": _set(
        ("Unwanted.Intrinsic", "Contradicts the source text."),
        ("Unwanted.Extrinsic", "Not in the source text, and not common knowledge."),
        ("Unwanted", "Unwanted, of neither kind alone."),
        ("Benign", "Not in the source text, but true and harmless."),
        ("Questionable", "People may well disagree whether it is a hallucination."),
    ),
    # Niu et al., "RAGTruth" (2024), section 3.1.
    "RAGTruth": _set(
        ("Evident Conflict", "Contradicts the source plainly, without any reasoning."),
        ("Subtle Conflict", "Departs from the source in what it means or implies."),
        ("Evident Baseless Info", "Not in the source, and clearly made up."),
        ("Subtle Baseless Info", "Not in the source: inferred, or added by opinion or knowledge."),
    ),
    "citations": _set(
        (CitationLabel.NOT_IN_SOURCE, "The source that is cited for it does not say so."),
        (CitationLabel.ANOTHER_SOURCE, "The cited source does not say so, but another one does."),
        (CitationLabel.NO_SOURCE, "A number or name of a source that is not there."),
        (CitationLabel.MISATTRIBUTED, "Word for word in another source than the one cited."),
        (CitationLabel.FABRICATED, "In none of the sources, neither so nor in like words."),
        (CitationLabel.CHANGED, "Words within quotation marks that the source does not have."),
    ),
    # Kwon et al., "SAFE" (2026), Table 9, and its extension for missing evidence.
    "SAFE": _set(
        ("Overthinking", "The steps before already give the answer."),
        ("Off-topic", "True or not, the question does not need it."),
        ("Redundancy", "Says nothing that the steps before do not say."),
        ("Inefficiency", "Plans or sums up; states no fact and concludes nothing."),
        ("Contradictory", "A passage says otherwise."),
        ("Missing Evidence", "What is needed here is in no passage."),
        ("Unsupported", "The passage that it cites does not say so."),
        ("Information Miss", "Says that something is missing which a passage has."),
        ("Premature Attribution", "Of something that no step has connected with the question."),
        ("Logical Fallacy", "Does not follow from the steps before."),
        ("Wrong Conclusion", "The final answer does not follow from the steps."),
    ),
    "Mu-SHROOM": (),  # SemEval-2025 Task 3 marks spans without saying of which kind they are
}

# The usual names of colours on web pages (CSS Color Module Level 4, 6.1), each with its digits.
_NAMED = (
    "aqua 00ffff black 000000 blue 0000ff brown a52a2a coral ff7f50 crimson dc143c cyan "
    "00ffff fuchsia ff00ff gold ffd700 gray 808080 green 008000 grey 808080 indigo 4b0082 "
    "khaki f0e68c lavender e6e6fa lime 00ff00 magenta ff00ff maroon 800000 navy 000080 olive "
    "808000 orange ffa500 orchid da70d6 pink ffc0cb plum dda0dd purple 800080 red ff0000 "
    "salmon fa8072 silver c0c0c0 tan d2b48c teal 008080 tomato ff6347 turquoise 40e0d0 violet "
    "ee82ee white ffffff yellow ffff00 "
)

COLOUR_NAMES: Mapping[str, str] = dict(re.findall(r"(\w+) (\w+)", _NAMED))


class UndecidedRule(StrEnum):
    """What becomes of suggestions that a reviewer has not decided when an item is Done."""

    REJECTED = "rejected"
    LIKELY = "likely"  # accepted where their annotator decided so, else rejected
    ASK = "ask"  # the reviewer says which of the two, item by item


class BlindRule(StrEnum):
    """When other people's marks are hidden from a reviewer."""

    ALWAYS = "always"
    DONE = "done"  # until the reviewer has finished the item
    ASK = "ask"  # unless the reviewer asks for them
    NEVER = "never"


class MeasurementPlan(FrozenModel):
    """How the rate of a dataset is measured: whose marks people correct, on which sample.

    ``unit`` is what is counted, ``by`` a field of the items whose values are told apart. ``design``
    (of "length", odds go with the root of an answer's length, which is usual for characters) and
    ``seed`` fix the one order of review. ``half_width`` is how exact the rate is to be, as a
    share. ``cluster`` is a field whose values have answers in common that are not independent, or
    "none"; None for those with one question, answer or document. ``reviewers`` are those whose word
    counts, everybody's who is a person if empty.
    ``definition`` says what counts as hallucinated, ``model`` what answers for the detector.
    """

    annotator: Name
    unit: Literal["answers", "characters", "claims"] = "answers"
    by: Annotated[str, Field(max_length=200)] | None = None
    design: Literal["uniform", "stratified", "uncertainty", "length"] = "uniform"
    seed: Annotated[int, Field(ge=0)] = 0
    half_width: Annotated[float, Field(gt=0, lt=0.5)] = 0.03
    cluster: Annotated[str, Field(max_length=200)] | None = None
    show_suggestions: bool = False
    reviewers: tuple[Name, ...] = ()
    definition: Annotated[str, Field(max_length=2_000)] = "no passage or known fact supports it"
    model: Annotated[str, Field(max_length=200)] = ""

    @property
    def is_even(self) -> bool:
        """Whether all items, or all of a group, have the same odds of being reviewed."""
        return self.design in ("uniform", "stratified")


ADJUDICATED: Final = "adjudicated"  # the usual name of what was decided from the labels of others


class CheckRules(FrozenModel):
    """How check items tell how well a person marks; nobody is told which these are.

    Check items are those with gold labels by one of ``labels``. What a team decides is gold, too,
    and makes no check item: it is written under another name.

    ``share`` of what a person reviews are such items, hidden among the others; the lead is warned
    of a person whose mean IoU with their gold labels is below ``warn_below``. Whoever begins has
    ``test_items`` of them first, none for no test, and goes on with a mean IoU of ``pass_at``, or
    with another try where ``retry`` allows one, or when the lead lets them in.
    """

    labels: tuple[Name, ...] = ()
    share: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    warn_below: Annotated[float, Field(ge=0, le=1)] = 0.5
    test_items: Annotated[int, Field(ge=0, le=50)] = 0
    pass_at: Annotated[float, Field(ge=0, le=1)] = 0.5
    retry: bool = True


class DetectorSetup(FrozenModel):
    """How a detector was set up when it annotated a dataset.

    ``settings`` is all that its findings depend on, by dotted names; ``prompts`` a hash of its
    prompts, tuned ones included; ``version`` that of spanlab. ``learnt_from`` has the
    ``answer_hash`` of the answers of the dataset that its model, prompt or fit was made or chosen
    by: what it says of these is no measure of it.
    """

    annotator: Name
    version: str
    settings: dict[str, JsonValue]
    prompts: str
    learnt_from: tuple[str, ...] = ()

    @property
    def models(self) -> dict[str, JsonValue]:
        """The names and addresses of the models that it asks, by dotted names."""
        ends = ("model", "base_url")
        return {key: v for key, v in self.settings.items() if v and key.endswith(ends)}

    @property
    def options(self) -> dict[str, JsonValue]:
        """All other settings but the seeds of its models, which make it no other detector."""
        left_out = {"name", *self.models}
        return {
            key: v
            for key, v in self.settings.items()
            if key not in left_out and not key.endswith("seed")
        }

    def repeats(self, other: Self) -> bool:
        """Say whether this is another one again: all the same but for the seeds of its models."""
        mine, its = ((setup.models, setup.options, setup.prompts) for setup in (self, other))
        return mine == its and self.annotator != other.annotator


class DatasetSettings(FrozenModel):
    """The settings of a dataset; what is not stored takes the default.

    ``attributes`` are asked of each span, ``questions`` of each answer; while a required one is
    ``unanswered``, Done is refused, or only told of.
    ``overlap`` is how many people are to finish each item, 0 for any number. Review then offers
    reviewers what they have not finished: without ``assigned_to`` what fewer have finished or been
    offered (an item is reserved for an hour, and for another one with every edit), with it what is
    assigned to them (see ``AssignedShare``).
    ``always_blind`` takes from reviewers the choice to see what other people marked; None leaves it
    to the plan: see ``is_blind``. With ``shown_when_done`` they see it of items that they have
    finished, and with ``others_shown`` of all from the start, unless they choose otherwise.
    ``guidelines`` are all texts that the guidelines have had, in Markdown, oldest first: the
    version that an annotation names is a place in it, counted from 1. ``measurement`` is how the
    rate is measured, None where it is not. ``away`` are those of ``assigned_to`` who left: what
    they have not finished goes to those who come after them. ``returned`` are those who came
    again, or had begun under another plan: what enough others have finished is left to nobody.
    ``known`` is how check items are used, None where there are none.
    ``code_share`` is the share of a person's items that have to be done, not skipped, for the
    completion code of their invitation.
    ``setups`` are how the detectors were set up that spanlab has run over it: several of one name
    where it was run in several ways. ``fits`` are what detectors learnt from its reviews,
    the newest last; with ``fit_every`` they learn again after so many further reviews, 0 for never.
    ``gold_copies`` are gold labels by name, each with the annotator that they were copied from.
    """

    undecided: UndecidedRule = UndecidedRule.REJECTED
    labels: tuple[SpanLabel, ...] = USUAL_LABELS
    label_required: bool = False
    attributes: tuple[Question, ...] = ()
    questions: tuple[Question, ...] = ()
    unanswered: Literal["refused", "told"] = "refused"
    always_blind: bool | None = None
    shown_when_done: bool = False
    others_shown: bool = False
    overlap: Annotated[int, Field(ge=0, le=100)] = 0
    assigned_to: tuple[Name, ...] = ()
    guidelines: tuple[Annotated[str, Field(max_length=100_000)], ...] = ()
    measurement: MeasurementPlan | None = None
    away: tuple[Name, ...] = ()
    returned: tuple[Name, ...] = ()
    known: CheckRules | None = None
    setups: tuple[DetectorSetup, ...] = ()
    code_share: Annotated[float, Field(ge=0, le=1)] = 0.8
    fits: tuple[DetectorFit, ...] = ()
    gold_copies: tuple[tuple[Name, Name], ...] = ()
    fit_every: Annotated[int, Field(ge=0, le=100_000)] = 0

    @property
    def has_lists(self) -> bool:
        """Whether each person has a list of items of their own: by a plan, or with check items."""
        return bool(self.overlap) or self.known is not None

    @property
    def may_lose(self) -> bool:
        """Whether others may finish instead what a plan gives somebody who has not decided it."""
        return bool(self.overlap and (not self.assigned_to or self.away or self.returned))

    @property
    def counted_people(self) -> tuple[str, ...]:
        """Whose finished items are those of the plan: of all it named, or everybody's if empty."""
        named = (*self.assigned_to, *self.away, *self.returned) if self.assigned_to else ()
        return tuple(dict.fromkeys(named))

    @property
    def is_blind(self) -> bool:
        """Whether reviewers cannot choose to see other people's marks.

        Where the lead has not said, that is so if the plan has two people or more for an item, or
        if there are check items.
        """
        if self.always_blind is None:
            return self.overlap > 1 or self.known is not None
        return self.always_blind

    @property
    def blind_rule(self) -> BlindRule:
        """When reviewers see other people's marks, in one word."""
        if self.is_blind:
            return BlindRule.DONE if self.shown_when_done else BlindRule.ALWAYS
        return BlindRule.NEVER if self.others_shown else BlindRule.ASK

    def with_blind_rule(self, rule: BlindRule | None) -> Self:
        """Return the settings with a rule that the lead has chosen; None leaves it to the plan."""
        update = {
            "always_blind": rule and rule in {BlindRule.ALWAYS, BlindRule.DONE},
            "shown_when_done": rule is BlindRule.DONE,
            "others_shown": rule is BlindRule.NEVER,
        }
        return self.model_copy(update=update)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        unique((label.name for label in self.labels), "label")
        unique(self.assigned_to, "the person")
        if self.assigned_to and not self.overlap:
            raise ValueError("items are assigned to people: say how many people finish each item")
        unique((label.key for label in self.labels if label.key), "the key of a label:")
        if self.known and (self.shown_when_done or self.always_blind is False):
            raise ValueError('check items need "Other people\'s marks: Always hidden" (tab Review)')
        unique(
            (attribute.name for attribute in (*self.attributes, *self.questions)), "the question"
        )
        return self

    def fit_in_use(self, detector: str) -> DetectorFit | None:
        """Return the fit that runs of a detector over the dataset use, None for none."""
        return next((fit for fit in self.fits if fit.in_use and fit.detector == detector), None)

    def learnt_by(self, annotators: Iterable[str]) -> frozenset[str]:
        """Return the ``answer_hash`` of the dataset's answers that any of these learnt from."""
        named = set(annotators)
        setups = (setup for setup in self.setups if setup.annotator in named)
        return frozenset(each for setup in setups for each in setup.learnt_from)

    def missing(self, annotation: Annotation) -> tuple[str, ...]:
        """Return the required questions that the annotation leaves unanswered, in words."""
        spans = (
            f"{attribute.shown} of “{span.text[:40]}”"
            for span in annotation.spans
            for attribute in self.attributes
            if attribute.required
            and attribute.is_asked_of(span.label)
            and not attribute.is_answered_in(span.attributes)
        )
        whole = (
            question.shown
            for question in self.questions
            if question.required and not question.is_answered_in(annotation.responses)
        )
        return (*spans, *whole)

    def check_labels(self, gold: Iterable[str]) -> frozenset[str]:
        """Return which of the gold labels make check items; all of them where none are in use.

        Before 1.1 nothing said which: those settings mean all that the team did not decide itself.
        """
        names = frozenset(gold)
        if self.known is None:
            return names
        if self.known.labels:
            return names & frozenset(self.known.labels)
        return names - {ADJUDICATED} or names

    @property
    def guidelines_now(self) -> str:
        """The newest guidelines, empty for none."""
        return self.guidelines[-1] if self.guidelines else ""

    def share_of(self, name: str) -> AssignedShare | None:
        """Return what is assigned to a person; None for somebody who gets nothing."""
        if name not in self.assigned_to or name in self.away:
            return None
        numbers = {who: number for number, who in enumerate(self.assigned_to)}
        away = tuple((numbers[who], who) for who in self.away if who in numbers)
        return AssignedShare(numbers[name], len(numbers), self.overlap, away)

    def after_plan(self, before: DatasetSettings, begun: Collection[str]) -> Self:
        """Return the settings with those who had begun under another plan as left or returned."""
        if self.assigned_to == before.assigned_to:
            return self
        old = [name for name in before.assigned_to if name in begun]
        new = set(self.assigned_to) - set(before.assigned_to)
        gone = (name for name in old if name not in self.assigned_to)
        stays = (name for name in old if name in self.assigned_to)
        away = dict.fromkeys((*(name for name in self.away if name not in new), *gone))
        returned = dict.fromkeys((*self.returned, *stays, *(n for n in self.away if n in new)))
        return self.model_copy(update={"away": tuple(away), "returned": tuple(returned)})

    def with_guidelines(self, text: str) -> Self:
        """Return the settings with ``text`` as the newest guidelines; no version if it is that."""
        if text == self.guidelines_now:
            return self
        return self.model_copy(update={"guidelines": (*self.guidelines, text)})


@dataclass(frozen=True)
class AnnotatorSummary:
    """Who has annotated a dataset: how many of its items are in each status.

    ``drafts`` are those of them that are begun and not finished: not annotated yet.
    """

    name: str
    kind: AnnotatorKind
    counts: Mapping[Status, int]
    drafts: int = 0


@dataclass(frozen=True)
class DatasetSummary:
    """The summary of a dataset; ``languages`` counts items, ``annotators`` are oldest first.

    A version of a dataset has a ``digest``: the SHA-256 of its export in spanlab's own format,
    empty until it is worked out. ``version_of`` is what its dataset is called, None once that is
    gone.
    """

    name: str
    created: datetime
    n_items: int
    languages: Mapping[str, int]
    annotators: tuple[AnnotatorSummary, ...]
    settings: DatasetSettings = field(default_factory=DatasetSettings)
    version_of: str | None = None
    digest: str | None = None

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """What differs once items came or went, or an annotator's counts changed; hashable."""
        counts = tuple((who.name, tuple(sorted(who.counts.items()))) for who in self.annotators)
        return self.created, self.n_items, counts

    def names_of(self, *kinds: AnnotatorKind) -> list[str]:
        """Return the names of the annotators of these kinds, the oldest first."""
        return [annotator.name for annotator in self.annotators if annotator.kind in kinds]

    @property
    def kinds(self) -> dict[str, AnnotatorKind]:
        """The kind of each annotator, by name, the oldest first."""
        return {annotator.name: annotator.kind for annotator in self.annotators}


class LearntAnswers:
    """Sets aside what detectors say of answers that they learnt from: it is no measure of them.

    ``counts`` has how many annotations were set aside, by annotator, ``kept`` how many were not, by
    annotator of those who learnt from any.
    """

    def __init__(self, settings: DatasetSettings) -> None:
        learners = {setup.annotator for setup in settings.setups if setup.learnt_from}
        self._learnt = {name: settings.learnt_by([name]) for name in learners}
        self.counts: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()

    def set_aside(self, record: Record) -> Record:
        """Return an item that detectors which it taught, and votes of them, have skipped.

        Gold labels, people and all others stay.
        """
        if not self._learnt:
            return record
        answer = answer_hash(record.item)
        taught = {name for name, learnt in self._learnt.items() if answer in learnt}
        out = [a for a in record.annotations if taught & {a.annotator, *a.voters}]
        self.counts.update(annotation.annotator for annotation in out)
        self.kept.update(a.annotator for a in record.annotations if a not in out)
        annotations = tuple(
            Annotation(annotator=a.annotator, kind=a.kind, status=Status.SKIPPED) if a in out else a
            for a in record.annotations
        )
        return record.model_copy(update={"annotations": annotations})

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was set aside, a sentence for each annotator."""
        return tuple(set_aside_remark(name, n) for name, n in sorted(self.counts.items()))


def set_aside_remark(name: str, n: int) -> str:
    """Say that ``n`` answers from which a detector learnt were set aside."""
    return (
        f"{name} learnt from {n:,} of these answers: they are set aside, as they say nothing of "
        "how it does on others."
    )
