"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "stages": Command(
            "Report at which stage of its process each error arose.",
            "commands:stages",
            140,
        ),
    },
    offers={
        "formats": {"graphrag": "graphrag:FORMAT", "summaries": "summaries:FORMAT"},
        "steps": {"trail": "trace:TrailStep"},
        "panels": {"stages": "panel:PANEL"},
        "detectors": {
            "veritrail": "entries:VERITRAIL",
            "veritrail-rag": "entries:RETRIEVAL",
            "veritrail-source": "entries:WHOLE",
            "veritrail-vt-rag": "entries:TRACED_RETRIEVAL",
        },
    },
)
