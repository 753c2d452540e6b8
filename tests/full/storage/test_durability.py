"""What was acknowledged is kept, and of two writers one wins: threads, processes and SIGKILL."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from forks import Fork
from rebuilt import rebuilt
from working_jobs import environment

from spanlab.base.settings import Settings
from spanlab.oplog.operations import AddSpan, SentOperation, SetStatus
from spanlab.schema import Annotation, AnnotatorKind, QueueQuery, Record, Status
from spanlab.storage import Store, catalog, reviews
from spanlab.storage.engine import Database
from spanlab.worklists import paging

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

_DONE = SetStatus(status=Status.DONE)

_RESTLESS_REVIEWER = """
import itertools, sys
from spanlab.oplog.operations import AddSpan, CommentSpan, Redo, SentOperation, Undo
from spanlab.base.settings import Settings
from spanlab.storage import Store

session = sys.argv[2]
with Store.open(Settings.model_validate_json(sys.argv[1])) as store:
    version = store.review("d", "a", "me").version
    for seq in itertools.count(1):
        operation = (AddSpan(span=f"{session}-{seq}", start=seq % 40, end=seq % 40 + 2),
                     CommentSpan(text=str(seq)), Undo(), Redo())[seq % 4]
        applied = store.apply("d", "a", "me", [SentOperation(session, seq, version, operation)])
        assert not applied.refused, applied
        version = applied.version
        print(applied.acknowledged, flush=True)
"""

_STUBBORN_REVIEWER = """
import sys
from spanlab.oplog.operations import CommentSpan, SentOperation
from spanlab.base.settings import Settings
from spanlab.storage import Store

session, wins, seq = sys.argv[2], 0, 0
with Store.open(Settings.model_validate_json(sys.argv[1])) as store:
    while wins < 20:
        seq += 1
        base = store.review("d", "a", "me").version
        write = SentOperation(session, seq, base, CommentSpan(text=f"{session} {wins}"))
        applied = store.apply("d", "a", "me", [write])
        assert all(each.stale for each in applied.refused), applied
        wins += not applied.refused
