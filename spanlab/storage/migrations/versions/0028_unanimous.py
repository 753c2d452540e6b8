"""Whether people are unanimous on an item, by which the items to adjudicate are ordered."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import sqlalchemy as sa
from alembic import op

from spanlab.schema import Annotation
from spanlab.text.labels import people_agree

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_KEY = ("dataset_id", "position")


def upgrade() -> None:
    """Compare what people said of every item that two or more of them have finished."""
    unanimous = sa.Column("unanimous", sa.Integer, nullable=False, server_default="0")
    op.add_column("queue_values", unanimous)
    values, said = (
        sa.table(name, *map(sa.column, (*_KEY, column)))
        for name, column in (("queue_values", "n_people"), ("annotations", "json"))
    )
    is_here = sa.and_(*(values.c[name] == said.c[name] for name in _KEY))
    several = sa.select(said).join(values, is_here).where(values.c.n_people > 1)
    rows = op.get_bind().execute(
        several.order_by(*(said.c[name] for name in _KEY)), execution_options={"yield_per": 1000}
    )
    places = [
        dict(zip(("dataset", "at"), place, strict=True))
        for place, of_item in groupby(rows, itemgetter(0, 1))
        if people_agree(Annotation.model_validate_json(row.json) for row in of_item)
    ]
    if places:
        updating = "UPDATE queue_values SET unanimous = 1"
        here = "WHERE dataset_id = :dataset AND position = :at"
        op.get_bind().execute(sa.text(f"{updating} {here}"), places)
