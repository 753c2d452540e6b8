"""What is offered here, at the doors of the app."""

from spanlab.doors import Job, Room

ROOM = Room(jobs={"detect": Job("Detection", "item", "spanlab.detect", "detection:same")})
