"""Predictions in a dataset's own form of submissions, and their scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from spanlab.base.inbound import brought
from spanlab.bench.cards import BenchItem, DatasetCard, FoundDataset
from spanlab.formats import read_labels
from spanlab.formats.files import replacing
from spanlab.formats.known import mushroom
from spanlab.formats.verdict_words import verdict_of
from spanlab.schema import Annotation, Status
from spanlab.scoring.answer_scores import ANSWER_SCORES, score_answers
from spanlab.scoring.averitec_files import LABELS, claim_id, prediction_line
from spanlab.scoring.claims import JudgedClaim, compare_macro_f1, score_claims
from spanlab.scoring.comparison import MeanDifference, compare
from spanlab.scoring.report import ScoreReport, score
from spanlab.scoring.verdicts import by_text
from spanlab.text.extents import iou
from spanlab.text.labels import AnswerVerdict, ItemLabels, hard_of, labels_of

Judgements = dict[tuple[str, str], tuple[str | None, float | None]]  # by item and part of it
_PART: Final = "answer"


@dataclass(frozen=True)
class ScoredCell:
    """The scores of predictions: of spans a report, else what was judged, by language."""

    n: int
    report: ScoreReport | None = None
    judged: tuple[JudgedClaim, ...] = ()
    languages: Mapping[str, tuple[JudgedClaim, ...]] = field(default_factory=dict)

    def figures(self, card: DatasetCard) -> dict[str, Any]:
        """Return macro figures and those of each language, with intervals."""
        metrics = card.scores
        if not self.n:
            return {"macro": {"n": 0, **dict.fromkeys(metrics)}}
        if self.report is not None:
            named = {lang.lang: lang for lang in self.report.languages}
            sides: dict[str, Any] = {"macro": self.report.macro, **named}
        else:
            parts = {"macro": self.judged, **self.languages}
            if card.level == "answers":
                return _answer_figures(parts, metrics)
            sides = {lang: score_claims(c, keep_inconclusive=True) for lang, c in parts.items()}
        return {
            lang: {
                "n": side.n,
                **{
                    name: (figures := getattr(side, name)) and figures.model_dump()
                    for name in metrics
                },
            }
            for lang, side in sides.items()
        }

    def minus(self, other: ScoredCell, metric: str) -> MeanDifference | None:
        """Return this cell's score minus another's, paired; None if they have nothing in common.

        Args:
            other: another cell of the same dataset.
            metric: the score of spans that is compared; for verdicts it is macro F1.
        """
        if self.report is not None and other.report is not None:
            ids = {item.id for item in other.report.items}
            if not any(item.id in ids for item in self.report.items):
                return None
            difference = getattr(compare(self.report, other.report).macro, metric)
            assert difference is None or isinstance(difference, MeanDifference)
            return difference
        common = {claim.item for claim in self.judged} & {claim.item for claim in other.judged}
        a, b = ([c for c in side.judged if c.item in common] for side in (self, other))
        return compare_macro_f1(a, b).difference if common else None


def _answer_figures(
    parts: Mapping[str, Sequence[JudgedClaim]], metrics: Sequence[str]
) -> dict[str, Any]:
    """Return the figures of verdicts on whole answers, also those that claims have."""
    figures: dict[str, Any] = {}
    for lang, judged in parts.items():
        pairs = [
            (
                AnswerVerdict(one.gold != "supported", float(one.gold != "supported")),
                AnswerVerdict(one.predicted != "supported", 1.0 - (one.support or 0.0)),
            )
            for one in judged
        ]
        of_answers = score_answers(pairs)
        of_claims = score_claims(judged, keep_inconclusive=True)
        figures[lang] = {"n": of_claims.n}
        for name in metrics:
            side = of_answers if name in ANSWER_SCORES else of_claims
            mean = getattr(side, name)
            figures[lang][name] = mean and mean.model_dump()
    return figures


def write_predictions(
    card: DatasetCard,
    items: Sequence[BenchItem],
    annotations: Sequence[Annotation | None],
    path: Path,
) -> None:
    """Write predictions in the format of the dataset's submissions.

    Args:
        card: the dataset's card, which says the format.
        items: the items, in the order of ``annotations``.
        annotations: a prediction for each item; failed and missing ones are left out.
        path: the file to write.
    """
    finished = [
        (item, annotation)
        for item, annotation in zip(items, annotations, strict=True)
        if annotation is not None and annotation.status is Status.DONE
    ]
    lines: list[bytes] = []
    for bench_item, annotation in finished:
        if card.level == "spans":
            lines.append(mushroom.dumps(bench_item.item.id, annotation))
        elif card.submission == "averitec":
            lines.append(prediction_line(bench_item.item, _with_verdicts(bench_item, annotation)))
        else:
            lines += [
                json.dumps({"id": item, "part": part, "verdict": verdict, "prob": prob}).encode()
                + b"\n"
                for (item, part), (verdict, prob) in judgements(
                    card, bench_item, annotation
                ).items()
            ]
    text = b"[" + b",\n".join(lines) + b"]\n" if card.submission == "averitec" else b"".join(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(text)


def score_predictions(dataset: FoundDataset, items: Sequence[BenchItem], path: Path) -> ScoredCell:
    """Score a file of predictions; items that it lacks are not scored.

    Raises:
        InputError: it is damaged.
    """
    if not path.stat().st_size:  # all failed
        return ScoredCell(0)
    if dataset.card.level == "spans":
        labels_by_id = {labels.id: labels for labels in read_labels(path, format="mushroom")}
        pairs = [
            (_labels(item), labels_by_id[item.item.id])
            for item in items
            if item.item.id in labels_by_id
        ]
        return ScoredCell(len(pairs), score(pairs) if pairs else None)
    predicted = _read_judgements(dataset.card, items, path)
    judged: dict[str, list[JudgedClaim]] = {}
    ids = {item for item, _ in predicted}
    for bench_item in items:
        if bench_item.item.id not in ids:
            continue
        for key, (gold, _) in judgements(dataset.card, bench_item, bench_item.reference).items():
            if gold is not None:
                verdict, prob = predicted.get(key, (None, None))
                claim = JudgedClaim(key[0], gold, dataset.verdict(verdict), prob)
                judged.setdefault(bench_item.item.lang, []).append(claim)
    all_judged = tuple(claim for claims in judged.values() for claim in claims)
    languages = {lang: tuple(claims) for lang, claims in sorted(judged.items())}
    return ScoredCell(len(ids), judged=all_judged, languages=languages)


def judgements(card: DatasetCard, bench_item: BenchItem, annotation: Annotation) -> Judgements:
    """Return an annotation's verdicts on the parts of an item that its dataset asks about.

    Returns:
        Verdict and probability of being supported, by item id and part: a claim's text, a step's
        number, or the whole answer.
    """
    item = bench_item.item
    if card.level == "steps":
        pairs = brought("pairings", "steps")(item, bench_item.reference, annotation)
        return {(item.id, str(at)): (type_, None) for at, (_, type_) in enumerate(pairs, 1)}
    if card.level == "answers":
        verdict = "refuted" if annotation.hallucinated else "supported"
        return {(item.id, _PART): (verdict, 1.0 - (annotation.hallucination_prob or 0.0))}
    by_part: Judgements = {}
    for claim in _with_verdicts(bench_item, annotation).claims:
        prob = claim.prob
        if prob is not None and claim.verdict != "supported":
            prob = 1.0 - prob
        by_part[item.id, " ".join(claim.text.split())] = (claim.verdict, prob)
    return by_part


def best_annotators(items: Sequence[BenchItem]) -> dict[str, str]:
    """Return the name of the person whose marks agree best with the reference, by language.

    Only people who finished half as many items as the busiest one of their language count.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    for item in items:
        of_lang = scores.setdefault(item.item.lang, {})
        for annotation in item.people:
            overlap = iou(hard_of(item.reference), hard_of(annotation))
            of_lang.setdefault(annotation.annotator, []).append(overlap)
    best = {}
    for lang, people in scores.items():
        n_busiest = max((len(person) for person in people.values()), default=0)
        mean_shares = {n: sum(f) / len(f) for n, f in people.items() if 2 * len(f) >= n_busiest}
        best[lang] = max(sorted(mean_shares), key=mean_shares.__getitem__, default="")
    return best


