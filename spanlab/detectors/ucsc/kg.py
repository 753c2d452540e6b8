"""``ucsc-kg``: check the answer's facts against a graph of the passages."""

from __future__ import annotations

import dspy

from spanlab.detectors.ucsc.replies import Fact, Judgement, Relation, Words


class BuildGraph(dspy.Signature):
    """Turn passages into a knowledge graph that answers to the question can be checked against.

    List the relations that the passages state: subject, relation, object, each in a few words.
    Call an entity by the same full name everywhere. Numbers, dates, titles and quantities are
    objects too. Two entities may have several relations; list them all. Add nothing that the
    passages do not say.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    relations: list[Relation] = dspy.OutputField(desc="the relations, most important ones first")


class ListFacts(dspy.Signature):
    """Take an answer to a question apart into atomic facts.

    Each fact states one thing about one subject, and names its subject in full instead of "he" or
    "it", so that it can be checked by itself. Repeat what the answer claims even if it is wrong;
    leave out what claims nothing. Copy the words behind each fact from the answer letter by letter.
    """

    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer to take apart")
    facts: list[Fact] = dspy.OutputField(desc="the facts in the order of the answer")


class CheckFact(dspy.Signature):
    """Check a fact against a knowledge graph that you can query.

    To see more, give in `look_up` the entities or relations that you need next, by their names in
    the graph. When the relations seen settle the fact, or nothing more can be looked up, leave
    `look_up` empty and decide: "supported" if they state or imply the fact, "refuted" if they
    contradict it, "not-enough-evidence" if they do neither.
    """

    question: str = dspy.InputField(desc="what was asked; the fact is part of an answer to it")
    entities: str = dspy.InputField(desc="the entities of the graph")
    fact: str = dspy.InputField(desc="the fact to check")
    seen: str = dspy.InputField(desc="the relations looked up so far")
    rounds_left: int = dspy.InputField(desc="how often you may still look up; at 0 decide")
    judgement: Judgement = dspy.OutputField(desc="what to look up next, or the verdict")


class NameWords(dspy.Signature):
    """Name the words of an answer that state a fact which has turned out to be false.

    Copy them from the answer letter by letter, as few as carry the error: the wrong name, number,
    date or word, not the sentence around it.
    """

    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer; only its words may be copied")
    sentence: str = dspy.InputField(desc="the words of the answer behind the fact")
    fact: str = dspy.InputField(desc="the false fact")
    reason: str = dspy.InputField(desc="why it is false")
    words: list[Words] = dspy.OutputField(desc="the wrong words in the order of the answer")
