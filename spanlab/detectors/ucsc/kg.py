"""``ucsc-kg``: check the answer's facts against a knowledge graph of the passages.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3: Context, Models and Prompt Optimization for
Automated Hallucination Detection in LLM Output", knowledge-graph verification.

1. Context is retrieved for the question (``system``).
2. Detection (``Verification``):
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
likely. Without passages there is no graph: facts are checked once, against what the model knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import dspy

from spanlab.claims import placed
from spanlab.detectors.common.model_detector import Case, places_of, span_of, strongest
from spanlab.detectors.ucsc.entries import UNVERIFIED, GraphOptions
from spanlab.detectors.ucsc.system import UcscDetector
from spanlab.detectors.ucsc.verification import Checked
from spanlab.entities import Edge
from spanlab.mappers import Quote, QuoteMapping, map_quotes
from spanlab.schema import Annotation, Claim, FactStep, Item, RelationStep, RemarkStep, Span, Step


class UcscKg(UcscDetector):
    """Marks the words that state facts which a graph of the passages refutes."""

    rules: ClassVar = {
        "passages": 'If the relations say nothing of the fact: "not-enough-evidence", even if you '
        "are certain of it.",
        "certain": 'If the relations say nothing of the fact: "supported" or "refuted" where you '
        'are certain of it yourself, else "not-enough-evidence".',
    }

    def partial_steps(self, case: Case) -> Iterator[Step]:
        """Return the relations of the graph and the facts that were checked before."""
        for result in case.partial:
            if isinstance(result, Edge):
                yield RelationStep(**result._asdict())
            elif isinstance(result, Checked):
                yield _step(result, self._map(case.item, result))

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Find the words of every refuted fact; every fact becomes a claim."""
        relations = [RelationStep(**edge._asdict()) for edge in prediction.relations]
        left_out = [RemarkStep(text=text) for text in prediction.remarks]
        spans: list[Span] = []
        claims, facts = [], []
        for checked in prediction.checked:
            found = self._map(item, checked)
            reason = checked.judgement.reason
            spans += [span_of(item.answer, mapped, reason) for mapped in found.spans]
            claims.append(_claim(item, checked))
            facts.append(_step(checked, found))
        return self.annotation(
            spans=strongest(spans),
            claims=claims,
            trace=[*relations, *left_out, *facts],
        )

    def _map(self, item: Item, checked: Checked) -> QuoteMapping:
        judgement = checked.judgement
        prob = judgement.confidence
        if judgement.verdict != "refuted":
            prob = min(1.0 if prob is None else prob, UNVERIFIED)
        floor = GraphOptions.model_validate(self.kit.spec.options).floor
        source = checked.fact.sentence or None
        return placed(item.answer, source, checked.words, prob=prob, lang=item.lang, floor=floor)


def _claim(item: Item, checked: Checked) -> Claim:
    """Return a fact as a claim; ``prob`` is how sure its verdict is."""
    sentence = checked.fact.sentence
    found = map_quotes(item.answer, [Quote(sentence)]) if sentence.strip() else None
    source = span_of(item.answer, found.spans[0]) if found and found.spans else None
    return Claim(
        text=checked.fact.fact,
        source=source,
        verdict=checked.judgement.verdict,
        prob=checked.judgement.confidence,
    )


def _step(checked: Checked, found: QuoteMapping) -> FactStep:
    return FactStep(
        text=checked.fact.fact,
        verdict=checked.judgement.verdict,
        prob=checked.judgement.confidence,
        reason=checked.judgement.reason or None,
        looked_up=checked.looked_up,
        places=places_of(found.spans),
    )
