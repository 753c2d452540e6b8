"""The main commands of `spanlab`; each calls one workflow."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from spanlab.cli import model_options
from spanlab.cli.options import (
    ChatTurns,
    Cleanup,
    Columns,
    Contexts,
    ExportFormat,
    ListOfRecords,
    Output,
    Turns,
)
from spanlab.errors import UsageError
from spanlab.results import counted


def annotate(
    source: Annotated[list[str], typer.Argument(help="A dataset, or files or globs.")],
    detector: model_options.Detectors,
    contexts: Contexts = None,
    column: Columns = None,
    records: ListOfRecords = None,
    turns: ChatTurns = Turns.LAST,
    output: Output = None,
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            help="Format of the output file; without it, the one of its ending or the input's."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Items under way at once (default 32), for offline processes (default 1).",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many items.")] = None,
    item: Annotated[
        list[str] | None,
        typer.Option(help="Only this item of a dataset, also if it is finished. Repeatable."),
    ] = None,
    vote: Annotated[
        str | None, typer.Option(help="Name of a vote of all these detectors, cast as well.")
    ] = None,
    model: model_options.Model = None,
    retriever: model_options.Retriever = None,
    search_url: model_options.SearchUrl = None,
    corpus: model_options.Corpus = None,
    claims: model_options.Claims = False,
    english: model_options.English = False,
    config: model_options.Config = None,
    program: model_options.Program = None,
    price: model_options.Price = None,
    option: model_options.Options = None,
    model_option: model_options.ModelOption = None,
    max_calls: model_options.MaxCalls = None,
    max_cost: model_options.MaxCost = None,
    max_searches: model_options.MaxSearches = None,
    rate: model_options.Rate = None,
    again: model_options.Again = False,
) -> None:
    """Let detectors mark spans, in a dataset or from file to file.

    A dataset keeps the results as they come; items that a detector has finished are not done
    again, unless --again says so. What Ctrl+C leaves undone goes on with `spanlab jobs resume`, or
    the same command.

    \b
    spanlab annotate mine --detector offline
    spanlab annotate mine --detector ucsc-extract --model gpt-4o-mini --max-cost 2
    spanlab annotate mine --detector ucsc --search web --claims
    spanlab annotate claims --detector papelo --search searxng --max-searches 500
    spanlab annotate val/*.jsonl --contexts contexts/ --detector offline -o pred.jsonl
    spanlab annotate outputs.csv --column answer=reply --detector offline -o pred.csv
    """
    from spanlab.cli import files_to_file, inputs, progress
    from spanlab.datasets import ReadOptions
    from spanlab.workflows.choosing import remarks_on, specifications
    from spanlab.workflows.requesting import budget_of, request_of

    asked = (config, program, price, option, model_option, search_url)
    choice = model_options.choice(detector, model, retriever, corpus, claims, english, *asked)
    specs = specifications(choice)
    for remark in remarks_on(specs):
        progress.say(remark)
    budget = budget_of(max_calls, max_cost, searches=max_searches)
    if inputs.are_files(source):
        if vote is not None:
            raise UsageError("--vote is for a dataset; for files: spanlab vote")
        if rate is not None:
            raise UsageError("--rate is for a dataset: import the files first")
        if item:
            raise UsageError("--item is for a dataset: import the files first")
        if again:
            raise UsageError("--again is for a dataset: files are annotated anew each time")
        job = files_to_file.Job(inputs.files(source), output, format)
        run = files_to_file.Detection(specs, concurrency, limit, budget)
        columns = inputs.mapping(column or [])
        reading = ReadOptions(
            contexts=contexts, columns=columns, records=records, turns=turns.value
        )
        files_to_file.annotate(job, run, reading)
        return
    dataset = source[0]
    of_files = (output, contexts, column, records, format)
    if turns is not Turns.LAST or any(each is not None for each in of_files):
        raise UsageError(
            "-o, --format, --contexts, --column, --records and --turns are for files; a dataset "
            f"keeps its annotations: spanlab export {dataset} -o FILE"
        )
    from spanlab.cli import working

    bounds = {"concurrency": concurrency, "limit": limit, "budget": budget, "rate": rate}
    named = {"items": tuple(item) if item else None, "again": again or bool(item)}
    request = request_of(dataset, specs, vote=vote, **bounds, **named)
    working.annotate(request, again=again)


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
        Cleanup, typer.Option(help="mushroom trims spans as the shared task did.")
    ] = Cleanup.NONE,
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
    if gold_annotators:
        job = files_to_file.Job(inputs.files([source]), output, format)
        files_to_file.vote(job, name, cleanup=cleanup.value)
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
            store, source, names, name=name, cleanup=cleanup.value, on_progress=advance
        )
    progress.say(f"{name!r} has {counted(count, 'vote')} in {source!r}")


def score(
    files: Annotated[list[str], typer.Argument(metavar="PRED GOLD", help="Files or globs.")],
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
    from spanlab.workflows.averitec import score_averitec_files
    from spanlab.workflows.claim_scores import score_claim_files
    from spanlab.workflows.evaluating import score_files
    from spanlab.workflows.step_scores import score_step_files

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
    from spanlab.schema import Undecided
    from spanlab.workflows.lookup import summary_of
    from spanlab.workflows.managing import (
        change_settings,
        dataset_tables,
        label_set,
        open_store,
        plan_of,
        plan_table,
    )

    changed = {
        **({} if undecided is None else {"undecided": Undecided(undecided)}),
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
            change_settings(
                store,
                name,
                lambda now: now.model_copy(update=changed).with_guidelines(
                    text if text is not None else now.guidelines_now
                ),
            )
        summary = summary_of(store, name)
        plan = plan_of(store, summary)
        plans = [] if plan is None else [plan_table(summary, plan)]
        output.write_tables([*dataset_tables([summary]), *plans])
