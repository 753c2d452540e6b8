"""Hosts on one machine: network namespaces on a bridge, each with a cable that can be pulled.

This side of the bridge stands for the server with PostgreSQL and the model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from string import ascii_lowercase

_LETTERS = iter(ascii_lowercase)  # a namespace goes some time after it was deleted


@dataclass(frozen=True)
class Host:
    """A network namespace; ``cable`` is the server's end of its link."""

    name: str
    cable: str

    @property
    def inside(self) -> Sequence[str]:
        """The command that runs another one on this host."""
        return ("ip", "netns", "exec", self.name)

    def cut(self) -> None:
        """Pull the cable: packets are lost, and nobody is told."""
        _ip("link", "set", self.cable, "down")

    def mend(self) -> None:
        """Put it back."""
        _ip("link", "set", self.cable, "up")


@dataclass(frozen=True)
class Network:
    """Some hosts, and the address under which they reach this one."""

    address: str
    hosts: tuple[Host, ...]


def why_not() -> str | None:
    """Say why there can be no hosts here; None if there can."""
    if os.getuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "network namespaces need `ip`; on Debian: apt-get install iproute2"
    probe = f"spanlab-probe-{os.getpid()}"
    command = ["ip", "netns", "add", probe]
    made = subprocess.run(command, check=False, capture_output=True, text=True)
    if made.returncode:
        return f"this machine forbids network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", probe], check=True, capture_output=True)
    return None


@contextmanager
def network(count: int) -> Iterator[Network]:
    """Give a network of so many hosts; all of it is gone after the block."""
    tag = f"{os.getpid() % 100_000}{next(_LETTERS)}"
    prefix = f"10.213.{os.getpid() % 250}"
    bridge = f"slb{tag}"
    with ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "delete", bridge)
        _ip("address", "add", f"{prefix}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        hosts = []
        for number in range(count):
            name, cable = f"slh{tag}-{number}", f"slc{tag}-{number}"
            _ip("netns", "add", name)
            stack.callback(_ip, "netns", "delete", name)
            _ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", name)
            stack.callback(_ip, "link", "delete", cable)
            _ip("link", "set", cable, "master", bridge, "up")
            _ip("-n", name, "address", "add", f"{prefix}.{number + 2}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "eth0", "up")
            hosts.append(Host(name, cable))
        yield Network(f"{prefix}.1", tuple(hosts))


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
