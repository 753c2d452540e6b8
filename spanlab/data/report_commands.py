"""`spanlab reports`: links to reports that can be read without a login."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.data.report_links import share_report
from spanlab.people.logins import in_days, token_table
from spanlab.storage import Store

reports = typer.Typer(
    no_args_is_help=True,
    help="""Links to reports that can be read without a login, until they end or are revoked.

    The page Export makes them, too. A link shows the report as it was when the link was made.

    \b
    spanlab reports create mine --days 30
    spanlab reports list
    spanlab reports revoke 5e4f3d2c1b0a
    """,
)


@reports.command("create")
def create(
    dataset: Annotated[str, typer.Argument(help="The dataset, or a version DATASET@NAME.")],
    days: Annotated[int, typer.Option(min=1, max=365, help="Days until the link ends.")] = 30,
) -> None:
    """Create a link to a report as it is now, and print it once; only its hash is saved."""
    address = (Settings.read().url or "http://localhost:8501").rstrip("/")
    with Store.open() as store:
        typer.echo(f"{address}{share_report(store, dataset, in_days(days))}")


@reports.command("list")
def list_links() -> None:
    """List the links without what opens them."""
    with Store.open() as store:
        console.write_tables([token_table(store.access.tokens("report"), "Links to reports")])


@reports.command("revoke")
def revoke(link_id: Annotated[str, typer.Argument(metavar="ID", help="As list shows it.")]) -> None:
    """Revoke a link, and delete its page."""
    with Store.open() as store:
        store.access.revoke_token("report", link_id)
