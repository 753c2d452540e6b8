"""What UCSC's prompts ask models to reply with; the docstrings are part of the prompts."""

from __future__ import annotations

from spanlab.lm.lenient import Judged, Prob, ReplyModel, Text, Texts


class Part(ReplyModel):
    """Words copied from the answer, why they are wrong, how likely a reader marks them (0 to 1)."""

    text: Text
    reason: Text
    probability: Prob


class Relation(ReplyModel):
    """One relation between two entities, in words of the passages."""

    subject: Text
    relation: Text
    object: Text


class Fact(ReplyModel):
    """An atomic fact, understandable by itself, and the words copied from the answer behind it."""

    fact: Text
    sentence: Text


class Words(ReplyModel):
    """Words copied from the answer."""

    text: Text


class Judgement(ReplyModel):
    """Names to look up next, or none and the verdict, why, and how sure it is from 0 to 1."""

    look_up: Texts
    verdict: Judged
    reason: Text
    confidence: Prob
