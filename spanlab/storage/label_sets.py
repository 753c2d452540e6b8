"""Labels of spans, and the sets of them that ship with spanlab."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from spanlab.fields import Frozen, Name


class Label(Frozen):
    """A kind of hallucination that a span can have.

    ``colour`` is ``#rrggbb``, None for one of the editor's own; ``key`` the digit that sets the
    label, None for the first digit that no other label has.
    """

    name: Name
    colour: Annotated[str, Field(pattern=r"^#[0-9a-f]{6}$")] | None = None
    key: Annotated[str, Field(pattern=r"^[1-9]$")] | None = None
    description: Annotated[str, Field(max_length=2_000)] = ""


def _set(*labels: tuple[str, str]) -> tuple[Label, ...]:
    return tuple(Label(name=name, description=description) for name, description in labels)


USUAL_LABELS = _set(
    ("contradicted", "The evidence says otherwise."),
    ("unsupported", "The evidence does not say so."),
    ("wrong name", "A person, place or thing is called what it is not."),
    ("wrong number", "A count, measure or amount is wrong."),
    ("wrong date", "A day, year or period is wrong."),
    ("other", "Hallucinated in another way."),
)

LABEL_SETS: Mapping[str, tuple[Label, ...]] = {
    "spanlab": USUAL_LABELS,
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
    # Kwon et al., "SAFE" (2026), Table 9, and its extension for missing evidence.
    "SAFE": _set(
        ("Overthinking", "The steps before already give the answer."),
        ("Off-topic", "True or not, the question does not need it."),
        ("Redundancy", "Says nothing that the steps before do not say."),
        ("Inefficiency", "Plans or sums up; states no fact and concludes nothing."),
        ("Contradictory", "A passage says otherwise."),
        ("Missing Evidence", "What is needed here stands in no passage."),
        ("Unsupported", "The passage that it cites does not say so."),
        ("Information Miss", "Says that something is missing which a passage has."),
        ("Premature Attribution", "Of something that no step has connected with the question."),
        ("Logical Fallacy", "Does not follow from the steps before."),
        ("Wrong Conclusion", "The final answer does not follow from the steps."),
    ),
    "Mu-SHROOM": (),  # SemEval-2025 Task 3 marks spans without saying of which kind they are
}
