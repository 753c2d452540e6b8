"""What is offered here, at the doors of the app."""

from spanlab.doors import Room

ROOM = Room(offers={"detectors": {"citations": ":ENTRY", "citations-model": ":WITH_MODEL_ENTRY"}})
