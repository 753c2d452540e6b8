"""What `spanlab` can be asked on the command line; each command calls one workflow."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from spanlab.cli.options import (
    Cleanup,
    Concurrency,
    Contexts,
    DetectorName,
    ExportFormat,
    Format,
    Output,
)
from spanlab.errors import UsageError

app = typer.Typer(
    name="spanlab",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="""Find, review, vote on and export the hallucinated spans of LLM outputs.

    \b
    A first round, on the samples that come with spanlab:
      spanlab demo                                          everything at once, in the browser
    \b
    The same by hand, on your own files:
      spanlab import answers.jsonl --dataset mine           read items into the database
      spanlab annotate mine --detector offline              let a detector mark spans
      spanlab serve                                         review them in the browser
      spanlab vote mine --annotators offline,anna           votes become soft labels
      spanlab export mine --annotator anna -o mine.jsonl    get the annotations out
    \b
    From file to file, without a database:
      spanlab annotate val.jsonl --contexts ctx/ --detector offline -o pred.jsonl
      spanlab score pred.jsonl val.jsonl

    Work is kept in .spanlab/ (SPANLAB_HOME), or in PostgreSQL (SPANLAB_DATABASE_URL).
    """,
)


@app.command("import")
def import_command(
    files: Annotated[list[str], typer.Argument(help="Files or globs.")],
    dataset: Annotated[str, typer.Option(help="The dataset to make, or to add items to.")],
    format: Format = "auto",
    contexts: Contexts = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="For CSV and parquet: field=column, e.g. answer=output. Repeatable."),
    ] = None,
    sources: Annotated[
        Path | None, typer.Option(help="RAGTruth's source_info.jsonl, if it lies elsewhere.")
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict/--skip-bad",
            help="All or nothing, or leave bad records out and write them with reasons to a file.",
        ),
    ] = True,
    rejects: Annotated[
        Path | None, typer.Option(help="Where --skip-bad writes (default DATASET.rejects.jsonl).")
    ] = None,
) -> None:
    """Read files into a dataset.

    \b
    spanlab import answers.jsonl --dataset mine
    spanlab import val/*.jsonl --dataset val --contexts contexts/
    spanlab import outputs.csv --dataset mine --column answer=response --column id=key
    spanlab import big.jsonl --dataset big --skip-bad
    """
    from spanlab.cli import inputs, progress
    from spanlab.datasets import ReadOptions
    from spanlab.storage import Store
    from spanlab.workflows.importing import RejectsFile, import_files

    target = rejects or Path(f"{dataset.replace('/', '_')}.rejects.jsonl")
    with RejectsFile(target) as left_out:
        options = ReadOptions(
            format=format,
            contexts=contexts,
            columns=inputs.mapping(column or []),
            sources=sources,
            on_reject=None if strict else left_out.add,
        )
        with Store.open() as store, progress.bar("importing", unit="items") as advance:
            done = import_files(store, inputs.files(files), dataset, options, on_progress=advance)
    for warning in done.warnings:
        progress.say(warning)
    if left_out.count:
        progress.say(f"left out {left_out.count:,} bad records; see {target}")
    progress.say(f"imported {done.items:,} items into {dataset!r}")


@app.command()
def annotate(
    source: Annotated[list[str], typer.Argument(help="A dataset, or files or globs.")],
    detector: DetectorName,
    contexts: Contexts = None,
    output: Output = None,
    format: Annotated[
        ExportFormat | None,
        typer.Option(help="Format of the output file; without it, the input's."),
    ] = None,
    concurrency: Concurrency = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many items.")] = None,
) -> None:
    """Let a detector mark spans, in a dataset or from file to file.

    A dataset keeps the result; items that the detector has finished are not done again.

    \b
    spanlab annotate mine --detector offline
    spanlab annotate val/*.jsonl --contexts contexts/ --detector offline -o pred.jsonl
    """
    from spanlab.cli import files_to_file, inputs, progress

    if inputs.are_files(source):
        job = files_to_file.Job(inputs.files(source), output, format)
        files_to_file.annotate(
            job, detector, contexts=contexts, concurrency=concurrency, limit=limit
        )
        return
    dataset = source[0]
    if output is not None or contexts is not None or format is not None:
        raise UsageError(
            "-o, --format and --contexts are for files; a dataset keeps its annotations: "
            f"spanlab export {dataset} -o FILE"
        )
    from spanlab.storage import Store
    from spanlab.workflows.detecting import annotate_dataset

    with Store.open() as store, progress.bar("annotating", unit="items") as advance:
        count = annotate_dataset(
            store, dataset, detector, concurrency=concurrency, limit=limit, on_progress=advance
        )
    progress.say(f"{detector} annotated {count:,} items of {dataset!r}")


@app.command("train-offline")
def train_offline(
    files: Annotated[list[str], typer.Argument(help="Labelled files or globs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file, such as my.npz.")],
    contexts: Contexts = None,
    annotator: Annotated[str, typer.Option(help="Whose annotation is learnt.")] = "gold",
    folds: Annotated[
        int, typer.Option(min=0, help="Cross-validate in so many folds, for the card; 0: do not.")
    ] = 0,
) -> None:
    """Train the offline detector on labelled items, and write the model with its card.

    It needs the extra: pip install 'spanlab[train]'. SPANLAB_OFFLINE_MODEL=FILE makes the
    detector use the model.

    \b
    spanlab train-offline val/*.jsonl --contexts contexts/ -o my.npz
    spanlab train-offline reviewed.jsonl --annotator anna --folds 5 -o my.npz
    """
    from spanlab.cli import inputs, progress
    from spanlab.workflows.training import Job, train_files

    words = ["spanlab", "train-offline", *files]
    words += ["--contexts", str(contexts)] if contexts else []
    words += ["--annotator", annotator] if annotator != "gold" else []
    words += ["--folds", str(folds)] if folds else []
    words += ["-o", str(output)]
    job = Job(inputs.files(files), output, contexts, annotator, folds, shlex.join(words))
    with progress.steps("training") as on_progress:
        card = train_files(job, on_warning=progress.say, on_progress=on_progress)
    for scores in card.scores:
        progress.say(f"{scores.mode}: IoU {scores.iou.mean:.3f}, Corr {scores.corr.mean:.3f}")
    progress.say(f"wrote {output} ({card.size:,} bytes, SHA-256 {card.sha256}) and its card")


@app.command()
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
    format: Annotated[ExportFormat | None, typer.Option(help="Format of the output file.")] = None,
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
    progress.say(f"{name!r} has {count:,} votes in {source!r}")


@app.command()
def score(
    files: Annotated[list[str], typer.Argument(metavar="PRED GOLD", help="Files or globs.")],
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
    annotator: Annotated[
        str | None, typer.Option(help="Whose annotation is the prediction, if PRED has several.")
    ] = None,
    gold: Annotated[
        str | None, typer.Option("--gold", help="Whose annotation is the gold (default: gold).")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="A second prediction (file or glob), for a paired test.")
    ] = None,
) -> None:
    """Score predictions against gold labels: IoU, Corr and more, per language and macro.

    Items are joined by their full id; ids that only one side has are reported.

    \b
    spanlab score pred.jsonl val.jsonl
    spanlab score 'pred/*.jsonl' 'val/*.jsonl' --json
    spanlab score mine.jsonl val.jsonl --against theirs.jsonl
    """
    from spanlab.cli import inputs, tables
    from spanlab.workflows.evaluating import score_files

    predictions, golds = inputs.two_sides(files)
    evaluation = score_files(
        predictions,
        golds,
        annotator=annotator,
        gold_annotator=gold,
        against=inputs.files([against]) if against else (),
    )
    typer.echo(tables.as_json(evaluation) if as_json else tables.as_text(evaluation))


@app.command()
def export(
    dataset: Annotated[str, typer.Argument(help="The dataset to write.")],
    annotator: Annotated[str | None, typer.Option(help="Only this annotator.")] = None,
    format: Annotated[ExportFormat, typer.Option(help="Format to write.")] = ExportFormat.SPANLAB,
    output: Output = None,
) -> None:
    """Write a dataset with its annotations.

    \b
    spanlab export mine -o mine.jsonl
    spanlab export mine --annotator anna --format mushroom -o submission.jsonl
    """
    from spanlab.cli import progress
    from spanlab.storage import Store
    from spanlab.workflows.exporting import export_dataset

    with Store.open() as store, progress.bar("exporting", unit="items") as advance:
        count = export_dataset(
            store,
            dataset,
            output or sys.stdout.buffer,
            format=format.value,
            annotator=annotator,
            on_progress=advance,
        )
    progress.say(f"wrote {count:,} items of {dataset!r}" + (f" to {output}" if output else ""))


@app.command()
def datasets() -> None:
    """List the datasets with their sizes, languages and annotators.

    Of each annotator it says how many items are in each state: not annotated, done (possibly
    without spans), failed or skipped.

    \b
    spanlab datasets
    """
    from spanlab.cli import tables
    from spanlab.storage import Store

    with Store.open() as store:
        typer.echo(tables.datasets(store.datasets()))


@app.command()
def serve(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Default 8501, or the next free one.")
    ] = None,
) -> None:
    """Serve the app on this machine until Ctrl+C.

    \b
    spanlab serve
    spanlab serve --port 8600
    """
    from spanlab.cli import server

    raise typer.Exit(server.serve(port))


@app.command()
def demo(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="As in serve.")] = None,
    prepare_only: Annotated[
        bool, typer.Option("--prepare-only", help="Make the dataset, do not serve.")
    ] = False,
) -> None:
    """Import the samples once, let the offline detector and a vote mark them, and serve the app.

    Run again, it keeps all work and only serves.

    \b
    spanlab demo
    spanlab demo --prepare-only
    """
    from spanlab.cli import progress, server
    from spanlab.storage import Store
    from spanlab.workflows.demo import DATASET, prepare_demo

    with Store.open() as store, progress.bar("preparing", unit="items") as advance:
        count = prepare_demo(store, on_progress=advance)
    if count:
        progress.say(f"dataset {DATASET!r} is ready: {count} items")
    if not prepare_only:
        raise typer.Exit(server.serve(port))
