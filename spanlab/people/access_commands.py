"""`spanlab roles`, `keys`, `invitations`, `people`, `log`: who may do what, who did what."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.base.errors import StoreError, UsageError
from spanlab.cli import console
from spanlab.output.figures import counted
from spanlab.people.forgetting import forget_person
from spanlab.people.logins import in_days, invite, log_table, role_table, token_table
from spanlab.schema import Role
from spanlab.storage import Store

roles = typer.Typer(
    no_args_is_help=True,
    help="""What people may do, where people log in.

    \b
    spanlab roles grant anna@example.org annotator --dataset mine
    spanlab roles grant ben@example.org lead  # for all datasets
    spanlab roles revoke anna@example.org annotator --dataset mine
    spanlab roles list
    """,
)
keys = typer.Typer(
    no_args_is_help=True,
    help="""Keys for programs that ask the JSON API or the MCP server.

    \b
    spanlab keys create --role viewer --label dashboard
    spanlab keys create --role lead --days 90
    spanlab keys list
    spanlab keys revoke 1f2e3d4c5b6a
    """,
)
invitations = typer.Typer(
    no_args_is_help=True,
    help="""Links for people without an account: one person each.

    The pages Campaign and Access make them, too, with a text to send.

    \b
    spanlab invitations create mine --label Ada
    spanlab invitations create mine --count 50 --code C1X2Y3   for a crowd platform
    spanlab invitations list
    spanlab invitations revoke 9c8b7a6d5e4f
    """,
)
people = typer.Typer(no_args_is_help=True, help="People who leave.")
Person = Annotated[
    str,
    typer.Argument(help="An e-mail address, a name of somebody who has logged in, or a subject."),
]
Dataset = Annotated[str | None, typer.Option(help="For this dataset alone; without it for all.")]
TokenId = Annotated[str, typer.Argument(metavar="ID", help="As list shows it.")]


@roles.command("grant")
def grant(person: Person, role: Role, dataset: Dataset = None) -> None:
    """Give somebody a role: annotator, adjudicator, viewer or lead."""
    with Store.open() as store:
        store.access.grant(person, role, dataset)


@roles.command("revoke")
def revoke(person: Person, role: Role, dataset: Dataset = None) -> None:
    """Take a role back; it counts from the person's next click."""
    with Store.open() as store:
        store.access.revoke(person, role, dataset)


@roles.command("list")
def list_roles() -> None:
    """List who has which role."""
    with Store.open() as store:
        console.write_tables([role_table(store.access.granted())])


@keys.command("create")
def create_key(
    role: Annotated[
        Role, typer.Option(help="What the key may do: a viewer reads, a lead also runs detectors.")
    ],
    dataset: Dataset = None,
    days: Annotated[
        int | None,
        typer.Option(min=1, max=3650, help="Days until the key expires; without it, never."),
    ] = None,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
) -> None:
    """Create a key and print it once; only its hash is saved."""
    end = None if days is None else in_days(days)
    with Store.open() as store:
        typer.echo(store.access.make_token("key", role, dataset, label=label, expires=end))


@keys.command("list")
def list_keys() -> None:
    """List the keys without their secrets."""
    with Store.open() as store:
        console.write_tables([token_table(store.access.tokens("key"), "Keys")])


@keys.command("revoke")
def revoke_key(key_id: TokenId) -> None:
    """Revoke a key."""
    with Store.open() as store:
        store.access.revoke_token("key", key_id)


@invitations.command("create")
def create_invitations(
    dataset: Annotated[str, typer.Argument(help="The dataset.")],
    role: Annotated[Role, typer.Option(help="The role; it cannot be lead.")] = Role.ANNOTATOR,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days until the links end.")] = 14,
    count: Annotated[int, typer.Option(min=1, max=200, help="How many links.")] = 1,
    label: Annotated[str, typer.Option(help="The name of the person.")] = "",
    code: Annotated[str, typer.Option(help="Code shown to people who have finished.")] = "",
    same_person: Annotated[
        bool,
        typer.Option(
            "--same-person", help="--label is the name of a person who is here: it is their link."
        ),
    ] = False,
) -> None:
    """Create links, a line each. A crowd platform adds what it calls the worker: &worker=…."""
    if label and count > 1:
        raise UsageError("--label names one person: leave out --count")
    if same_person and not label:
        raise UsageError("--same-person needs the name of the person: --label")
    with Store.open() as store:
        for _ in range(count):
            link = invite(
                store, dataset, role, in_days(days), label=label, code=code, same=same_person
            )
            typer.echo(link)


@invitations.command("list")
def list_invitations() -> None:
    """List the invitations without their links."""
    with Store.open() as store:
        console.write_tables([token_table(store.access.tokens("invitation"), "Invitations")])


@invitations.command("revoke")
def revoke_invitation(invitation_id: TokenId) -> None:
    """Revoke an invitation, in all browsers of the person."""
    with Store.open() as store:
        store.access.revoke_token("invitation", invitation_id)


@people.command("forget")
def forget(
    name: Annotated[str, typer.Argument(help="What the person is called here.")],
    take_marks: Annotated[
        bool, typer.Option("--take-marks", help="Delete what they marked; else it stays.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm: this cannot be undone.")] = False,
) -> None:
    """Replace a person's name by a pseudonym in the whole database, versions and log included.

    It says what it could not reach.

    \b
    spanlab people forget anna --yes
    spanlab people forget ben --take-marks --yes
    """
    if not yes:
        marks = "deletes all that they marked" if take_marks else "keeps what they marked"
        raise UsageError(f"this removes the name {name!r} permanently and {marks}. Add --yes.")
    with Store.open() as store:
        for sentence in forget_person(store, name, keep=not take_marks):
            console.say(sentence)


def log(
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Maximum lines.")] = 100,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help="Check that no entry was changed or taken out; exit 1 if so."
        ),
    ] = False,
) -> None:
    """Show who did what, newest first: logins, roles, exports, deletions, keys, invitations.

    \b
    spanlab log --limit 20
    spanlab log --verify
    """
    with Store.open() as store:
        if not verify:
            console.write_tables([log_table(store.access.log(limit))])
            return
        n_checked, broken = store.access.verify_log()
    if broken:
        raise StoreError(
            f"the log was changed: entry {broken} does not follow from the one before it "
            f"({counted(n_checked, 'line')} before it hold)"
        )
    console.say(f"the log holds: {counted(n_checked, 'line')}, each follows from the one before")