def _with_verdicts(bench_item: BenchItem, annotation: Annotation) -> Annotation:
    """Return an annotation with a verdict on each claim of the reference.

    One that has other claims gives their worst verdict; one with spans alone refutes what it marks.
    """
    claims_by_text = by_text(annotation.claims)
    worst = next((v for v in LABELS if v in {c.verdict for c in annotation.claims}), None)
    by_marks = "refuted" if hard_of(annotation) else "supported"
    claims = []
    for text, claim in by_text(bench_item.reference.claims).items():
        predicted = claims_by_text.get(text)
        verdict = predicted.verdict if predicted else worst if annotation.claims else by_marks
        prob = predicted.prob if predicted else None
        claims.append(claim.model_copy(update={"verdict": verdict, "prob": prob}))
    return annotation.model_copy(update={"claims": tuple(claims)})


def _labels(bench_item: BenchItem) -> ItemLabels:
    return labels_of(bench_item.record, bench_item.reference.annotator)


def _read_judgements(card: DatasetCard, items: Sequence[BenchItem], path: Path) -> Judgements:
    if card.submission == "averitec":
        ids = {claim_id(item.item): item for item in items}
        pairs: Judgements = {}
        for row in json.loads(path.read_bytes()):
            bench_item = ids[str(row["claim_id"])]
            verdict = verdict_of(row["pred_label"], field="pred_label")
            for text in by_text(bench_item.reference.claims):
                pairs[bench_item.item.id, text] = (verdict, None)
        return pairs
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(row["id"], row["part"]): (row["verdict"], row["prob"]) for row in rows}
