"""Where spanlab keeps its work and how it is configured: environment variables, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Settings(BaseModel):
    """What the environment says.

    ``home`` is the directory for the database and its backups. ``database_url`` is an SQLAlchemy
    URL. ``programs`` is the registry of tuned prompts, by default a directory in ``home``.
    """

    model_config = ConfigDict(frozen=True)

    home: Path
    database_url: str
    programs: Path = Field(default_factory=lambda data: data["home"] / "programs")

    @classmethod
    def read(cls) -> Settings:
        """Read the variables.

        ``SPANLAB_HOME`` (default ``.spanlab``), ``SPANLAB_DATABASE_URL`` (default an SQLite file
        in it) and ``SPANLAB_PROGRAMS`` (default ``programs`` in it).
        """
        home = Path(os.environ.get("SPANLAB_HOME", ".spanlab"))
        url = os.environ.get("SPANLAB_DATABASE_URL") or f"sqlite:///{home / 'spanlab.db'}"
        programs = Path(os.environ.get("SPANLAB_PROGRAMS") or home / "programs")
        return cls(home=home, database_url=url, programs=programs)
