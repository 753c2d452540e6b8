"""The `spanlab` command itself: what it is for, and its subcommands in the order of its help."""

from __future__ import annotations

from importlib.metadata import version
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

from spanlab import doors
from spanlab.cli.former import as_now


class CommandGroup(TyperGroup):
    """Loads a command when it is called: the help of all of them must not wait for pydantic."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._offered = doors.commands()
        self.commands: dict[str, Any] = dict.fromkeys(self._offered)  # None until it is loaded

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None if there is none of this name."""
        if cmd_name in self._offered and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load_command(cmd_name, self._offered[cmd_name].place)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Take the words of 1.0, too, as the command and its options are called now."""
        return super().resolve_command(ctx, args[:1] + as_now(args[0], args[1:]))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from their entries here."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.about) for name, command in self._offered.items()])


def _load_command(name: str, place: str) -> Any:
    command = resolve_name(place)
    parent = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(command, typer.Typer):
        parent.add_typer(command, name=name)
    else:
        parent.command(name)(command)
    return typer.main.get_group(parent).commands[name]


app = typer.Typer(
    name="spanlab",
    cls=CommandGroup,
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

    Exit status: 0 success, 1 wrong input or nothing done, 2 wrong usage, 3 some items failed,
    or a budget ended the run early.

    Work is kept in .spanlab/ (SPANLAB_HOME), or in PostgreSQL (SPANLAB_DATABASE_URL).
    """,
)


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(version("spanlab"))
        raise typer.Exit


@app.callback()
def _spanlab(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass
