"""The `spanlab` command itself: what it is for, and its subcommands in the order of its help."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, Final, NamedTuple

import typer
import typer.main
from typer.core import TyperGroup


class _CommandPlace(NamedTuple):
    """A command: the module below ``spanlab.cli`` and the name in it, and what it does."""

    place: str
    about: str


COMMANDS: Final = {
    "import": _CommandPlace("importing:import_command", "Read files into a dataset."),
    "annotate": _CommandPlace(
        "annotate:annotate", "Let detectors mark spans, in a dataset or from file to file."
    ),
    "reason": _CommandPlace(
        "reasoning:reason", "Answer questions step by step; a verifier checks every step."
    ),
    "vote": _CommandPlace("annotate:vote", "Turn the marks of many annotators into soft labels."),
    "score": _CommandPlace(
        "analysis:score", "Score predictions against gold labels: IoU, Corr and more."
    ),
    "rates": _CommandPlace(
        "analysis:rates", "Say how often answers are hallucinated, by model or another field."
    ),
    "measure": _CommandPlace(
        "measuring:measure", "Plan and read a rate: a detector's marks, corrected by reviews."
    ),
    "gate": _CommandPlace(
        "measuring:gate", "Fail if the hallucination rate of a dataset is too high."
    ),
    "campaign": _CommandPlace(
        "measuring:campaign", "Say how far people are with a dataset, and until when; steer it."
    ),
    "raters": _CommandPlace(
        "measuring:raters", "Say how far each person's marks can be relied on."
    ),
    "agreement": _CommandPlace(
        "analysis:agreement", "Say how far annotators agree on characters, and on verdicts."
    ),
    "export": _CommandPlace("datasets:export", "Write a dataset with its annotations."),
    "push": _CommandPlace(
        "datasets:push", "Write a dataset to Hugging Face's Hub, or verdicts back to its traces."
    ),
    "stages": _CommandPlace(
        "analysis:stages", "Say at which stages of their processes errors of answers came in."
    ),
    "index": _CommandPlace(
        "importing:index", "Index a corpus, so that detectors can look things up in it."
    ),
    "detectors": _CommandPlace(
        "models:detectors", "List the detectors: what each does and what it needs."
    ),
    "tools": _CommandPlace("models:tools", "Start tool servers, to see which tools they offer."),
    "bench": _CommandPlace(
        "bench:bench", "Compare detectors on datasets: one table with controls and tests."
    ),
    "check-model": _CommandPlace(
        "models:check_model", "Ask a model one call of each kind: what its endpoint can do."
    ),
    "datasets": _CommandPlace(
        "datasets:datasets", "List datasets with their settings and annotators, or change one."
    ),
    "snapshot": _CommandPlace(
        "versions:snapshot", "Keep a dataset as it is now, as a version that never changes."
    ),
    "diff": _CommandPlace("versions:diff", "Say what differs between two datasets or versions."),
    "bin": _CommandPlace("versions:app", "Deleted datasets: list, restore, delete for good."),
    "backup": _CommandPlace(
        "versions:backup", "Write the database and all programs into one file."
    ),
    "restore": _CommandPlace("versions:restore", "Put a backup into a database."),
    "guide": _CommandPlace("guide:guide", "Read the guide, page by page, or search it."),
    "roles": _CommandPlace("access:roles", "What people may do: grant, revoke, list."),
    "keys": _CommandPlace("access:keys", "Keys of programs: create, list, revoke."),
    "log": _CommandPlace("access:log", "Say who did what, the newest first."),
    "serve": _CommandPlace("serving:serve", "Serve the app on this machine until Ctrl+C."),
    "demo": _CommandPlace(
        "serving:demo", "Import and annotate the samples once, and serve the app."
    ),
    "mcp": _CommandPlace(
        "serving:mcp", "Offer detectors, verification, scores and sources as MCP tools."
    ),
    "api": _CommandPlace("serving:api", "Offer detectors, verification and scores as a JSON API."),
    "train-offline": _CommandPlace(
        "training:train_offline", "Train the offline detector on labelled items."
    ),
    "calibrate": _CommandPlace(
        "models:calibrate", "Calibrate the probabilities of the detector encoder."
    ),
    "optimize": _CommandPlace(
        "optimize:optimize", "Tune a detector's prompt on labels that people made."
    ),
    "verify-benchmark": _CommandPlace(
        "training:verify_benchmark",
        "Verify that passages of questions lead to their known answers.",
    ),
    "ideal-trajectories": _CommandPlace(
        "training:ideal_trajectories",
        "Have a model write an ideal reasoning for every question.",
    ),
    "verifier-data": _CommandPlace(
        "training:verifier_data", "Write chats to train a verifier of steps on."
    ),
    "worker": _CommandPlace(
        "jobs:worker", "Work on queued jobs until Ctrl+C; any number share them."
    ),
    "annotators": _CommandPlace(
        "datasets:app", "Annotators of a dataset: rename, merge, remove, mark as gold."
    ),
    "encoder": _CommandPlace(
        "models:app", "Get, convert, list and check checkpoints for the encoders."
    ),
    "memory": _CommandPlace("memory:app", "The evidence that detectors keep for later claims."),
    "programs": _CommandPlace(
        "optimize:app", "Tuned prompts: list, show, compare, use, export, import."
    ),
    "jobs": _CommandPlace("jobs:app", "List and steer jobs."),
}


class CommandGroup(TyperGroup):
    """Loads a command when it is called: the help of all of them must not wait for pydantic."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)  # None until it is loaded

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or None if there is none of this name."""
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load_command(cmd_name)
        return self.commands.get(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from what stands here of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.about) for name, command in COMMANDS.items()])


def _load_command(name: str) -> Any:
    module, _, attribute = COMMANDS[name].place.partition(":")
    command = getattr(import_module(f"spanlab.cli.{module}"), attribute)
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
        typer.Option("--version", callback=_show_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    pass
