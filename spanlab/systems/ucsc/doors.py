"""What is offered here, at the doors of the app."""

from spanlab.doors import Room

ROOM = Room(
    offers={
        "steps": {"revision": "trace:RevisionStep"},
        "detectors": {
            "ucsc": ":UCSC",
            "ucsc-extract": ":EXTRACT",
            "ucsc-kg": ":KG",
            "ucsc-revise": ":REVISE",
        },
    }
)
