"""`spanlab campaign`: how far people are with a dataset, whom to remind, and who may begin."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.errors import UsageError


def campaign(
    dataset: Annotated[str, typer.Argument(help="A dataset that people review.")],
    remind: Annotated[
        bool,
        typer.Option(
            "--remind", help="List only people with items left, and how long they were inactive."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="The table of people, or of whom to remind, as CSV.")
    ] = False,
    known_share: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.5,
            help="Hide items with gold labels among others: .1 for one in ten; others' marks are "
            "always hidden then.",
        ),
    ] = None,
    warn_below: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Warn if a person's IoU on these items is lower."),
    ] = None,
    test_items: Annotated[
        int | None,
        typer.Option(min=0, max=50, help="How many of them make a test before people begin."),
    ] = None,
    pass_at: Annotated[
        float | None, typer.Option(min=0, max=1, help="The IoU that passes this test.")
    ] = None,
    retry: Annotated[
        bool | None, typer.Option("--retry/--no-retry", help="Whether there is another try.")
    ] = None,
    no_known: Annotated[
        bool, typer.Option("--no-known", help="Items with gold labels are like any other again.")
    ] = False,
    take_back: Annotated[
        str | None, typer.Option(help="Give the unfinished items of this person to others.")
    ] = None,
    give_back: Annotated[str | None, typer.Option(help="Undo --take-back for this person.")] = None,
    let_in: Annotated[
        str | None, typer.Option(help="Let this person begin without having passed the test.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm --take-back.")] = False,
) -> None:
    """Report what people have done, what is left, how well they work, and when they finish.

    Items with gold labels tell how well people mark: hidden among the others in Review, in a
    dataset where reviewers never see what others marked, or as a short test before they begin.

    \b
    spanlab campaign mine
    spanlab campaign mine --remind --csv
    spanlab campaign mine --known-share .1 --test-items 5 --pass-at .6
    spanlab campaign mine --take-back Ben --yes
    """
    from spanlab.cli import console
    from spanlab.results import as_csv as csv_of
    from spanlab.workflows.analysis.campaign_tables import remind_table
    from spanlab.workflows.analysis.people import oversee
    from spanlab.workflows.campaigns import change_known, leaving
    from spanlab.workflows.campaigns import let_in as let_person_in
    from spanlab.workflows.datasets import open_store

    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    named = {
        "share": known_share,
        "warn_below": warn_below,
        "test_items": test_items,
        "pass_at": pass_at,
        "retry": retry,
    }
    changed = {name: value for name, value in named.items() if value is not None}
    with open_store() as store:
        if changed or no_known:
            change_known(store, dataset, None if no_known else changed)
        if take_back is not None:
            before = leaving(store, dataset, take_back)
            if not yes:
                raise UsageError(f"{before.in_words} Add --yes to do it.")
            console.say(before.in_words)
            store.take_back(dataset, take_back)
        if give_back is not None:
            store.give_back(dataset, give_back)
        if let_in is not None:
            let_person_in(store, dataset, let_in)
        oversight = oversee(store, dataset)
    if as_csv:
        table = remind_table(oversight) if remind else oversight.tables()[0]
        typer.echo(csv_of(table), nl=False)
    elif remind and not as_json:
        console.write_tables([remind_table(oversight)])
    else:
        console.write_result(oversight, json=as_json)
