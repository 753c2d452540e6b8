"""`spanlab programs`: the prompts that optimisation has found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanlab.errors import UsageError
from spanlab.results import counted

if TYPE_CHECKING:
    from spanlab.schema import PromptChange

app = typer.Typer(
    no_args_is_help=True,
    help="""Tuned prompts: list, show, compare, use, export, import.

    They lie as JSON files in SPANLAB_HOME/programs, or where SPANLAB_PROGRAMS says.

    \b
    spanlab programs list
    spanlab programs show short-spans
    spanlab programs use short-spans
    """,
)

Known = Annotated[str, typer.Argument(metavar="NAME", help="A program; see `programs list`.")]


@app.command("list")
def list_command() -> None:
    """List the programs, the newest first; a star marks the one its detector uses.

    \b
    spanlab programs list
    """
    from spanlab.cli import console
    from spanlab.workflows.programs import program_table, registry

    console.write_tables([program_table(registry())])


@app.command()
def show(
    name: Known,
    as_json: Annotated[bool, typer.Option("--json", help="The whole file.")] = False,
) -> None:
    """Show where a program comes from, what it is worth, and its prompts.

    \b
    spanlab programs show short-spans
    """
    from spanlab.cli import console
    from spanlab.workflows.programs import program_tables, registry

    program = registry().load(name)
    if as_json:
        typer.echo(program.model_dump_json(indent=2))
        return
    console.write_tables(program_tables(program))
    for key, predictor in program.predictors.items():
        demos = counted(len(predictor.demos), "demonstration")
        typer.echo(f"\n{key}, {demos}:\n\n{predictor.instruction}")


@app.command()
def compare(before: Known, after: Annotated[str, typer.Argument(metavar="OTHER")]) -> None:
    """Show how the prompts of two programs differ: instructions line by line, demonstrations.

    \b
    spanlab programs compare first-try short-spans
    """
    from spanlab.schema import compare as changes
    from spanlab.workflows.programs import registry

    programs = registry()
    typer.echo(_compared(changes(programs.load(before), programs.load(after))))


@app.command()
def use(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    member: Annotated[
        str | None,
        typer.Option(help="A member of an ensemble (default: whom the program was tuned for)."),
    ] = None,
    untuned: Annotated[
        str | None,
        typer.Option(help="Instead of a program: a detector or member, to go untuned again."),
    ] = None,
) -> None:
    """Let a program's detector use it from now on, wherever no other program is asked for.

    A program that was tuned for a member of an ensemble is used by that member alone.

    \b
    spanlab programs use short-spans
    spanlab programs use short-spans --member ucsc-3-gpt4o-extract-overlap
    spanlab programs use --untuned ucsc-extract
    """
    from spanlab.cli import console
    from spanlab.workflows.programs import unuse
    from spanlab.workflows.programs import use as let_use

    if (name is None) == (untuned is None):
        raise UsageError("name a program, or a detector with --untuned; one of the two")
    if name is not None:
        console.say(f"{let_use(name, member)} uses {name}")
    else:
        unuse(str(untuned))
        console.say(f"{untuned} uses its own prompt")


@app.command()
def export(
    name: Known,
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
) -> None:
    """Write a program to a file, to be imported elsewhere.

    \b
    spanlab programs export short-spans -o short-spans.json
    """
    from spanlab.cli import console
    from spanlab.workflows.programs import registry

    registry().give(name, output)
    console.say(f"wrote {output}")


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="A file that `programs export` wrote.")],
    name: Annotated[str | None, typer.Option(help="What to call it here.")] = None,
) -> None:
    """Take in a program from a file; it is data alone, and anything else is refused.

    \b
    spanlab programs import short-spans.json
    """
    from spanlab.cli import console
    from spanlab.workflows.programs import take

    program = take(file, name)
    console.say(f"imported {program.name}, a program for {program.detector}")


@app.command()
def remove(name: Known) -> None:
    """Delete a program; a detector that used it goes back to its own prompt.

    \b
    spanlab programs remove short-spans
    """
    from spanlab.cli import console
    from spanlab.workflows.programs import registry

    registry().remove(name)
    console.say(f"removed {name}")


def _compared(changes: Sequence[PromptChange]) -> str:
    """Return the differences of two programs, predictor by predictor."""
    if not changes:
        return "the same prompts"
    parts = []
    for change in changes:
        lines = [change.predictor, *change.diff]
        lines += [f"- demonstration {_demo(demo)}" for demo in change.removed]
        lines += [f"+ demonstration {_demo(demo)}" for demo in change.added]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _demo(demo: object) -> str:
    text = json.dumps(demo, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:299]}…"