"""


def test_a_killed_process_loses_nothing_acknowledged(
    settings: Settings, record: MakeRecord
) -> None:
    with Store.open(settings) as store:
        store.import_records("d", [record("a")])
        process = _start(_RESTLESS_REVIEWER, settings, "session")
        assert process.stdout is not None
        acknowledged = [int(process.stdout.readline()) for _ in range(random.randint(1, 60))]
        process.kill()
        acknowledged += [int(line) for line in process.stdout.read().splitlines()]
        process.wait()
        process.stdout.close()

        # One more may be stored than was heard of, and it is the next in the session.
        stored = store.apply("d", "a", "me", [_probe("session")]).acknowledged
        assert stored - acknowledged[-1] in {0, 1}
        assert acknowledged == list(range(1, acknowledged[-1] + 1))

        review = store.review("d", "a", "me")
        assert review.version == len(review.operations)
        assert rebuilt(store, "d", "a", "me") == review.state
        assert review.record.by("me") == review.state.annotation("me")
    with Store.open(settings) as store:
        assert rebuilt(store, "d", "a", "me") == store.review("d", "a", "me").state


def test_two_processes_write_one_review_in_turns(settings: Settings, record: MakeRecord) -> None:
    with Store.open(settings) as store:
        store.import_records("d", [record("a")])
        processes = [_start(_STUBBORN_REVIEWER, settings, name) for name in ("one", "two")]
        for process in processes:
            assert process.stdout is not None
            process.stdout.close()
        assert [process.wait() for process in processes] == [0, 0]
        review = store.review("d", "a", "me")
        # Each won 20 versions, none was given twice, and every refusal left no trace.
        assert (review.version, len(review.operations)) == (40, 40)
        assert rebuilt(store, "d", "a", "me") == review.state


def test_of_threads_on_one_version_exactly_one_wins(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a")])
    n_threads, n_rounds = 4, 8
    together = Barrier(n_threads, timeout=60)

    def compete(thread: int) -> int:
        wins = 0
        for base in range(n_rounds):
            together.wait()
            add = AddSpan(span=f"{thread}-{base}", start=base, end=base + 1)
            applied = store.apply(
                "d", "a", "me", [SentOperation(f"t{thread}", base + 1, base, add)]
            )
            assert all(each.stale for each in applied.refused)
            wins += not applied.refused
        return wins

    with ThreadPoolExecutor(n_threads) as threads:
        assert sum(threads.map(compete, range(n_threads))) == n_rounds
    review = store.review("d", "a", "me")
    assert review.version == n_rounds
    assert rebuilt(store, "d", "a", "me") == review.state


def test_many_people_at_once_lose_nothing_and_miscount_nothing(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """A whole campaign in one dataset, and a detector that runs beside it."""
    n_items = 12
    store.import_records("d", [record(str(n), said("det", (0, 3))) for n in range(n_items)])

    def review(person: int) -> None:
        name = f"person {person}"
        items = list(range(n_items))
        random.Random(person).shuffle(items)
        for seq, item in enumerate(items):
            add = AddSpan(span="x", start=0, end=3)
            writes = [
                SentOperation(name, 2 * seq + 1, 0, add),
                SentOperation(name, 2 * seq + 2, 1, _DONE),
            ]
            assert not store.apply("d", str(item), name, writes).refused

    def detect(_: int) -> None:
        for end in (5, 3):
            store.save_annotations("d", [(str(n), said("det", (0, end))) for n in range(n_items)])

    with ThreadPoolExecutor(5) as threads:
        for future in [threads.submit(review, n) for n in range(4)] + [threads.submit(detect, 0)]:
            future.result()
    for person in range(4):
        assert store.counts("d", f"person {person}")[Status.DONE] == n_items
    query = QueueQuery(reviewer="me", min_annotators=4, max_annotators=4)
    rows = paging.page(store, "d", query).rows
    assert len(rows) == n_items
    assert {row.disagreement for row in rows} == {0.0}
    for each in store.records("d"):
        assert sum(said.kind is AnnotatorKind.PERSON for said in each.annotations) == 4


def test_two_people_at_neighbouring_items_do_not_wait_for_each_other(
    settings: Settings, record: MakeRecord
) -> None:
    """On SQLite, where one writes at a time, nobody waits who reads."""
    url = settings.database_url
    if "postgresql" in url:
        url += "&options=-c%20lock_timeout%3D2s"
    database = Database(url)
    with Store.open(settings.model_copy(update={"database_url": url})) as store:
        store.import_records("d", [record("a"), record("b")])
        for item, name in (("a", "Ann"), ("b", "Ben")):
            assert not store.apply("d", item, name, [SentOperation(name, 1, 0, _DONE)]).refused
        again = SetStatus(status=Status.NOT_ANNOTATED)
        with database.writing() as connection:
            dataset = catalog.find(connection, "d")
            assert not reviews.apply(
                connection, dataset, 0, "Ann", [SentOperation("Ann", 2, 1, again)], None
            ).refused
            if not database.is_sqlite:
                assert not store.apply("d", "b", "Ben", [SentOperation("Ben", 2, 1, again)]).refused
            assert store.counts("d", "Ann")[Status.DONE] == 1
        assert [store.counts("d", name)[Status.DONE] for name in ("Ann", "Ben")] == [
            0,
            int(database.is_sqlite),
        ]
    database.close()


def _start(code: str, settings: Settings, session: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", code, settings.model_dump_json(), session]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _probe(session: str) -> SentOperation:
    # Refused as stale, it still says how far the session has come.
    return SentOperation(session, 10_000, 10_000, _DONE)


def test_a_vote_that_is_killed_is_published_as_a_whole_or_not_at_all(
    settings: Settings, record: MakeRecord, said: Say, tmp_path: Path
) -> None:
    count = 1500
    with Store.open(settings) as store:
        mine = said("anna", kind=AnnotatorKind.PERSON)
        store.import_records("d", [record(str(n), mine) for n in range(count)])
        command = ["spanlab", "vote", "d", "--annotators", "anna"]
        voting = Fork(command, environment(settings), tmp_path / "log")
        published = 0
        while not published and voting.poll() is None:
            published = store.counts("d", "vote")[Status.DONE]
        voting.kill()
        voting.wait()
        assert published in {0, count}, "0: it was over before anybody looked"
        assert store.counts("d", "vote")[Status.DONE] == count
