"""What UCSC's prompts ask models to reply with; the docstrings are part of the prompts."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from spanlab.lm.values import Judged, Prob, ReplyModel, Text, Texts, has, named


class Part(ReplyModel):
    """Words copied from the answer, why they are wrong, how likely a reader marks them (0 to 1)."""

    text: Text = Field(description="the words, letter by letter")
    before: Text = Field(
        description="the few words right before them if they stand more than once in the answer, "
        "else empty"
    )
    reason: Text = Field(description="why, in a few words")
    probability: Prob = Field(description="0 to 1")

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        """Say whether an object quotes anything."""
        return has(given, "text")


class Fact(ReplyModel):
    """An atomic fact, understandable by itself, and the words copied from the answer behind it."""

    fact: Text = Field(description="what it states, in the language of the answer")
    sentence: Text = Field(description="the words of the answer behind it, letter by letter")

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        """Say whether an object states anything."""
        return has(given, "fact")


class Judgement(ReplyModel):
    """Names to look up next, or none and why, the verdict, and how sure it is from 0 to 1."""

    look_up: Texts = Field(description="a list of names, empty to decide")
    reason: Text = Field(description="why, in a few words")
    verdict: Judged = Field(description="supported, refuted or not-enough-evidence")
    confidence: Prob = Field(description="how sure the verdict is, 0 to 1")

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        """Say whether an object decides anything."""
        return bool(named(given, "look_up") or named(given, "verdict"))
