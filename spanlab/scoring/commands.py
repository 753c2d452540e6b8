"""`spanlab score`, `agreement` and `raters`: figures computed from labels."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from spanlab.base.errors import UsageError
from spanlab.cli import console, inputs
from spanlab.cli.inputs import split_names


def score(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="PRED GOLD",
            help="Files, globs, datasets, or versions as DATASET@NAME. A dataset alone is scored "
            "against its own gold labels.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
    annotator: Annotated[
        str | None, typer.Option(help="The annotator that is scored, if PRED has several.")
    ] = None,
    gold: Annotated[
        str | None,
        typer.Option("--gold", help="The annotator that counts as right (default: gold)."),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="A second prediction (file or glob), for a paired test.")
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A further metric, by its name in an installed package."),
    ] = None,
    claims: Annotated[
        bool, typer.Option("--claims", help="Score verdicts on claims instead of spans.")
    ] = False,
    keep_inconclusive: Annotated[
        bool,
        typer.Option(
            "--keep-inconclusive",
            help="With --claims: score also claims that one side calls inconclusive.",
        ),
    ] = False,
    steps: Annotated[
        bool, typer.Option("--steps", help="Score types of errors in the steps of reasonings.")
    ] = False,
    by_label: Annotated[
        bool, typer.Option("--by-label", help="Score the labels of spans, each by itself.")
    ] = False,
    averitec: Annotated[
        bool, typer.Option("--averitec", help="Score files of AVeriTeC's shared task its way.")
    ] = False,
    repeat_pairs: Annotated[
        bool,
        typer.Option(
            "--repeat-pairs",
            help="With --averitec: repeat a prediction's questions and answers up to ten.",
        ),
    ] = False,
) -> None:
    """Score predictions against gold labels: IoU, Corr and more, per language and macro.

    Items are joined by their full id; ids that only one side has are reported. With --claims the
    verdicts on claims are scored: accuracy, balanced accuracy, F1 of each verdict, AUROC. With
    --steps the labels of wrong steps are scored by type, as `safe` gives them, with --by-label
    those of spans, in characters. With --averitec both sides are files of
    that shared task, joined by claim_id.

    \b
    spanlab score mine --annotator offline
    spanlab score pred.jsonl val.jsonl
    spanlab score 'pred/*.jsonl' 'val/*.jsonl' --json
    spanlab score mine.jsonl val.jsonl --against theirs.jsonl
    spanlab score checked.jsonl claims.jsonl --claims
    """
    from spanlab.base.inbound import brought
    from spanlab.scoring.averitec_scores import score_averitec_files
    from spanlab.scoring.files import score_files
    from spanlab.scoring.label_scores import score_label_files
    from spanlab.scoring.verdicts import score_claim_files

    if len(files) == 1 and not inputs.are_files(files):
        files, gold = files * 2, gold or _gold_of(files[0])
    with inputs.datasets_as_files([against, *files], annotator) as named:
        against, files = named[0] or None, named[1:]
        predictions, golds = inputs.split_sides(files)
        if repeat_pairs and not averitec:
            raise UsageError("--repeat-pairs needs --averitec")
        if metric and (averitec or steps or claims or by_label):
            raise UsageError("--metric is of spans: leave the options for other scores out")
        if averitec:
            if claims or steps or by_label or against or annotator or gold:
                raise UsageError("--averitec scores two files whole: leave the other options out")
            averitec_scores = score_averitec_files(predictions, golds, repeat_pairs=repeat_pairs)
            console.write_result(averitec_scores, json=as_json)
            return
        if steps or by_label:
            if claims or against or (steps and by_label):
                option = "--steps" if steps else "--by-label"
                raise UsageError(f"{option} scores two sides alone: leave the other options out")
            score_sides = brought("evaluations", "steps") if steps else score_label_files
            scored = score_sides(predictions, golds, annotator=annotator, gold_annotator=gold)
            console.write_result(scored, json=as_json)
            return
        if keep_inconclusive and not claims:
            raise UsageError("--keep-inconclusive needs --claims")
        scored_by = (
            partial(score_claim_files, keep_inconclusive=keep_inconclusive)
            if claims
            else partial(score_files, metrics=metric or ())
        )
        evaluation = scored_by(
            predictions,
            golds,
            annotator=annotator,
            gold_annotator=gold,
            against=inputs.find_files([against]) if against else (),
        )
        console.write_result(evaluation, json=as_json, ascii_only=claims)


def _gold_of(dataset: str) -> str:
    """Return whose labels count as right in a dataset: those of adjudication, else gold ones."""
    from spanlab.scoring.annotator_tables import reference_of
    from spanlab.storage import Store
    from spanlab.storage.datasets import summary_of

    with Store.open() as store:
        return reference_of(summary_of(store, dataset).kinds) or "gold"


def agreement(
    dataset: Annotated[str, typer.Argument(help="A dataset that several have annotated.")],
    as_json: Annotated[bool, typer.Option("--json", help="All figures and pairs as JSON.")] = False,
) -> None:
    """Report how far annotators agree on characters, and on verdicts on claims.

    Krippendorff's alpha of people, and of people and detectors: 1 is perfect agreement, 0 what
    chance would give.

    \b
    spanlab agreement mine
    """
    from spanlab.scoring.annotators import compare_dataset
    from spanlab.storage import Store

    with Store.open() as store, console.bar("reading", unit="items") as advance:
        comparison = compare_dataset(store, dataset, on_progress=advance)
    console.write_result(comparison, json=as_json, ascii_only=False)


def raters(
    dataset: Annotated[str, typer.Argument(help="A dataset that several people annotated.")],
    annotators: Annotated[
        str | None, typer.Option(help="People to rate, separated by commas; by default all.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
) -> None:
    """Estimate how reliable each person is: sensitivity and specificity.

    Estimated from agreement (Dawid and Skene's model) and from items with gold labels, which people
    who review blind do not see. `spanlab vote --weighted` uses it.
    """
    from spanlab.scoring.reliability import rate_raters
    from spanlab.storage import Store

    with Store.open() as store:
        ratings = rate_raters(store.records(dataset), split_names(annotators))
    console.write_result(ratings, json=as_json)
