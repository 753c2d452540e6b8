"""ucsc-kg: facts taken from the answer and checked one by one.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3: Context, Models and Prompt Optimization for
Automated Hallucination Detection in LLM Output", knowledge-graph verification.

1. Context is retrieved for the question (``system``).
2. Detection (``FactVerifier``):
   a. the context becomes entities and relations, a multigraph: one call;
   b. the answer becomes atomic facts, each with the words it came from: one call;
   c. each fact is checked by querying the graph, in at most ``MAX_ROUNDS`` calls: the model names
      entities or relations, gets what the graph has on them, and decides with reason and
      confidence;
   d. for each refuted fact a model names the words of the answer that state it: one call.
3. These words are found inside the words the fact came from (``UcscKg.mark``).

Published scores on the English test set, the paper's and not of this code: IoU .22, Corr .19.

Deviations. The prompts are our own. The graph is queried by names, tolerant in spelling, instead
of by generated code. Where the graph says nothing, the model goes by what it is certain of, unless
the option ``unsupported`` says "passages". Facts that could not be verified mark nothing, unless
the option ``unverified`` asks for it, as the paper's code does; they are then at most half as
likely, and marked as wrong all the same: the hard labels are all that is marked. Without passages
there is no graph: facts are checked once, against what the model knows.

The steps are those of ``kg``, 2a to 2d.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

import dspy

from spanlab.base.runtime import wait
from spanlab.detection.base import DetectorKit
from spanlab.detection.claims import NameWrongWords, placed, wrong_words
from spanlab.detection.common.context import NOTHING_FOUND
from spanlab.detection.common.model_detector import DetectionCase, places_of, span_of, strongest
from spanlab.detection.entities import EntityEdge, EntityGraph, EntityRelation, edges_of
from spanlab.models.adapters import PromptText
from spanlab.models.meter import keep, together
from spanlab.schema import (
    Annotation,
    Claim,
    FactStep,
    Interval,
    Item,
    RelationStep,
    RemarkStep,
    Span,
    Step,
)
from spanlab.systems.ucsc import MAX_FACTS, MAX_ROUNDS, UNVERIFIED, GraphOptions
from spanlab.systems.ucsc.system import AtomicFact, FactJudgement, UcscDetector
from spanlab.text.extents import Extent, merge
from spanlab.text.quotes import ModelQuote, QuoteMapping, map_quotes

GRAPH_RULES: Final = {  # what to decide where the relations are silent, by `unsupported`
    "passages": PromptText(
        'If the relations say nothing of the fact: "not-enough-evidence", even if you are certain '
        "of it."
    ),
    "certain": PromptText(
        'If the relations say nothing of the fact: "supported" or "refuted" where you are certain '
        'of it yourself, else "not-enough-evidence".'
    ),
}


class UcscKg(UcscDetector):
    """Marks the words that state facts which a graph of the passages refutes."""

    rules: ClassVar = GRAPH_RULES

    def partial_steps(self, case: DetectionCase) -> Iterator[Step]:
        """Return the relations of the graph and the facts that were checked before."""
        for result in case.partial:
            if isinstance(result, EntityEdge):
                yield RelationStep(**result._asdict())
            elif isinstance(result, CheckedFact):
                yield _step(result, self._map(case.item, result))

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Find the words of every refuted fact; every fact becomes a claim."""
        relations = [RelationStep(**edge._asdict()) for edge in prediction.relations]
        left_out = [RemarkStep(text=text) for text in prediction.remarks]
        spans: list[Span] = []
        claims, facts = [], []
        for checked in prediction.checked:
            mapping = self._map(item, checked)
            reason = checked.judgement.reason
            spans += [span_of(item.answer, mapped, reason) for mapped in mapping.spans]
            claims.append(_claim(item, checked))
            facts.append(_step(checked, mapping))
        marked = strongest(spans)
        return self.annotation(
            spans=marked,
            hard=_every(marked) if self._options.unverified else None,
            claims=claims,
            trace=[*relations, *left_out, *facts],
        )

    @property
    def _options(self) -> GraphOptions:
        return GraphOptions.model_validate(self.kit.spec.options)

    def _map(self, item: Item, checked: CheckedFact) -> QuoteMapping:
        judgement = checked.judgement
        prob = judgement.confidence
        if judgement.verdict != "refuted":
            prob = min(1.0 if prob is None else prob, UNVERIFIED)
        floor = self._options.floor
        source = checked.fact.sentence or None
        return placed(item.answer, source, checked.words, prob=prob, lang=item.lang, floor=floor)


