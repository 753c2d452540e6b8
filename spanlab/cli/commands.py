"""The main commands of `spanlab`; each calls one workflow."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from spanlab.cli.options import ExportFormat, Output, SpanCleanup
from spanlab.errors import UsageError
from spanlab.results import counted


def vote(
    source: Annotated[str, typer.Argument(help="A dataset, or with --gold-annotators a file.")],
    annotators: Annotated[
        str | None, typer.Option(help="Who votes in a dataset: names with commas between.")
    ] = None,
    gold_annotators: Annotated[
        bool, typer.Option("--gold-annotators", help="The persons that a file names vote.")
    ] = False,
    name: Annotated[str, typer.Option(help="What the vote is called.")] = "vote",
    cleanup: Annotated[
        SpanCleanup, typer.Option(help="mushroom trims spans as the shared task did.")
    ] = SpanCleanup.NONE,
    weighted: Annotated[
        bool,
        typer.Option("--weighted", help="Voters weigh as much as their marks can be relied on."),
    ] = False,
    output: Output = None,
    format: Annotated[ExportFormat | None, typer.Option(help="As in annotate.")] = None,
) -> None:
    """Turn the marks of many annotators into soft labels: the share that marks each character.

    \b
    spanlab vote mine --annotators offline,anna,ben --name majority
    spanlab vote val.jsonl --gold-annotators --cleanup mushroom -o voted.jsonl
    """
    from spanlab.cli import files_to_file, inputs, progress

    if gold_annotators and annotators is not None:
        raise UsageError("either --annotators or --gold-annotators says who votes, not both")
    if gold_annotators and weighted:
        raise UsageError("--weighted is for the annotators of a dataset: import the file first")
    if gold_annotators:
        job = files_to_file.FileJob(inputs.files([source]), output, format)
        files_to_file.vote_files(job, name, cleanup=cleanup.value)
        return
    if annotators is None:
        raise UsageError("name the voters: --annotators A,B,C (or --gold-annotators for a file)")
    if output is not None or format is not None:
        raise UsageError(
            "-o and --format are for files; a dataset keeps its votes: "
            f"spanlab export {source} -o FILE"
        )
    names = [part.strip() for part in annotators.split(",") if part.strip()]
    from spanlab.storage import Store
    from spanlab.workflows.voting import vote_dataset

    with Store.open() as store, progress.bar("voting", unit="items") as advance:
        count = vote_dataset(
            store,
            source,
            names,
            name=name,
            cleanup=cleanup.value,
            weighted=weighted,
            on_progress=advance,
        )
    progress.say(f"{name!r} has {counted(count, 'vote')} in {source!r}")


def score(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(metavar="PRED GOLD", help="Files, globs, or versions as DATASET@NAME."),
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
    --steps the labels of wrong steps are scored by type, as `safe` gives them. With
    --averitec both sides are files of that shared task, joined by claim_id.

    \b
    spanlab score pred.jsonl val.jsonl
    spanlab score 'pred/*.jsonl' 'val/*.jsonl' --json
    spanlab score mine.jsonl val.jsonl --against theirs.jsonl
    spanlab score checked.jsonl claims.jsonl --claims
    spanlab score pred.json dev.json --averitec
    """
    from spanlab.cli import inputs, output
    from spanlab.workflows.analysis.averitec import score_averitec_files
    from spanlab.workflows.analysis.claims import score_claim_files
    from spanlab.workflows.analysis.score_files import score_files
    from spanlab.workflows.analysis.steps import score_step_files

    named = context.with_resource(inputs.versions_as_files([against, *files]))
    against, files = named[0] or None, named[1:]
    predictions, golds = inputs.two_sides(files)
    if repeat_pairs and not averitec:
        raise UsageError("--repeat-pairs goes with --averitec")
    if averitec:
        if claims or steps or against or annotator or gold:
            raise UsageError("--averitec scores two files whole: leave the other options out")
        found = score_averitec_files(predictions, golds, repeat_pairs=repeat_pairs)
        output.write_result(found, json=as_json)
        return
    if steps:
        if claims or against:
            raise UsageError("--steps scores two sides alone: leave --claims and --against out")
        scored = score_step_files(predictions, golds, annotator=annotator, gold_annotator=gold)
        output.write_result(scored, json=as_json)
        return
    if keep_inconclusive and not claims:
        raise UsageError("--keep-inconclusive goes with --claims")
    scored_by = (
        partial(score_claim_files, keep_inconclusive=keep_inconclusive) if claims else score_files
    )
    evaluation = scored_by(
        predictions,
        golds,
        annotator=annotator,
        gold_annotator=gold,
        against=inputs.files([against]) if against else (),
    )
    output.write_result(evaluation, json=as_json, ascii_only=claims)


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(help="The dataset to show or to change; without it, all are listed."),
    ] = None,
    undecided: Annotated[
        Literal["rejected", "likely", "ask"] | None,
        typer.Option(help="What Done in Review does with undecided suggestions."),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(
            min=0, max=100, help="How many people are to finish each item in Review; 0: any number."
        ),
    ] = None,
    assign: Annotated[
        list[str] | None,
        typer.Option(
            help="A person to whom items are assigned; once for each, '' for nobody. Without it, "
            "items go to whoever comes first.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="A shipped label set: spanlab, FaithBench, RAGTruth, SAFE or Mu-SHROOM (none)."
        ),
    ] = None,
    guidelines: Annotated[
        Path | None, typer.Option(help="A Markdown file that annotators see.", dir_okay=False)
    ] = None,
) -> None:
    """List the datasets with their settings and annotators, or show one and change its settings.

    Each annotator stands with the number of items per state: not annotated, done (possibly
    without spans), failed or skipped. Of one dataset with a plan (--overlap, --assign) it is said,
    too, how many items each person is to finish, has finished, and has left.

    \b
    spanlab datasets
    spanlab datasets mine
    spanlab datasets mine --undecided likely
    spanlab datasets mine --overlap 2 --assign Ada --assign Ben --assign Cleo
    spanlab datasets mine --labels RAGTruth --guidelines guidelines.md
    """
    from spanlab.cli import inputs, output
    from spanlab.schema import UndecidedRule
    from spanlab.workflows.datasets import (
        dataset_tables,
        label_set,
        open_store,
        plan_of,
        plan_table,
        summary_of,
    )

    changed = {
        **({} if undecided is None else {"undecided": UndecidedRule(undecided)}),
        **({} if overlap is None else {"overlap": overlap}),
        **({} if assign is None else {"assigned_to": tuple(filter(None, assign))}),
        **({} if labels is None else {"labels": label_set(labels)}),
    }
    if name is None and (changed or guidelines):
        raise UsageError(
            "settings belong to one dataset: name it first, as in `spanlab datasets NAME --labels "
            "SET`; `spanlab datasets` lists the names"
        )
    text = None if guidelines is None else inputs.text_of(guidelines)
    with open_store() as store:
        if name is None:
            output.write_tables(dataset_tables(list(store.datasets())))
            return
        if changed or text is not None:
            store.change_settings(
                name,
                lambda now: now.model_copy(update=changed).with_guidelines(
                    text if text is not None else now.guidelines_now
                ),
            )
        summary = summary_of(store, name)
        plan = plan_of(store, summary)
        plans = [] if plan is None else [plan_table(summary, plan)]
        output.write_tables([*dataset_tables([summary]), *plans])
