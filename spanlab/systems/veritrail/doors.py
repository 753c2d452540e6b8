"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "stages": Command(
            "Say at which stages of their processes errors of answers came in.",
            "commands:stages",
            140,
        ),
    },
    offers={
        "steps": {"trail": "trace:TrailStep"},
        "panels": {"stages": "panel:PANEL"},
        "detectors": {
            "veritrail": ":VERITRAIL",
            "veritrail-rag": ":RETRIEVAL",
            "veritrail-source": ":WHOLE",
            "veritrail-vt-rag": ":TRACED_RETRIEVAL",
        },
    },
)
