"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Job, Room

ROOM = Room(
    commands={
        "bench": Command(
            "Compare detectors on datasets: one table with baselines and tests.",
            "commands:bench",
            180,
        ),
    },
    jobs={"bench": Job("Benchmark", "cell", "spanlab.bench", "job:same")},
    offers={"panels": {"bench": "panel:PANEL"}},
)
