"""The `spanlab` command itself: what it is for, and its subcommands in the order of its help."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from spanlab.cli import (
    agreement,
    annotators,
    calibrate,
    check_model,
    commands,
    detectors,
    encoder,
    exporting,
    importing,
    index,
    jobs,
    memory,
    offering,
    optimize,
    programs,
    rates,
    reasoning,
    serving,
    stages,
    supervision,
    tools,
    train_offline,
    verifier_data,
)

app = typer.Typer(
    name="spanlab",
    no_args_is_help=True,
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


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(version("spanlab"))
        raise typer.Exit


@app.callback()
def _spanlab(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    pass


app.command("import")(importing.import_command)
app.command()(commands.annotate)
app.command()(reasoning.reason)
app.command()(commands.vote)
app.command()(commands.score)
app.command()(rates.rates)
app.command()(agreement.agreement)
app.command()(exporting.export)
app.command()(stages.stages)
app.command()(index.index)
app.command()(detectors.detectors)
app.command()(tools.tools)
app.command()(check_model.check_model)
app.command()(commands.datasets)
app.command()(serving.serve)
app.command()(serving.demo)
app.command()(offering.mcp)
app.command()(offering.api)
app.command()(train_offline.train_offline)
app.command()(calibrate.calibrate)
app.command()(optimize.optimize)
app.command()(supervision.verify_benchmark)
app.command()(supervision.ideal_trajectories)
app.command()(verifier_data.verifier_data)
app.add_typer(annotators.app, name="annotators")
app.add_typer(encoder.app, name="encoder")
app.add_typer(memory.app, name="memory")
app.add_typer(programs.app, name="programs")
app.add_typer(jobs.app, name="jobs")
app.command()(jobs.worker)
