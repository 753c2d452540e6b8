"""Labels of spans, and the sets of them that ship with spanlab."""

from __future__ import annotations

import re
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
