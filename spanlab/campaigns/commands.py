"""`spanlab campaign`: how a campaign goes, and who is given what."""

from __future__ import annotations

from typing import Annotated
from warnings import warn

import typer

from spanlab.base.errors import DeprecatedWarning, UsageError
from spanlab.cli import console
from spanlab.formats.read_options import mapping_in
from spanlab.output.tables import as_csv
from spanlab.output.wording import blind_in_words
from spanlab.people.entrance import (
    change_checks,
    checks_in_words,
    describe_leaving,
    describe_return,
)
from spanlab.people.entrance import let_in as let_person_in
from spanlab.people.overview import oversee, people_table, remind_table
from spanlab.schema import BlindRule
from spanlab.storage import Store
from spanlab.storage.datasets import open_store
from spanlab.worklists import plans


def campaign(
    dataset: Annotated[str, typer.Argument(help="A dataset that people review.")],
    remind: Annotated[
        bool,
        typer.Option(
            "--remind",
            help="Write who has items left, and how long ago they were active, as CSV.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="All figures as JSON.")] = False,
    people_as_csv: Annotated[bool, typer.Option("--csv", hidden=True)] = False,  # of 1.0
    known: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="How check items show how well people mark. labels=gold: whose labels are right "
            "(separate names by commas); share=.1: one in ten of a person's items; warn_below=.5: "
            "an IoU; test_items=5: length of the qualification test; pass_at=.5: its pass mark; "
            "retry=yes: allow retries; none: no check items. Repeatable.",
        ),
    ] = None,
    blind: Annotated[
        BlindRule | None,
        typer.Option(
            help="When reviewers do not see other people's marks: always, until they are done with "
            "the item, unless they ask, or never [default: always, if several people finish an "
            "item or there are check items; else ask]."
        ),
    ] = None,
    take_back: Annotated[
        str | None, typer.Option(help="Give the unfinished items of this person to others.")
    ] = None,
    give_back: Annotated[str | None, typer.Option(help="Undo --take-back for this person.")] = None,
    let_in: Annotated[
        str | None, typer.Option(help="Let this person start without having passed the test.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm --take-back.")] = False,
) -> None:
    """Report what people have done, what is left, how well they work, and when they finish.

    Check items show how well people mark: items with gold labels, hidden among the others in
    Review, or in a qualification test before people begin. While they are in use, reviewers never
    see what others marked. The gold labels are those that came with the dataset, unless
    labels=NAME says otherwise; what your team adjudicates never becomes a check item.

    \b
    spanlab campaign mine
    spanlab campaign mine --remind > remind.csv
    spanlab campaign mine --known share=.1 --known test_items=5 --known pass_at=.6
    spanlab campaign mine --blind ask
    spanlab campaign mine --take-back Ben --yes
    """
    rules = None if known == ["none"] else mapping_in(known or (), "--known must be NAME=VALUE")
    with open_store() as store:
        if known:
            change_checks(store, dataset, rules)
            if rules is not None:
                console.say(checks_in_words(store, dataset))
        if blind is not None:
            changed = store.change_settings(dataset, lambda now: now.with_blind_rule(blind))
            console.say(blind_in_words(changed))
        if take_back is not None:
            _take_back(store, dataset, take_back, confirmed=yes)
        if give_back is not None:
            console.say(describe_return(store, dataset, give_back))
            plans.give_back(store, dataset, give_back)
        if let_in is not None:
            let_person_in(store, dataset, let_in)
        oversight = oversee(store, dataset)
    if people_as_csv:
        warn("--csv is deprecated: type --remind or --json", DeprecatedWarning, stacklevel=2)
    if remind:
        typer.echo(as_csv(remind_table(oversight)), nl=False)
    elif people_as_csv:
        typer.echo(as_csv(people_table(oversight)), nl=False)
    else:
        console.write_result(oversight, json=as_json)


def _take_back(store: Store, dataset: str, person: str, *, confirmed: bool) -> None:
    announcement = describe_leaving(store, dataset, person)
    if not confirmed:
        raise UsageError(f"{announcement} Add --yes to do it.")
    console.say(announcement)
    plans.take_back(store, dataset, person)
