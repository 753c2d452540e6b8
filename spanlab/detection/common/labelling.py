"""Labels for what a detector has marked: one more call, whatever the detector is.

The prompts that find what is wrong stay as short as they are, and one prompt serves detectors that
quote, that check facts and that revise. Every span gets one label of the set; one that the model
does not choose from the set is no label, which the trace says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dspy

from spanlab.schema import Annotation, RemarkStep, SpanLabel


class ChooseLabels(dspy.Signature):
    """Say of which kind each wrong part of an answer is.

    Somebody has marked the parts as wrong. For each part choose the one label whose description
    fits best, by what the passages say.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer that the parts are of")
    labels: str = dspy.InputField(desc="the labels, each with its description")
    parts: str = dspy.InputField(desc="the wrong parts, numbered")
    chosen: list[str] = dspy.OutputField(desc="the label of each part, in their order")


def asked_of(annotation: Annotation, labels: Sequence[SpanLabel]) -> Mapping[str, str]:
    """Return the inputs of ``ChooseLabels`` that are not the item's."""
    parts = (
        f"{number}. {span.text}" + (f" ({span.note})" if span.note else "")
        for number, span in enumerate(annotation.spans, 1)
    )
    return {
        "labels": "\n".join(f"- {label.name}: {label.description}" for label in labels),
        "parts": "\n".join(parts),
    }


def labelled(
    annotation: Annotation, labels: Sequence[SpanLabel], chosen: Sequence[str]
) -> Annotation:
    """Return an annotation whose spans have the labels that a model chose for them, in order."""
    known = {label.name.casefold(): label.name for label in labels}
    names = [known.get(name.strip(" .-\"'`*").casefold()) for name in chosen]
    names += [None] * (len(annotation.spans) - len(names))
    spans = tuple(
        span.model_copy(update={"label": name})
        for span, name in zip(annotation.spans, names, strict=False)
    )
    lost = sum(span.label is None for span in spans)
    remark = f"the model chose a label of the set for {len(spans) - lost} of {len(spans)} spans"
    trace = (*annotation.trace, *([RemarkStep(text=remark)] if lost else []))
    return annotation.model_copy(update={"spans": spans, "trace": trace})
