"""`spanlab datasets`, `annotators` and `export`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from spanlab.base.errors import UsageError
from spanlab.base.guide import shipped_guidelines
from spanlab.cli import console, inputs
from spanlab.cli.inputs import Output, takes_options
from spanlab.data.export_choice import CSV_FORMATS, FORMATS, REPORT, ExportChoice
from spanlab.data.exporting import export_dataset, questions_left_out
from spanlab.detection.common.label_options import labels_in
from spanlab.formats import format_of
from spanlab.formats.writers import can_write
from spanlab.output.figures import counted
from spanlab.output.wording import blind_in_words
from spanlab.schema import LABEL_SETS, DatasetSummary, SpanLabel, UndecidedRule
from spanlab.storage import Store
from spanlab.storage.annotators import gold_name
from spanlab.storage.datasets import (
    claims_of_whole,
    copy_as_gold,
    dataset_tables,
    label_set,
    label_studio_config,
    make_verdicts,
    open_store,
    questions_of,
    rename_annotator,
    summary_of,
    undo_gold,
)

_LABELS = (
    f"A shipped label set ({', '.join(LABEL_SETS)}), or your own: "
    '"date: a wrong day or year; other: anything else".'
)


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(help="The dataset to show or to change; without it, all are listed."),
    ] = None,
    undecided: Annotated[
        Literal["rejected", "likely", "ask"] | None,
        typer.Option(help="What Done does with undecided suggestions in Review."),
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
            help="A person to whom items are assigned; '' for nobody. Without it, first come, "
            "first served. Repeatable.",
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help=_LABELS),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file: attributes asked of each span, questions of each answer; or a "
            "labelling configuration of Label Studio (XML).",
            dir_okay=False,
        ),
    ] = None,
    config: Annotated[
        bool,
        typer.Option("--config", help="Print the configuration for Label Studio of one (XML)."),
    ] = False,
    guidelines: Annotated[
        str | None,
        typer.Option(help="A Markdown file that annotators see, or citations, which ship."),
    ] = None,
) -> None:
    """List the datasets with their settings and annotators, or show one and change its settings.

    Each annotator is shown with the number of items per state: not annotated, done (possibly
    without spans), failed or skipped. `spanlab campaign` shows how far people are with a plan
    (--overlap, --assign).

    \b
    spanlab datasets
    spanlab datasets mine
    spanlab datasets mine --undecided likely
    spanlab datasets mine --overlap 2 --assign Ada --assign Ben --assign Cleo
    spanlab datasets mine --labels RAGTruth --guidelines guidelines.md
    spanlab datasets mine --labels "date: a wrong day or year; other: anything else"
    spanlab datasets mine --questions questions.json
    spanlab datasets mine --config > config.xml
    """
    changed = {
        **({} if undecided is None else {"undecided": UndecidedRule(undecided)}),
        **({} if overlap is None else {"overlap": overlap}),
        **({} if assign is None else {"assigned_to": tuple(filter(None, assign))}),
        **({} if labels is None else {"labels": _labels(labels)}),
        **({} if questions is None else questions_of(inputs.read_text(questions), questions)),
    }
    if name is None and (changed or guidelines or config):
        raise UsageError(
            "settings belong to one dataset: name it first, as in `spanlab datasets NAME --labels "
            "SET`; `spanlab datasets` lists the names"
        )
    text = None if guidelines is None else _guidelines(guidelines)
    with open_store() as store:
        if name is None:
            summaries = list(store.datasets())
            console.write_tables(dataset_tables(summaries))
            _tell_claims_of_whole(store, summaries)
            return
        if changed or text is not None:
            settings_now = store.change_settings(
                name,
                lambda settings: settings.model_copy(update=changed).with_guidelines(
                    text if text is not None else settings.guidelines_now
                ),
            )
            if {"overlap", "assigned_to"} & changed.keys():
                console.say(blind_in_words(settings_now))
        if config:
            typer.echo(label_studio_config(store, name), nl=False)
            return
        console.write_tables(dataset_tables([summary_of(store, name)]))
        _tell_claims_of_whole(store, [summary_of(store, name)])


def _labels(text: str) -> tuple[SpanLabel, ...]:
    """Return a shipped set by its name, or the labels that somebody wrote."""
    return labels_in(text) if ":" in text else label_set(text)


app = typer.Typer(
    no_args_is_help=True,
    help="""Annotators of a dataset: rename, merge, remove, copy as gold.

    `spanlab datasets` lists them.

    \b
    spanlab annotators merge mine ana anna
    spanlab annotators gold mine anna
    spanlab annotators rename mine anna "Anna K."
    spanlab annotators remove mine test-run --yes
    """,
)

Dataset = Annotated[str, typer.Argument(help="A dataset.")]
Known = Annotated[str, typer.Argument(metavar="ANNOTATOR", help="Who has annotated it.")]


@app.command()
def rename(
    dataset: Dataset, annotator: Known, new: Annotated[str, typer.Argument(metavar="NEW")]
) -> None:
    """Give an annotator another name; votes that it has a part in name it so, too.

    \b
    spanlab annotators rename mine anna "Anna K."
    """
    with Store.open() as store:
        rename_annotator(store, dataset, annotator, new)
    typer.echo(f"{annotator} is now called {new} in {dataset}.", err=True)


@app.command()
def merge(
    dataset: Dataset,
    annotator: Known,
    into: Annotated[str, typer.Argument(metavar="INTO", help="Whose annotations they become.")],
) -> None:
    """Make two annotators one; where both annotated an item, INTO's annotation is kept.

    \b
    spanlab annotators merge mine ana anna
    """
    with Store.open() as store:
        n_shared = store.merge_annotators(dataset, annotator, into)
    typer.echo(
        f"{annotator} is {into} now in {dataset}{describe_shared(n_shared, into)}.", err=True
    )


def describe_shared(n_shared: int, into: str) -> str:
    """Say of how many items the annotation of ``into`` was kept; empty for none."""
    if not n_shared:
        return ""
    return f"; of {counted(n_shared, 'item')} that both had annotated, what {into} said stays"


@app.command()
def remove(
    dataset: Dataset,
    annotator: Known,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm permanent deletion.")] = False,
) -> None:
    """Permanently delete an annotator's annotations of a dataset.

    \b
    spanlab annotators remove mine test-run --yes
    """
    if not yes:
        raise UsageError(
            f"this permanently deletes all annotations of {annotator!r} in {dataset!r}. Add --yes."
        )
    with Store.open() as store:
        store.remove_annotator(dataset, annotator)
    typer.echo(f"The annotations of {annotator} in {dataset} were deleted.", err=True)


@app.command()
def verdicts(dataset: Dataset, annotator: Known) -> None:
    """Make verdicts of the claims that earlier versions made of whole-answer labels.

    \b
    spanlab annotators verdicts mine gold
    """
    with Store.open() as store:
        n_wrong, n_right = make_verdicts(store, dataset, annotator)
    said = f"{annotator} calls {counted(n_wrong, 'answer')} of {dataset} hallucinated"
    typer.echo(f"{said}, {n_right:,} not.", err=True)


def _guidelines(name: str) -> str:
    """Return the text of a file, or of guidelines that ship."""
    return shipped_guidelines(name) or inputs.read_text(Path(name))


def _tell_claims_of_whole(store: Store, summaries: Sequence[DatasetSummary]) -> None:
    for summary in summaries:
        for name in claims_of_whole(store, summary):
            console.say(
                f"{summary.name}: an earlier version made claims of whole-answer labels, which "
                "count as no answer; "
                f"`spanlab annotators verdicts {summary.name} {name}` makes verdicts"
            )


@app.command()
def gold(
    dataset: Dataset,
    annotator: Known,
    to: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the gold labels [default: gold of ANNOTATOR]."),
    ] = None,
    undo: Annotated[
        bool,
        typer.Option(
            "--undo",
            help="Delete gold labels that are a copy; count others as a person of that name.",
        ),
    ] = False,
) -> None:
    """Copy what a person finished as gold labels; the person continues under their own name.

    \b
    spanlab annotators gold mine anna
    spanlab annotators gold mine anna --to known
    spanlab annotators gold mine "gold of anna" --undo
    """
    with Store.open() as store:
        if undo:
            typer.echo(undo_gold(store, dataset, annotator), err=True)
            return
        name = to or gold_name(annotator)
        n_copied = copy_as_gold(store, dataset, annotator, name)
    have = "has" if n_copied == 1 else "have"
    said = f"{counted(n_copied, 'item')} of {dataset} {have} gold labels “{name}” now."
    typer.echo(said, err=True)


_NAMED = 5  # annotators that are named


@takes_options
def export(
    dataset: Annotated[str, typer.Argument(help="The dataset to write.")],
    choice: ExportChoice,
    output: Output = None,
) -> None:
    """Write a dataset with its annotations.

    \b
    spanlab export mine -o mine.jsonl
    spanlab export mine --annotator anna --format mushroom -o submission.jsonl
    spanlab export mine --state done --language en -o done.csv
    spanlab export mine --raw -o for_pandas.csv
    spanlab export mine -o mine.html
    """
    if output and "format" not in choice.model_fields_set:
        format = format_of(output, more={".html": REPORT})
        choice = choice.model_copy(update={"format": format})
    if choice.format not in FORMATS and not can_write(choice.format):
        raise UsageError(
            f"format {choice.format!r} cannot be written; these can: {', '.join(FORMATS)}"
        )
    if choice.repeat_pairs and choice.format != "averitec":
        raise UsageError("--repeat-pairs needs --format averitec")
    if choice.raw and choice.format not in CSV_FORMATS:
        raise UsageError("--raw is of csv and claims: the other formats have all cells as they are")
    with Store.open() as store, console.bar("exporting", unit="items") as advance:
        target = output or sys.stdout.buffer
        count = export_dataset(store, dataset, target, choice, on_progress=advance)
        summary = summary_of(store, dataset)
    names = [
        annotator.name
        for annotator in summary.annotators
        if not choice.annotators or annotator.name in choice.annotators
    ]
    further_names = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    console.say(
        f"wrote {counted(count, 'item')} of {dataset!r}"
        + (f" to {output}" if output else "")
        + f", labels of: {', '.join(names[:_NAMED]) or 'nobody'}{further_names}"
    )
    if questions := questions_left_out(summary.settings, choice.format):
        console.say(questions)
    if summary.n_items > count:
        left_out = counted(summary.n_items - count, "item")
        why = "by the choice"
        if choice.format == "mushroom":
            why = "without a finished annotation, or hallucinated without a marked place"
        if summary.settings.known and not choice.known_items:
            why = "that are check items, and by the choice"
        console.say(f"left out {left_out} {why}")