def _every(spans: Iterable[Span]) -> tuple[Interval, ...]:
    """Return all marks as the decision: at .5 at most, what could not be verified would be none."""
    extents = merge(Extent(span.start, span.end) for span in spans)
    return tuple(Interval(start=start, end=end) for start, end in extents)


def _claim(item: Item, checked: CheckedFact) -> Claim:
    """Return a fact as a claim; ``prob`` is how sure its verdict is."""
    sentence = checked.fact.sentence
    mapping = map_quotes(item.answer, [ModelQuote(sentence)]) if sentence.strip() else None
    source = span_of(item.answer, mapping.spans[0]) if mapping and mapping.spans else None
    return Claim(
        text=checked.fact.fact,
        source=source,
        verdict=checked.judgement.verdict,
        prob=checked.judgement.confidence,
    )


def _step(checked: CheckedFact, mapping: QuoteMapping) -> FactStep:
    return FactStep(
        text=checked.fact.fact,
        verdict=checked.judgement.verdict,
        prob=checked.judgement.confidence,
        reason=checked.judgement.reason or None,
        looked_up=checked.looked_up,
        places=places_of(mapping.spans),
    )


MAX_NAMES = 300  # entities that a prompt lists
FACTS_AT_ONCE = 4  # facts of one answer under way at the same time


