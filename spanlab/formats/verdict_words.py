"""Words that judge an answer or a claim: one table for all readers.

``VERDICTS`` has the words that say by themselves what they mean. ``YES`` and ``NO`` mean what the
name of their column says: yes under "hallucinated" is no under "faithful".
"""

from __future__ import annotations

import re
from typing import Final

from spanlab.base.errors import InputError
from spanlab.schema import Verdict

_WORDS: Final[dict[Verdict, str]] = {
    "supported": "supported, supports, support, entailment, entailed, s, consistent, faithful, "
    "factual, correct, accurate, attributable, fully attributable, grounded, truthful, pass, "
    "passed, ok, okay, good, right, clean, not hallucinated, no hallucination, "
    "not a hallucination, thumbs up, thumbsup, thumb up, up, upvote, like, liked, 👍",
    "refuted": "refuted, refutes, refute, contradict, contradicts, contradicted, contradiction, "
    "contradictory",
    "not-enough-evidence": "not enough evidence, not enough info, not enough information, nei, "
    "neutral",
    "conflicting": "conflicting, conflicting evidence/cherrypicking",
    "not-supported": "not supported, unsupported, not fully supported, partially supported, ns, "
    "inconsistent, unfaithful, incorrect, inaccurate, hallucinated, hallucination, hallucinatory, "
    "not entailed, not entailment, not attributable, not fully attributable, non factual, "
    "nonfactual, unfactual, not factual, not faithful, not consistent, not correct, not accurate, "
    "not grounded, ungrounded, untruthful, fabricated, wrong, fail, failed, bad, not ok, "
    "thumbs down, thumbsdown, thumb down, down, downvote, dislike, disliked, 👎",
    "inconclusive": "inconclusive",
}
VERDICTS: Final[dict[str, Verdict]] = {
    word: verdict for verdict, words in _WORDS.items() for word in words.split(", ")
}
YES: Final = frozenset(("yes", "true", "1", "y"))
NO: Final = frozenset(("no", "false", "0", "n", "-1"))
UNDECIDED: Final = frozenset(  # which are known, and judge nothing
    ("inconclusive", "conflicting", "unsure", "not sure", "unclear", "generic", "n/a", "skipped")
)
_WHOLE: Final = re.compile(r"-?\d+(\.0+)?")
# A number says whether a claim is supported, as in LLM-AggreFact; "no" says as much.
_OF_CLAIMS: Final[dict[str, Verdict]] = {
    **dict.fromkeys(("true", "yes", "1"), "supported"),
    **dict.fromkeys(("no", "0"), "not-supported"),
    "false": "refuted",
    **VERDICTS,
}


def plain_word(value: object) -> str:
    """Return a value as the table has it: in small letters, with spaces; a whole number as such."""
    text = str(value).strip().casefold()
    if _WHOLE.fullmatch(text):
        return text.partition(".")[0]
    return " ".join(text.replace("_", " ").replace("-", " ").split())


def verdict_of(label: str | bool | int | float, *, field: str = "label") -> Verdict:
    """Return the verdict that a label of a claim means; ``field`` is where it is.

    Raises:
        InputError: it means none that is known.
    """
    verdict = _OF_CLAIMS.get(plain_word(label))
    if verdict is None:
        raise InputError(
            "this label is not a verdict on a claim",
            field=field,
            found=str(label),
            expected="true, false or a verdict such as supported, refuted, not enough evidence, "
            "conflicting, not supported or inconclusive",
        )
    return verdict
