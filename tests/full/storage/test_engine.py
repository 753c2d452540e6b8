"""Database URLs: which are understood, and what is said of the others."""

from __future__ import annotations

import subprocess
import sys


def test_a_missing_driver_names_the_extra_to_install() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from spanlab.storage.engine import Database\n"
        "Database('postgresql://host/db')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UsageError: PostgreSQL needs the driver psycopg" in done.stderr
    assert "pip install 'spanlab[postgres]'" in done.stderr
