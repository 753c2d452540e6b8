"""Files of the server's machine, of which people may name some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from spanlab.base.errors import InputError
from spanlab.base.settings import Settings
from spanlab.formats.files import files_named

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def allowed_hosts() -> frozenset[str]:
    """Return the host names under which the app answers: this machine's own and the settings'."""
    settings = Settings.read()
    host = urlsplit(settings.url or "").hostname
    return LOOPBACK | settings.allowed_hosts | ({host} if host else frozenset())


def is_local(address: str | None) -> bool:
    """Say whether only people at the machine itself reach a server that listens on ``address``."""
    return address in LOOPBACK and allowed_hosts() == LOOPBACK


@dataclass(frozen=True)
class ServerFiles:
    """The files of the server's machine that people may name: all, or those below ``root``."""

    root: Path | None = None

    @classmethod
    def offered(cls, address: str | None) -> ServerFiles | None:
        """Return the files that may be named where the server listens on ``address``.

        Args:
            address: as Streamlit's ``server.address`` has it; None for every interface.

        Returns:
            The files below the configured root. Without one all files, as people at the machine
            itself reach them anyway, or None where others can reach the server.
        """
        settings = Settings.read()
        if settings.files_root is not None:
            return cls(settings.files_root.resolve())
        return cls() if is_local(address) else None

    def path(self, text: str) -> Path:
        """Return the path that ``text`` names, with symbolic links resolved if there is a root.

        Raises:
            InputError: it is no path; it, or something in the directory that it names, lies
                outside the root.
        """
        root, path = self.root, Path(text) if self.root is None else self.root / text
        try:
            real = path.resolve()
            if real.is_symlink():  # Python before 3.13 says so itself
                raise OSError("a loop of symbolic links")
            below = real.rglob("*") if real.is_dir() and root else ()
            leads_out = root and not all(
                file.resolve().is_relative_to(root) for file in (real, *below)
            )
        except (OSError, RuntimeError, ValueError) as error:  # too long, a loop of links, a zero
            raise InputError("this path cannot be used", file=text, found=str(error)) from error
        if leads_out:
            raise InputError(
                "this path leads out of the directory for files on the server",
                file=text,
                expected=f"a path below {root}",
            )
        return real if root else path

    def named(self, patterns: Iterable[str]) -> list[Path]:
        """Return the files that paths and globs name, globs in sorted order.

        Raises:
            InputError: a path does not exist, a glob matches nothing, or one leads out of the root.
        """
        paths = [self.path(pattern) for pattern in patterns]
        return [self.path(str(file)) for file in files_named(map(str, paths))]
