"""What is offered here, at the doors of the app."""

from spanlab.doors import Room

ROOM = Room(
    offers={
        "detectors": {
            "veritrail": ":VERITRAIL",
            "veritrail-rag": ":RETRIEVAL",
            "veritrail-source": ":WHOLE",
            "veritrail-vt-rag": ":TRACED_RETRIEVAL",
        }
    }
)
