"""What is offered here, at the doors of the app."""

from spanlab.doors import Room

ROOM = Room(offers={"formats": {"traces": "reader:FORMAT"}})
