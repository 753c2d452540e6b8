"""One importer of a dataset at a time, in all processes and threads, however often they change."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from spanlab.base.errors import StoreError
from spanlab.base.processes import ScriptlessContext
from spanlab.storage.engine import Database
from spanlab.storage.locks import claim

TIMES = 150


def _claim_often(folder: Path) -> list[str]:
    """Claim two datasets in turn; return who was let in beside somebody else, and what broke."""
    database = Database(f"sqlite:///{folder / 'spanlab.db'}")

    def claims(number: int) -> str:
        dataset = number % 2
        try:
            with claim(database, dataset) as is_held:
                if is_held:
                    (folder / f"inside-{dataset}").open("x").close()
                    (folder / f"inside-{dataset}").unlink()
        except (OSError, StoreError) as error:
            return repr(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        return [wrong for wrong in pool.map(claims, range(TIMES)) if wrong]


def test_claims_of_processes_and_threads_never_meet_and_never_break(tmp_path: Path) -> None:
    # Spawned as usual, processes begin with the page that a test before this one has shown, and if
    # that fails are started again without end.
    with ProcessPoolExecutor(3, mp_context=ScriptlessContext()) as pool:
        assert [*pool.map(_claim_often, [tmp_path] * 3, timeout=120)] == [[], [], []]
