"""One worked example for each prompt, all of one made-up item.

They are shown until a tuned program brings its own. An example says more than an instruction: what
is copied, how little of it, and how likely it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spanlab.schema import Demo

_QUESTION: Final = "When was the lighthouse of Norvik finished, and how high is it?"
_PASSAGES: Final = """\
[1] The lighthouse of Norvik, 2019
The lighthouse of Norvik was finished in 1871 by Karl Berg. It is 34 metres high. Visitors climb \
186 steps to its gallery.

[2] Norvik
Norvik is a fishing port of 4,100 people. Its market is held on Tuesdays."""
_ANSWER: Final = (
    "The lighthouse of Norvik was finished in 1817. Karl Berg, who had trained in Sund, made it "
    "34 metres high; its gallery is reached by 34 steps, and many call it the most beautiful of "
    "the coast."
)
_ITEM: Final = {"passages": _PASSAGES, "question": _QUESTION, "answer": _ANSWER}
_STEPS: Final = "The gallery of the lighthouse of Norvik is reached by 34 steps."

EXAMPLES: Final[Mapping[str, Demo]] = {
    "extract": {
        **_ITEM,
        "reasoning": "1817 and the 34 steps contradict the first passage. Of Sund no passage "
        "speaks. The last clause is an opinion. The height is right.",
        "parts": [
            {"text": "1817", "reason": "the passages say 1871", "probability": 0.95},
            {
                "text": "had trained in Sund",
                "reason": "no passage says where he trained",
                "probability": 0.6,
            },
            {
                "text": "34",
                "before": "is reached by",
                "reason": "the passages say 186 steps",
                "probability": 0.95,
            },
            {
                "text": "the most beautiful of the coast",
                "reason": "an opinion that no passage holds",
                "probability": 0.25,
            },
        ],
    },
    "revise": {
        **_ITEM,
        "reasoning": "1817 has to be 1871 and the 34 steps 186. Of Sund no passage speaks.",
        "revised": _ANSWER.replace("1817", "1871")
        .replace(", who had trained in Sund,", "")
        .replace("34 steps", "186 steps"),
    },
    "graph": {
        "passages": _PASSAGES,
        "question": _QUESTION,
        "relations": [
            {"subject": "lighthouse of Norvik", "relation": "finished in", "object": "1871"},
            {"subject": "Karl Berg", "relation": "built", "object": "lighthouse of Norvik"},
            {"subject": "lighthouse of Norvik", "relation": "height", "object": "34 metres"},
            {
                "subject": "lighthouse of Norvik",
                "relation": "steps to its gallery",
                "object": "186 steps",
            },
        ],
    },
    "facts": {
        "question": _QUESTION,
        "answer": _ANSWER,
        "facts": [
            {
                "fact": "The lighthouse of Norvik was finished in 1817.",
                "sentence": "The lighthouse of Norvik was finished in 1817",
            },
            {"fact": "Karl Berg trained in Sund.", "sentence": "who had trained in Sund"},
            {
                "fact": "Karl Berg made the lighthouse of Norvik 34 metres high.",
                "sentence": "made it 34 metres high",
            },
            {"fact": _STEPS, "sentence": "its gallery is reached by 34 steps"},
        ],
    },
    "check": {
        "question": _QUESTION,
        "entities": "lighthouse of Norvik; 1871; Karl Berg; 34 metres; 186 steps",
        "fact": _STEPS,
        "seen": "- lighthouse of Norvik – steps to its gallery – 186 steps",
        "rounds_left": 1,
        "reasoning": "The graph has 186 steps where the fact has 34.",
        "judgement": {
            "look_up": [],
            "reason": "it is 186 steps",
            "verdict": "refuted",
            "confidence": 0.95,
        },
    },
    "words": {
        "question": _QUESTION,
        "answer": _ANSWER,
        "sentence": "its gallery is reached by 34 steps",
        "claim": _STEPS,
        "reason": "it is 186 steps",
        "words": [{"text": "34"}],
    },
}
