"""The head of a report: what was found on one screen, examples, and figures in detail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

from spanlab.data.report_examples import examples_html
from spanlab.data.report_figures import Overview
from spanlab.measure.measurement import comparison_sentence, rate_sentence, without_method
from spanlab.measure.rates import (
    MEASURES,
    NOTHING_THERE,
    RateReport,
)
from spanlab.output.drawing import draw
from spanlab.output.figures import counted, figure, percent
from spanlab.output.tables import Chart, Column, MeanInterval, ResultTable, as_html, write_cell
from spanlab.schema import AnnotatorKind, DatasetSettings, Status
from spanlab.scoring.annotator_tables import (
    ANNOTATOR,
    MAIN_SCORES,
    ScoredAnnotator,
    answer_table,
    score_table,
)
from spanlab.scoring.annotators import DatasetComparison

_PEOPLE = 20  # whose scores are shown
_NAMED = 10  # people whose counts are shown one by one
_FACTS = 3  # names in a line of the summary
_GROUPS = 50  # whose rates are shown
_DRAWN = 6  # groups in the picture of the summary
_ALPHA = 0.05  # of differences, corrected for their number
_GUIDELINES = 700  # characters that stand open
_KINDS = {
    AnnotatorKind.GOLD: "gold labels",
    AnnotatorKind.VOTE: "votes",
    AnnotatorKind.DETECTOR: "detectors",
}


def head_html(overview: Overview, legend: str) -> str:
    """Return the head of a report, above its items; every text of the data is escaped.

    Args:
        overview: the figures.
        legend: what highlights mean, as HTML.
    """
    agreement = overview.comparison.tables()[0]
    return (
        f"<header>{_headline(overview)}{_facts(overview)}{_picture(overview)}</header>\n"
        f"{examples_html(overview.worst)}{legend}{_guidelines(overview.settings)}"
        f"{_annotators(overview)}{_scores(overview.comparison)}"
        f"<div class='details'>{as_html(agreement) if agreement.rows else ''}"
        f"{_labels(overview)}{_rates(overview.rates) if overview.rates else ''}</div>\n"
    )


def _headline(overview: Overview) -> str:
    sentence, basis = _findings(overview)
    said = (*_comparisons(overview)[:_FACTS], basis)
    paragraphs = "".join(f"<p>{escape(text)}</p>\n" for text in said)
    return f"<p class='headline'>{escape(sentence)}</p>\n{paragraphs}"


def _comparisons(overview: Overview) -> Sequence[str]:
    """Return which groups hallucinate more than others, a sentence for each two."""
    measured, rates = overview.measured, overview.rates
    if measured is not None and measured.plan.by:
        return measured.comparisons
    pairs = () if rates is None or rates.is_raw else rates.pairs
    return [
        comparison_sentence(
            pair.a,
            pair.b,
            MeanInterval(mean=pair.rate.difference, low=pair.rate.low, high=pair.rate.high),
            "answers" if pair.characters is None else "characters",
        )
        for pair in pairs
        if pair.rate.p < _ALPHA or pair.rate.low <= 0 <= pair.rate.high
    ]


def _findings(overview: Overview) -> tuple[str, str]:
    """Return what was found in one sentence, and in another what that is based on."""
    measured, rates, total = overview.measured, overview.rates, overview.total
    if measured is not None and measured.sentence:
        rate = measured.rate
        return measured.sentence, (
            f"Estimated with 95 % confidence from {counted(rate.reviews, 'review')} of "
            f"{counted(rate.items, 'item')}, with the marks of the detector "
            f"{measured.plan.annotator}."
        )
    if rates is None or total is None:
        return "No answer has been reviewed yet.", "Without labels there is no hallucination rate."
    names = _names(rates.annotators)
    if rates.is_raw:
        share = percent(total.rates.answers.mean)
        return "The hallucination rate is not known: no person has reviewed these answers.", (
            f"{names} marked {share} of {counted(total.n, 'answer')}. These marks include "
            "the errors of the detector."
        )
    return rate_sentence(total.rates.answers, "answers"), (
        f"Estimated with 95 % confidence from {counted(total.n, 'answer')} labelled by {names}, "
        "if these are a random sample."
    )


def _facts(overview: Overview) -> str:
    """Return the summary of a report as pairs of a name and a text."""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd dir='auto'>{escape(text)}</dd>\n"
        for name, text in _fact_texts(overview)
    )
    return f"<dl>{rows}</dl>\n"


def _fact_texts(overview: Overview) -> Iterator[tuple[str, str]]:
    yield "Model", _models(overview)
    column, measured = MEASURES["answers"], overview.measured
    if measured is not None:
        rate = write_cell(measured.rate.superpopulation, column)
        yield f"Hallucinated {measured.plan.unit}", rate
    if overview.rates and overview.total and not overview.rates.is_raw:
        rates = overview.total.rates
        if measured is None or measured.plan.unit != "answers":
            yield "Hallucinated answers", write_cell(rates.answers, column)
        if rates.characters is not None:
            yield "Hallucinated text", f"{write_cell(rates.characters, column)} of an answer"
    languages = [f"{lang} {n:,}" for lang, n in Counter(overview.languages).most_common()]
    yield "Answers", f"{overview.n_items:,} ({_names(languages, 'languages')})"
    yield "Reviewed by", _reviewers(overview)
    yield "Agreement of reviewers", _agreement(overview.comparison)
    versions = len(overview.settings.guidelines)
    yield "Guidelines", f"version {versions}, below" if versions else "none written"
    at = overview.at
    yield "Report made", f"{at:%Y-%m-%d %H:%M} UTC"


def _models(overview: Overview) -> str:
    rates = overview.rates
    if rates is None or rates.field == "lang":
        return "not stated in the data"
    names = [group.value for group in rates.groups if group.value != NOTHING_THERE]
    return _names(names) or "not stated in the data"


def _reviewers(overview: Overview) -> str:
    kinds, states = overview.comparison.kinds, overview.states
    people = {
        name: states[name].get(Status.DONE, 0)
        for name in states
        if kinds[name] is AnnotatorKind.PERSON
    }
    named = [f"{name} {n:,}" for name, n in Counter(people).most_common() if n]
    decided = [f"{name} {n:,}" for name, n in Counter(overview.decided).most_common()]
    parts = [
        f"{counted(len(named), 'person').replace('persons', 'people')} ({_names(named)})"
        if named
        else "nobody",
        f"adjudicated by {_names(decided)}" if decided else "",
    ]
    return "; ".join(filter(None, parts))


def _agreement(comparison: DatasetComparison) -> str:
    agreed = comparison.persons
    if not agreed.n:
        return "not known: no answer has two reviewers"
    alpha = "undefined" if agreed.alpha is None else figure(agreed.alpha, 2)
    return f"Krippendorff's alpha {alpha} on {counted(agreed.n, 'answer')} (1 perfect, 0 chance)"


def _names(names: Sequence[str], noun: str = "") -> str:
    more = len(names) - _FACTS
    return ", ".join(names[:_FACTS]) + (f" and {more:,} more {noun}".rstrip() if more > 0 else "")


def _picture(overview: Overview) -> str:
    """Return the rates of the largest groups as a picture; "" for fewer than two."""
    measured, rates = overview.measured, overview.rates
    if measured is not None and measured.plan.by and len(measured.groups) > 2:
        by, unit = measured.plan.by, measured.plan.unit
        groups = [(g.value, g.items, g.superpopulation) for g in measured.groups[1:]]
    elif rates is not None and not rates.is_raw and len(rates.groups) > 1:
        by, unit = rates.field, "answers"
        groups = [(group.value, group.n, group.rates.answers) for group in rates.groups]
    else:
        return ""
    shown = sorted(groups, key=lambda group: -group[1])[:_DRAWN]
    title = f"Hallucinated {unit} by {_field_title(by)}, with 95 % intervals"
    if len(groups) > len(shown):
        title += f" (the largest {_DRAWN} of {len(groups):,})"
    table = ResultTable(
        key="summary",
        title=title,
        columns=(Column(key="value", title=by), Column(key="rate", title="Rate", unit="share")),
        rows=tuple((f"{value} ({n:,})", rate) for value, n, rate in shown),
        chart=Chart(kind="dots", x="rate", y="value"),
    )
    return f"<figure><figcaption>{escape(title)}</figcaption>{draw(table)}</figure>\n"


def _field_title(field: str) -> str:
    return "language" if field == "lang" else field.removeprefix("meta.")


def _guidelines(settings: DatasetSettings) -> str:
    text = settings.guidelines_now
    if not text:
        return ""
    body = f"<p class='passage' dir='auto'>{escape(text[:_GUIDELINES])}"
    if len(text) > _GUIDELINES:
        body += (
            f"…</p><details><summary>The whole guidelines</summary>"
            f"<p class='passage' dir='auto'>{escape(text)}</p></details>"
        )
    else:
        body += "</p>"
    title = f"Guidelines (version {len(settings.guidelines)})"
    return f"<section><h2>{title}</h2>{body}</section>\n"


def _annotators(overview: Overview) -> str:
    kinds = overview.comparison.kinds
    people = [name for name in overview.states if kinds[name] is AnnotatorKind.PERSON]
    rows = [
        (name, *_counts([name], overview))
        for kind in (*_KINDS, AnnotatorKind.PERSON)
        for name in overview.states
        if kinds[name] is kind and not (kind is AnnotatorKind.PERSON and len(people) > _NAMED)
    ]
    if len(people) > _NAMED:
        rows.append((f"{len(people):,} people together", *_counts(people, overview)))
    return as_html(
        ResultTable(
            key="annotators",
            title="Items by annotator",
            columns=(ANNOTATOR, *_count_columns("Done", "Skipped", "Failed", "Not annotated")),
            rows=tuple(rows),
            empty="Nobody has annotated them yet.",
        )
    )


def _count_columns(*titles: str) -> list[Column]:
    return [Column(key=title, title=title, unit="count") for title in titles]


def _counts(names: Sequence[str], overview: Overview) -> tuple[int, ...]:
    states = (Status.DONE, Status.SKIPPED, Status.FAILED)
    counts = [sum(overview.states[name].get(state, 0) for name in names) for state in states]
    return (*counts, len(names) * overview.n_items - sum(counts))


def _scores(comparison: DatasetComparison) -> str:
    """Return the tables of scores as HTML; empty without any annotator but the reference."""
    return _span_scores(comparison) + _answer_scores(comparison)


def _answer_scores(comparison: DatasetComparison) -> str:
    scores = comparison.answers.scores
    machines = [scored for scored in scores if scored.kind is not AnnotatorKind.PERSON]
    people = [scored for scored in scores if scored.kind is AnnotatorKind.PERSON]
    shown = answer_table([*machines, *people[:_PEOPLE]])
    title = f"Verdicts on whole answers against {comparison.reference}, with 95 % intervals"
    return as_html(shown.model_copy(update={"title": title})) if shown.rows else ""


def _span_scores(comparison: DatasetComparison) -> str:
    scores = comparison.scores
    machines = [scored for scored in scores if scored.kind is not AnnotatorKind.PERSON]
    people = [scored for scored in scores if scored.kind is AnnotatorKind.PERSON]
    if not any(scored.kind for scored in scores):
        return ""
    shown = [*_best_first(machines), *_best_first(people)[:_PEOPLE]]
    title = f"Scores against {comparison.reference}, means over languages with 95 % intervals"
    if len(people) > _PEOPLE:
        title += f"; of {len(people):,} people the best {_PEOPLE}"
    return as_html(score_table(shown, MAIN_SCORES, "iou", title))


def _best_first(scores: Sequence[ScoredAnnotator]) -> list[ScoredAnnotator]:
    return sorted(scores, key=lambda scored: (-scored.report.macro.iou.mean, scored.name))


def _labels(overview: Overview) -> str:
    kinds = [
        kind
        for kind in (*_KINDS, AnnotatorKind.PERSON)
        if any(kind is k for _, k in overview.labels)
    ]
    totals: dict[str, int] = {}
    for (label, _), count in overview.labels.items():
        totals[label] = totals.get(label, 0) + count
    if not totals:
        return ""
    names = (_KINDS.get(kind, "people").capitalize() for kind in kinds)
    return as_html(
        ResultTable(
            key="labels",
            title="Spans by label",
            columns=(Column(key="label", title="Label"), *_count_columns(*names)),
            rows=tuple(
                (label, *(overview.labels.get((label, kind), 0) for kind in kinds))
                for label in sorted(totals, key=lambda label: (-totals[label], label))
            ),
        )
    )


def _rates(rates: RateReport) -> str:
    largest = sorted(rates.groups, key=lambda group: -group.n)[:_GROUPS]
    groups = tuple(replace(group, labels={}) for group in rates.groups if group in largest)
    left_out = len(rates.groups) - len(groups)
    remark_on_rest = (f"{left_out:,} more with fewer items.",) if left_out else ()
    shown = replace(rates, groups=groups, remarks=(*rates.remarks, *remark_on_rest), unlabelled=0)
    alone = replace(shown, corrected=(), pairs=())
    plain = [without_method(table) for table in shown.corrected]
    method = " ".join(remark for _, remarks in plain for remark in remarks)
    how = f"<p class='about'>How it was measured. {escape(method)}</p>\n" if method else ""
    return "".join(map(as_html, (*(table for table, _ in plain), *alone.tables()))) + how
