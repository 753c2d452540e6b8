"""The tables of the annotation database, as the newest migration leaves them.

    datasets ─┬─ languages            how many items per language
              ├─ labels               span labels in use
              ├─ annotators           who has annotated, with counts per status
              ├─ items ── annotations ── reviews ── operations
              ├─ processes ── process_nodes   how answers were made, where items share it
              ├─ queue_values      what queues filter and order by, of each item
              ├─ queues ── queue_items   each person's own list of items; see worklists/drawing.py
              ├─ looks             who has seen other people's marks of an item before finishing it
              ├─ entrances         who may begin: tests that came to an end, and who let people in
              ├─ guidelines_read   who has confirmed having read which version
              └─ loads                an import that is under way (see moves.py)
    memories ── memory_keys           evidence, and the entities that it is kept under
    memory_grams, memory_aliases      what near and other names of entities are found by
    api_jobs                          jobs of the JSON API, and the dataset that each owns
    tool_calls                        what tools have answered, and what is being asked
    waiting_traces, waiting_parts     traces that come in parts; see integrations/waiting.py
    people, roles, reviewer_names     who has logged in, what they may do, their names in datasets
    access_tokens, access_log         keys, invitations and reports' links as hashes; who did what

Items are numbered within their dataset in import order (``position`` 0, 1, 2 …), annotators in
the order in which they came. Only positions below ``datasets.n_items`` exist for readers; what
lies above is an import that has not finished. Items and annotations are kept as JSON in TEXT:
characters that PostgreSQL's own JSON type refuses (NUL) are escapes there.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

READY = "ready"  # visible
LOADING = "loading"  # its first import is under way: nobody sees it yet
BINNED = "binned"  # in the bin: nobody sees it, and it can come back
DELETING = "deleting"  # being deleted piece by piece: nobody sees it any more


def _dataset() -> Column[int]:
    return Column("dataset_id", Integer, ForeignKey("datasets.id"), nullable=False)


def _integers(*names: str) -> list[Column[int]]:
    return [Column(name, Integer, nullable=False) for name in names]


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


datasets = Table(
    "datasets",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created", Text, nullable=False),  # ISO 8601, UTC
    Column("state", Text, nullable=False),
    Column("n_items", Integer, nullable=False),
    Column("settings", Text, nullable=False, server_default="{}"),  # JSON of DatasetSettings
    Column("deleted_at", Text),  # when it came into the bin: ISO 8601, UTC
    Column("version_of", Integer),  # of a version, which never changes: the id of its dataset
    Column("digest", Text),  # of a version alone: SHA-256 of its export, empty until it is known
)

loads = Table(
    "loads",
    metadata,
    Column("dataset_id", Integer, ForeignKey("datasets.id"), primary_key=True),
    Column("started", Text, nullable=False),
)

languages = Table(
    "languages",
    metadata,
    _dataset(),
    Column("code", Integer, nullable=False),  # in the order in which they came
    Column("lang", Text, nullable=False),
    Column("n_items", Integer, nullable=False),
    PrimaryKeyConstraint("dataset_id", "code"),
    UniqueConstraint("dataset_id", "lang", name="languages_lang"),
)

labels = Table(
    "labels",
    metadata,
    _dataset(),
    Column("label", Text, nullable=False),
    Column("place", Integer, nullable=False),  # order of first use
    PrimaryKeyConstraint("dataset_id", "label"),
)

annotators = Table(
    "annotators",
    metadata,
    _dataset(),
    Column("id", Integer, nullable=False),
    *_texts("name", "kind"),
    *_integers("n_annotations", "n_done", "n_failed", "n_skipped"),
    PrimaryKeyConstraint("dataset_id", "id"),
    UniqueConstraint("dataset_id", "name", name="annotators_name"),
)

items = Table(
    "items",
    metadata,
    _dataset(),
    Column("position", Integer, nullable=False),
    *_texts("item_id", "json"),
    PrimaryKeyConstraint("dataset_id", "position"),
    UniqueConstraint("dataset_id", "item_id", name="items_item_id"),
)

annotated = Table(  # not "annotations": that name is Python's own in every module here
    "annotations",
    metadata,
    *_integers("dataset_id", "position", "annotator_id"),
    Column("place", Integer, nullable=False),  # among the annotations of its record
    Column("status", Text, nullable=False),
    Column("prob", Float),  # the highest of its spans, where it is finished
    Column("n_labels", Integer, nullable=False, server_default="0"),
    Column("n_claims", Integer, nullable=False, server_default="0"),
    Column("json", Text, nullable=False),
    PrimaryKeyConstraint("dataset_id", "position", "annotator_id"),
    ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
    ForeignKeyConstraint(
        ["dataset_id", "annotator_id"], ["annotators.dataset_id", "annotators.id"]
    ),
    # Holds all that queues ask for: the long rows themselves are not looked at.
    Index(
        "annotations_values",
        *("dataset_id", "annotator_id", "position", "status", "prob", "n_labels", "n_claims"),
    ),
)

reviews = Table(
    "reviews",
    metadata,
    *_integers("dataset_id", "position", "annotator_id"),
    Column("version", Integer, nullable=False),  # number of operations in the log
    Column("snapshot", Text),  # the annotation that the log starts from, if there was one
    Column("state", Text, nullable=False),
    PrimaryKeyConstraint("dataset_id", "position", "annotator_id"),
    ForeignKeyConstraint(
        ["dataset_id", "position", "annotator_id"],
        ["annotations.dataset_id", "annotations.position", "annotations.annotator_id"],
    ),
)

operations = Table(
    "operations",
    metadata,
    *_integers("dataset_id", "position", "annotator_id"),
    Column("version", Integer, nullable=False),  # 1 for the first operation of a log
    Column("session", Text, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("json", Text, nullable=False),
    Column("at", Text, nullable=False),  # ISO 8601, UTC
    Column("author", Text),  # who made it, where the log is not one person's own
    Column("guidelines", Integer, nullable=False, server_default="0"),  # version; 0 for none
    Column("seconds", Float),  # of work on the item, where it ends that
    Column("subject", Text),  # who made it for certain; empty for the owner of the database
    PrimaryKeyConstraint("dataset_id", "position", "annotator_id", "version"),
    UniqueConstraint("session", "seq", name="operations_session_seq"),
    ForeignKeyConstraint(
        ["dataset_id", "position", "annotator_id"],
        ["reviews.dataset_id", "reviews.position", "reviews.annotator_id"],
    ),
)

reservations = Table(  # of items that a queue has offered; see worklists/reservations.py
    "reservations",
    metadata,
    *_integers("dataset_id", "position"),
    Column("reviewer", Text, nullable=False),
    Column("until", Float, nullable=False),  # seconds since 1970, UTC
    PrimaryKeyConstraint("dataset_id", "position", "reviewer"),
    ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
)

queues = Table(  # see worklists/drawing.py
    "queues",
    metadata,
    _dataset(),
    Column("reviewer", Text, nullable=False),
    Column("basis", Text, nullable=False),  # a hash of what the list was drawn from
    Column("n_before", Integer),  # items that came before check items did; empty before it is drawn
    Column("secret", Text, nullable=False, server_default=""),  # what its draws follow from
    PrimaryKeyConstraint("dataset_id", "reviewer"),
)

queue_items = Table(
    "queue_items",
    metadata,
    Column("dataset_id", Integer, nullable=False),  # no foreign keys, as in queue_values
    Column("reviewer", Text, nullable=False),
    *_integers("place", "position"),
    Column("handle", Text, nullable=False),  # what the person's browser calls the item
    Column("twin", Integer),  # no longer read, nor written
    Column("attempt", Integer),  # of a check item: at the test, from 1; 0 for one among others
    PrimaryKeyConstraint("dataset_id", "reviewer", "place"),
    UniqueConstraint("dataset_id", "reviewer", "position", name="queue_items_position"),
    UniqueConstraint("dataset_id", "reviewer", "handle", name="queue_items_handle"),
    sqlite_with_rowid=False,
)

looks = Table(  # at other people's marks; see worklists/looks.py
    "looks",
    metadata,
    *_integers("dataset_id", "position"),
    *_texts("reviewer", "at"),  # ISO 8601, UTC
    PrimaryKeyConstraint("dataset_id", "position", "reviewer"),
    ForeignKeyConstraint(["dataset_id", "position"], ["items.dataset_id", "items.position"]),
)

entrances = Table(
    "entrances",
    metadata,
    _dataset(),
    Column("reviewer", Text, nullable=False),
    Column("attempt", Integer, nullable=False),  # 0 for who was let in
    Column("score", Float),  # of the test: mean IoU
    Column("passed", Integer, nullable=False),
    Column("at", Text, nullable=False),  # ISO 8601, UTC
    PrimaryKeyConstraint("dataset_id", "reviewer", "attempt"),
)

guidelines_read = Table(
    "guidelines_read",
    metadata,
    _dataset(),
    Column("reviewer", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("at", Text, nullable=False),  # ISO 8601, UTC
    PrimaryKeyConstraint("dataset_id", "reviewer", "version"),
)

processes = Table(
    "processes",
    metadata,
    _dataset(),
    Column("id", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("first_position", Integer, nullable=False),  # of the items that came from it
    Column("stages", Text, nullable=False),  # JSON: how many nodes each has, earliest first
    PrimaryKeyConstraint("dataset_id", "id"),
    UniqueConstraint("dataset_id", "name", name="processes_name"),
)

process_nodes = Table(
    "process_nodes",
    metadata,
    *_integers("dataset_id", "process_id", "place"),
    *_texts("node", "json"),
    PrimaryKeyConstraint("dataset_id", "process_id", "place"),
    UniqueConstraint("dataset_id", "process_id", "node", name="process_nodes_node"),
    ForeignKeyConstraint(["dataset_id", "process_id"], ["processes.dataset_id", "processes.id"]),
)

queue_values = Table(  # what queues filter and order by, apart from the long texts of items
    "queue_values",
    metadata,
    *_integers("dataset_id", "position"),  # no foreign keys: PostgreSQL looks at each row's
    Column("lang", Text, nullable=False),
    *_integers("n_passages", "n_people"),
    *_integers("n_labels", "n_claims", "detector_labels", "detector_claims"),
    Column("max_prob", Float),  # of detectors
    Column("disagreement", Float),
    Column("detector_disagreement", Float),
    *_integers("unanimous"),  # 1 where two people or more agree, see text/labels.py
    Column("turn", Integer),  # at which the item was dealt to people; see assignment.py
    PrimaryKeyConstraint("dataset_id", "position"),
    sqlite_with_rowid=False,
)

answers = Table(  # of models and retrievers, by what was asked; beside SQLite they lie in files
    "answers",
    metadata,
    *_texts("cache", "key", "answer"),
    Column("at", Float, nullable=False),  # seconds since 1970, UTC
    PrimaryKeyConstraint("cache", "key"),
)

memories = Table(  # see memories.py
    "memories",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    *_texts("scope", "digest", "json"),
    Column("at", Float, nullable=False),  # when it was first kept: seconds since 1970, UTC
    Column("expires", Float),  # the same; empty for never
    *_integers("pinned", "blocked"),
    UniqueConstraint("scope", "digest", name="memories_digest"),
)

memory_keys = Table(
    "memory_keys",
    metadata,
    *_texts("scope", "key"),
    *_integers("pinned", "memory_id"),
    PrimaryKeyConstraint("scope", "key", "pinned", "memory_id"),
    ForeignKeyConstraint(["memory_id"], ["memories.id"], ondelete="CASCADE"),
    Index("memory_keys_memory", "memory_id"),
)

memory_grams = Table(
    "memory_grams",
    metadata,
    *_texts("scope", "gram", "key"),
    PrimaryKeyConstraint("scope", "gram", "key"),
)

memory_aliases = Table(
    "memory_aliases",
    metadata,
    *_texts("alias", "key"),
    PrimaryKeyConstraint("alias"),
)

api_jobs = Table(  # see api_jobs.py
    "api_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created", Text, nullable=False),  # ISO 8601, UTC
    # Empty once it is deleted: another dataset may get its number, and its name.
    Column("dataset_id", Integer, ForeignKey("datasets.id", ondelete="SET NULL")),
    Column("total", Integer, nullable=False),  # answers
)

tool_calls = Table(
    "tool_calls",
    metadata,
    *_texts("scope", "key"),
    Column("answer", Text),  # JSON; empty while somebody is asking
    Column("expires", Float, nullable=False),  # until when it counts, or the asker is waited for
    PrimaryKeyConstraint("scope", "key"),
)

waiting_traces = Table(
    "waiting_traces",
    metadata,
    *_texts("dataset", "trace"),  # by name: there may be no such dataset yet
    Column("came", Float, nullable=False),  # the last part: seconds since 1970, UTC
    Column("size", BigInteger, nullable=False),  # bytes
    *_integers("version", "version_read", "has_root"),
    Column("items", Text, nullable=False),  # JSON: the ids of those it has made
    Column("until", Float),  # while somebody reads it: seconds since 1970, UTC
    PrimaryKeyConstraint("dataset", "trace"),
)

waiting_parts = Table(
    "waiting_parts",
    metadata,
    *_texts("dataset", "trace", "part"),
    Column("parent", Text),  # of a span; empty for a root, and none for a message of a log
    Column("place", Integer, nullable=False),  # in the order in which they came
    Column("json", Text, nullable=False),
    PrimaryKeyConstraint("dataset", "trace", "part"),
)

people = Table(  # see access.py
    "people",
    metadata,
    Column("subject", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # which people see
    Column("email", Text),  # verified by the provider
    Column("seen", Text, nullable=False),  # when they came last: ISO 8601, UTC
)

roles = Table(
    "roles",
    metadata,
    Column("subject", Text, nullable=False, index=True),  # or "email:" and an address
    Column("dataset_id", Integer, ForeignKey("datasets.id", ondelete="CASCADE")),  # empty for all
    *_texts("role", "granted_by", "at"),
)

reviewer_names = Table(  # of people whose annotator was renamed or merged
    "reviewer_names",
    metadata,
    Column("dataset_id", Integer, ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False),
    *_texts("subject", "name"),
    PrimaryKeyConstraint("dataset_id", "subject"),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),  # SHA-256 of what opens the door
    *_texts("kind", "label", "role", "made_by", "at"),
    Column("dataset_id", Integer, ForeignKey("datasets.id", ondelete="CASCADE")),  # empty for all
    Column("expires", Float),  # seconds since 1970, UTC; empty for never
    Column("revoked", Text),  # ISO 8601, UTC
    Column("used", Text),  # the same: when an invitation was accepted
    Column("worker", Text),
    Column("code", Text),  # what an invited person gets at the end; a report's page, packed
    Column("person", Text),  # the id of the invitation whose person this link is for, if another
)

access_log = Table(
    "access_log",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    *_texts("at", "subject", "name", "action", "about"),
    Column("dataset", Text),
    Column("hash", Text),  # of this entry and the hash before it; never empty
)

# What SQLAlchemy has no words for: the full-text search (see search.py), and logs that refuse
# change. Operations go with their whole dataset or annotator alone, the log of access never.
_APPEND_ONLY = "the log of operations is append-only"
_LOG_APPEND_ONLY = "the log of access is append-only"
_GOES = """(SELECT state FROM datasets WHERE id = OLD.dataset_id) = 'deleting'
    OR (SELECT kind FROM annotators
        WHERE dataset_id = OLD.dataset_id AND id = OLD.annotator_id) = 'leaving'"""
LOG_STATEMENTS = {
    "sqlite": tuple(
        f"CREATE TRIGGER access_log_no_{change.lower()} BEFORE {change} ON access_log "
        f"BEGIN SELECT RAISE(ABORT, '{_LOG_APPEND_ONLY}'); END"
        for change in ("UPDATE", "DELETE")
    ),
    "postgresql": (
        f"""CREATE FUNCTION access_log_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '{_LOG_APPEND_ONLY}';
