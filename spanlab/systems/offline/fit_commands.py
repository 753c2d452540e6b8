"""`spanlab fit`: the offline detector learns from the reviews of a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.base.errors import UsageError
from spanlab.cli import console
from spanlab.detection.fits import fit_every, fit_in_words, fit_tables, keep_fit, learn, remove_fit
from spanlab.storage import Store


def fit(
    dataset: Annotated[str, typer.Argument(help="A dataset with finished reviews.")],
    annotator: Annotated[
        list[str] | None,
        typer.Option(
            help="Learn from this annotator; several vote. Repeatable. By default all people, or "
            "the gold labels if no person has finished an answer."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be gained; change nothing.")
    ] = False,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Remove what was learnt; existing annotations stay."),
    ] = False,
    every: Annotated[
        int | None,
        typer.Option(
            min=0, help="Learn again after each so many further reviews, such as 30; 0: never."
        ),
    ] = None,
) -> None:
    """Teach the offline detector the corrections that people made in a dataset.

    It needs 30 finished answers and a few seconds. It judges itself on answers that it did not
    learn from, and what it learnt is used only if that is better: by runs over the dataset, and
    anywhere else with --option fitted=DATASET.

    \b
    spanlab fit mine
    spanlab annotate mine --detector offline --again
    spanlab annotate new.jsonl --detector offline --option fitted=mine -o marked.jsonl
    """
    from spanlab.systems.offline.detector import NAME

    if remove and (annotator or dry_run or every is not None):
        raise UsageError("--remove goes with no other option")
    with Store.open() as store:
        if remove:
            gone = remove_fit(store, dataset, NAME)
            console.say(
                f"removed {gone.id!r}; annotations that {NAME!r} made with it stay: "
                f"spanlab annotate {dataset} --detector {NAME} --again"
            )
            return
        with console.steps("fitting") as on_progress:
            learnt = learn(
                store, NAME, dataset, annotators=tuple(annotator or ()), on_progress=on_progress
            )
        console.write_tables(fit_tables(learnt))
        before = store.settings(dataset).fit_in_use(NAME)
        if not dry_run:
            keep_fit(store, dataset, learnt)
            if every is not None:
                fit_every(store, dataset, every)
    console.say(fit_in_words(learnt, dataset, before, is_kept=not dry_run))
    if every and not dry_run:
        console.say(f"{NAME!r} learns again after each {every} further reviews of {dataset!r}")