class BuildGraph(dspy.Signature):
    """Turn passages into a knowledge graph that answers to the question can be checked against.

    List the relations that the passages state: subject, relation, object, each in a few words.
    Call an entity by the same full name everywhere. Numbers, dates, titles and quantities are
    objects too. Two entities may have several relations; list them all. Write them in the language
    of the passages. Leave out what has nothing to do with the question, and add nothing that the
    passages do not say.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    relations: list[EntityRelation] = dspy.OutputField(
        desc="the relations, most important ones first"
    )


class ListFacts(dspy.Signature):
    """Take an answer to a question apart into atomic facts.

    Each fact states one thing about one subject, and names its subject in full instead of "he" or
    "it", so that it can be checked by itself. Repeat what the answer claims even if it is wrong;
    leave out what claims nothing, such as opinions. Write the facts in the language of the answer.
    Copy the words behind each fact from the answer letter by letter.
    """

    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer to take apart")
    facts: list[AtomicFact] = dspy.OutputField(desc="the facts in the order of the answer")


class CheckFact(dspy.Signature):
    """Check a fact against a knowledge graph that you can query.

    To see more, give in `look_up` the entities or relations that you need next, by their names in
    the graph. When the relations seen settle the fact, or nothing more can be looked up, leave
    `look_up` empty and decide: "supported" if they state or imply the fact, "refuted" if they
    contradict it; what `rule` says if they do neither. Fact and graph may be in different
    languages. The confidence is 0.95 if the relations say so themselves, 0.7 if it follows from
    them, 0.5 where readers would disagree.
    """

    question: str = dspy.InputField(desc="what was asked; the fact is part of an answer to it")
    entities: str = dspy.InputField(desc="the entities of the graph")
    fact: str = dspy.InputField(desc="the fact to check")
    seen: str = dspy.InputField(desc="the relations looked up so far")
    rule: str = dspy.InputField(desc="the verdict if the relations say nothing of the fact")
    rounds_left: int = dspy.InputField(desc="how often you may still look up; at 0 decide")
    judgement: FactJudgement = dspy.OutputField(desc="what to look up next, or the verdict")


@dataclass(frozen=True)
class CheckedFact:
    """A fact with its verdict, what was looked up for it, and the words that state it if false."""

    fact: AtomicFact
    judgement: FactJudgement
    looked_up: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class FactVerifier(dspy.Module):
    """The model's part: graph, facts, verdicts, and the words that state false facts.

    Args:
        reasoning: let the model think in words before it judges a fact.
        unverified: name the words also of facts for which there is not enough evidence.
    """

    # What a field of a predictor was called when programs were saved that are still about.
    earlier_fields: ClassVar = {"words": {"fact": "claim"}}

    def __init__(self, *, reasoning: bool = False, unverified: bool = False) -> None:
        super().__init__()
        self.graph = dspy.Predict(BuildGraph)
        self.facts = dspy.Predict(ListFacts)
        self.check = (dspy.ChainOfThought if reasoning else dspy.Predict)(CheckFact)
        self.words = dspy.Predict(NameWrongWords)
        self.unverified = unverified

    def forward(self, **inputs: str) -> dspy.Prediction:
        """Return what ``aforward`` returns; blocks until the model has answered."""
        return wait(self.acall(**inputs))

    async def aforward(
        self, passages: str, question: str, answer: str, rule: str
    ) -> dspy.Prediction:
        """Return lists: ``relations`` (`EntityEdge`), ``checked`` (`CheckedFact`), ``remarks``."""
        # a, b. The graph of the passages and the facts of the answer, at the same time.
        graph: EntityGraph
        facts: list[AtomicFact]
        graph, facts = await together(
            self._graph(passages, question), self._facts(question, answer)
        )
        # c, d. Every fact is checked; the words of the false ones are named.
        asking = CheckContext(question, answer, graph, rule)
        checks = (self._checked(fact, asking) for fact in facts[:MAX_FACTS])
        checked = await together(*checks, at_once=FACTS_AT_ONCE)
        left_out = len(facts) - len(checked)
        remarks = [f"{left_out} more facts were not checked"] if left_out else []
        return dspy.Prediction(relations=list(graph.edges), checked=checked, remarks=remarks)

    async def _graph(self, passages: str, question: str) -> EntityGraph:
        if passages == NOTHING_FOUND:
            return EntityGraph([])
        built = await self.graph.acall(passages=passages, question=question)
        graph = EntityGraph(edges_of(built.relations or []))
        for edge in graph.edges:
            keep(edge)
        return graph

    async def _facts(self, question: str, answer: str) -> list[AtomicFact]:
        listed = await self.facts.acall(question=question, answer=answer)
        facts: list[AtomicFact] = listed.facts or []
        return [fact for fact in facts if fact.fact.strip()]

    async def _checked(self, fact: AtomicFact, asking: CheckContext) -> CheckedFact:
        judgement, looked_up = await self._judge_fact(fact, asking)
        wrong = {"refuted", "not-enough-evidence"} if self.unverified else {"refuted"}
        if judgement.verdict not in wrong:
            return keep(CheckedFact(fact, judgement, looked_up))
        named = await self.words.acall(
            question=asking.question,
            answer=asking.answer,
            sentence=fact.sentence,
            claim=fact.fact,
            reason=judgement.reason,
        )
        return keep(CheckedFact(fact, judgement, looked_up, wrong_words(named)))

    async def _judge_fact(
        self, fact: AtomicFact, asking: CheckContext
    ) -> tuple[FactJudgement, tuple[str, ...]]:
        seen: dict[EntityEdge, None] = {}
        names: dict[str, None] = {}
        rounds = MAX_ROUNDS if asking.graph.edges else 1
        for rounds_left in reversed(range(rounds)):
            prediction = await self.check.acall(
                question=asking.question,
                entities=asking.entities,
                fact=fact.fact,
                seen=_list_relations(seen, names) if asking.graph.edges else NOTHING_FOUND,
                rule=asking.rule,
                rounds_left=rounds_left,
            )
            judgement: FactJudgement = prediction.judgement
            new = [name for name in judgement.look_up if name not in names]
            if not new or not rounds_left:
                break
            names.update(dict.fromkeys(new))
            seen.update(dict.fromkeys(asking.graph.look_up(new)))
        return judgement, tuple(names)


@dataclass(frozen=True)
class CheckContext:
    """What all checks of one answer share."""

    question: str
    answer: str
    graph: EntityGraph
    rule: str

    @property
    def entities(self) -> str:
        """The names in the graph, as a prompt shows them."""
        return "; ".join(self.graph.entities[:MAX_NAMES]) or NOTHING_FOUND


def _list_relations(edges: Iterable[EntityEdge], names: Iterable[str]) -> str:
    listed = "\n".join(f"- {edge}" for edge in edges)
    several = ", ".join(names)
    if listed:
        return listed
    return f"(nothing in the graph on: {several})" if several else "(nothing looked up yet)"


def create(kit: DetectorKit) -> UcscKg:
    """Build ``ucsc-kg``."""
    options = GraphOptions.model_validate(kit.spec.options)
    program = FactVerifier(reasoning=kit.spec.reasoning, unverified=options.unverified)
    return UcscKg(kit, program, guided="check")
