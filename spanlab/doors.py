"""What each room offers at its door: commands, pages, detectors and more, under names.

A room is a folder of the package with a file ``doors.py`` that holds a ``Room`` called ``ROOM``. It
says what there is and where that stands, as ``module:name`` below the room; nothing of the room is
imported before it is used. So who adds a folder adds all that it offers, and who takes it away
leaves nothing behind.

Other packages offer what they have by entry points: a whole room in the group ``spanlab.rooms``
(``my_package.doors:ROOM``), or one thing in the group of its kind, such as ``spanlab.detectors``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar
from warnings import warn

OURS: Final = "spanlab"  # the distribution whose offers come first, and keep their names
OWN: Final = "own"  # a page's group: below the name of who has logged in
_LAST: Final = 1000  # of an order
_TOP: Final = ("spanlab", "optimizers")  # our packages
hidden: set[str] = set()  # packages of rooms that tests take out, before anything is asked for


class Command(NamedTuple):
    """A command of ``spanlab``: its line in the help, and the function or ``typer.Typer`` of it."""

    about: str
    place: str
    order: int = _LAST


class Page(NamedTuple):
    """A page of the app.

    Attributes:
        title: as in the navigation; in small letters it is the page's path.
        icon: the name of a Material icon.
        needs: the name of the ``Permission`` without which nobody sees it.
        about: what it is for, in a sentence.
        topic: the page of the guide about it.
        place: the function that draws it.
        order: where it stands.
        group: the menu that it stands in; empty for the row itself, ``OWN`` for the menu of who
            has logged in.
        needs_data: whether it shows a dataset; one that does not is the app's first page only while
            there is none.
    """

    title: str
    icon: str
    needs: str
    about: str
    topic: str
    place: str
    order: int = _LAST
    group: str = ""
    needs_data: bool = True


class Export(NamedTuple):
    """A form in which a whole dataset is exported.

    Attributes:
        title: what people choose.
        about: what it is, in a sentence.
        ending: of its files, without the dot.
        mime: their type.
        place: the function that writes it: records and an open binary stream become the number of
            items written. Empty for the formats of records.
        in_record: the function that says whether a record has something for it, as
            ``package.module:name``; empty where all have.
    """

    title: str
    about: str
    ending: str = "jsonl"
    mime: str = "application/x-ndjson"
    place: str = ""
    in_record: str = ""


class Job(NamedTuple):
    """A kind of durable job.

    Attributes:
        title: as people see it.
        noun: what its progress counts, in the singular.
        workflow: the name under which DBOS keeps it.
        place: a function in the module that has the workflow: it says whether a request under way
            (JSON) does all that another one asks for.
    """

    title: str
    noun: str
    workflow: str
    place: str


@dataclass(frozen=True)
class Room:
    """What a room offers.

    Attributes:
        commands: by their names.
        pages: those in the navigation.
        exports: by the names of their formats.
        jobs: by the names of their kinds.
        offers: by kind and name, where the rest stands: "detectors" → "safe" → ":ENTRY".
    """

    commands: Mapping[str, Command] = field(default_factory=dict)
    pages: tuple[Page, ...] = ()
    exports: Mapping[str, Export] = field(default_factory=dict)
    jobs: Mapping[str, Job] = field(default_factory=dict)
    offers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


_Named = TypeVar("_Named", Command, Export, Job)


class Offer(NamedTuple):
    """One thing that is offered, and by whom."""

    name: str
    value: str  # package.module:name
    package: str  # the distribution

    def load(self) -> Any:
        """Import it; whatever breaks there is raised as it is."""
        return resolve_name(self.value)


def commands() -> dict[str, Command]:
    """Return all commands by name in the order of the help; each place is complete."""
    found = _named(lambda room: room.commands)
    return dict(sorted(found.items(), key=lambda item: item[1].order))


def pages() -> tuple[Page, ...]:
    """Return all pages in the order of the navigation; each place is complete."""
    found = (
        page._replace(place=_place(package, page.place))
        for package, room in _rooms().items()
        for page in room.pages
    )
    return tuple(sorted(found, key=lambda page: page.order))


def exports() -> dict[str, Export]:
    """Return the exports of all rooms by name; each place is complete."""
    return _named(lambda room: room.exports)


def jobs() -> dict[str, Job]:
    """Return the kinds of jobs of all rooms by name; each place is complete."""
    return _named(lambda room: room.jobs)


def offers(kind: str) -> tuple[Offer, ...]:
    """Return all of a kind, such as "detectors", by name: ours first. Nothing is imported.

    Two packages may offer the same name: both are returned, and who asks decides.
    """
    return _offers(kind, tuple(sys.path))


@cache
def _offers(kind: str, _path: tuple[str, ...]) -> tuple[Offer, ...]:
    """Return what is offered with this path of imports; to read other packages takes 7 ms."""
    ours, others = list[Offer](), list[Offer]()
    for package, room in _rooms().items():
        owner = OURS if package.partition(".")[0] in _TOP else package
        for name, place in room.offers.get(kind, {}).items():
            (ours if owner == OURS else others).append(Offer(name, _place(package, place), owner))
    for point in entry_points(group=f"spanlab.{kind}"):
        owner = point.dist.name if point.dist is not None else "?"
        if owner != OURS:  # an installation of before may still tell of ours
            others.append(Offer(point.name, point.value, owner))
    return (*sorted(ours), *sorted(others))


def names(kind: str) -> frozenset[str]:
    """Return the names of all of a kind; nothing is imported."""
    return frozenset(found.name for found in offers(kind))


def offer(kind: str, name: str) -> Offer | None:
    """Return the first of a kind with this name; None if there is none."""
    return next((found for found in offers(kind) if found.name == name), None)


def _named(of: Callable[[Room], Mapping[str, _Named]]) -> dict[str, _Named]:
    """Return what rooms have by name; a package cannot take a name of ours, which come first."""
    found: dict[str, _Named] = {}
    for package, room in _rooms().items():
        for name, what in of(room).items():
            found.setdefault(name, what._replace(place=_place(package, what.place)))
    return found


def _place(package: str, place: str) -> str:
    """Return a place in full: ``module:name`` below a package, or ``:name`` in the package."""
    module, _, name = place.partition(":")
    return f"{package}.{module}:{name}" if module else f"{package}:{name}"


@cache
def _rooms() -> Mapping[str, Room]:
    """Return all rooms by their packages: ours by folder, then those of other packages."""
    found = dict(_ours())
    for point in sorted(entry_points(group="spanlab.rooms")):
        if (room := _load(point)) is not None:
            found[point.module.rpartition(".")[0] or point.module] = room
    return MappingProxyType(found)


def _ours() -> Iterator[tuple[str, Room]]:
    """Yield our rooms: each file is run by its path, as imports would run the room's ``__init__``.

    That takes 300 ms for all of them, and a command's help shall not wait for pydantic.
    """
    for top in _TOP:
        spec = find_spec(top)
        if spec is None or spec.origin is None:
            continue
        home = Path(spec.origin).parent
        for file in sorted(home.rglob("doors.py")):
            package = ".".join((top, *file.parent.relative_to(home).parts))
            if file != Path(__file__) and package not in hidden:
                yield package, _run(file, f"{package}.doors")


def _run(file: Path, name: str) -> Room:
    spec = spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None  # it ends in .py
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    room: Room = module.ROOM
    return room


def _load(point: EntryPoint) -> Room | None:
    """Return another package's room; one that is broken is said, and the others are used."""
    try:
        room = point.load()
        if isinstance(room, Room):
            return room
        problem = f"{point.value} is not a Room"
    except Exception as error:  # noqa: BLE001 - whatever breaks there, the others can be used
        problem = f"{type(error).__name__}: {error}"
    warn(f"the room {point.name!r} of another package is left out: {problem}", stacklevel=2)
    return None