END $$""",
        "CREATE TRIGGER access_log_append_only BEFORE UPDATE OR DELETE ON access_log "
        "FOR EACH ROW EXECUTE FUNCTION access_log_append_only()",
    ),
}
# REPLACE deletes without asking triggers, and TRUNCATE asks those of no row.
GUARD_STATEMENTS = {
    "sqlite": (
        f"""CREATE TRIGGER access_log_no_replace BEFORE INSERT ON access_log
            WHEN EXISTS (SELECT 1 FROM access_log WHERE id = NEW.id)
            BEGIN SELECT RAISE(ABORT, '{_LOG_APPEND_ONLY}'); END""",  # noqa: S608 - our own words
        f"""CREATE TRIGGER operations_no_replace BEFORE INSERT ON operations
            WHEN EXISTS (SELECT 1 FROM operations WHERE session = NEW.session AND seq = NEW.seq
                OR dataset_id = NEW.dataset_id AND position = NEW.position
                AND annotator_id = NEW.annotator_id AND version = NEW.version)
            BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END""",  # noqa: S608 - our own words
    ),
    "postgresql": (
        "CREATE TRIGGER access_log_no_truncate BEFORE TRUNCATE ON access_log "
        "FOR EACH STATEMENT EXECUTE FUNCTION access_log_append_only()",
        "CREATE TRIGGER operations_no_truncate BEFORE TRUNCATE ON operations "
        "FOR EACH STATEMENT EXECUTE FUNCTION operations_append_only()",
    ),
}
STATEMENTS = {
    "sqlite": (
        # detail=none: which rows have a term is all that is asked. It keeps its terms, for
        # deletion. prefix=1: a Chinese character is the beginning of thousands of terms.
        "CREATE VIRTUAL TABLE item_search USING fts5"
        "(words, tokenize = 'ascii', detail = none, columnsize = 0, prefix = '1')",
        f"CREATE TRIGGER operations_no_update BEFORE UPDATE ON operations "
        f"BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END",
        f"CREATE TRIGGER operations_no_delete BEFORE DELETE ON operations "
        f"WHEN NOT ({_GOES}) BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END",
        *LOG_STATEMENTS["sqlite"],
        *GUARD_STATEMENTS["sqlite"],
    ),
    "postgresql": (
        "CREATE TABLE item_search (rowid BIGINT PRIMARY KEY, words tsvector NOT NULL)",
        "CREATE INDEX item_search_words ON item_search USING gin (words)",
        f"""CREATE FUNCTION operations_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND ({_GOES}) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '{_APPEND_ONLY}';
END $$""",
        "CREATE TRIGGER operations_append_only BEFORE UPDATE OR DELETE ON operations "
        "FOR EACH ROW EXECUTE FUNCTION operations_append_only()",
        *LOG_STATEMENTS["postgresql"],
        *GUARD_STATEMENTS["postgresql"],
    ),
}
