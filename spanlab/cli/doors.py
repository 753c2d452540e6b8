"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "import": Command("Read files into a dataset.", "importing:import_command", 10),
        "annotate": Command(
            "Let detectors mark spans, in a dataset or from file to file.", "annotate:annotate", 20
        ),
        "vote": Command("Turn the marks of many annotators into soft labels.", "annotate:vote", 40),
        "score": Command(
            "Score predictions against gold labels: IoU, Corr and more.", "analysis:score", 50
        ),
        "rates": Command(
            "Report how often answers are hallucinated, by model or another field.",
            "analysis:rates",
            60,
        ),
        "measure": Command(
            "Estimate the hallucination rate from a detector and reviews.",
            "measuring:measure",
            70,
        ),
        "gate": Command(
            "Fail if the hallucination rate of a dataset is too high.", "measuring:gate", 80
        ),
        "campaign": Command(
            "Show a campaign's progress and expected finish; reassign items.",
            "measuring:campaign",
            90,
        ),
        "raters": Command("Estimate how reliable each person is.", "measuring:raters", 100),
        "agreement": Command(
            "Report agreement on characters and on verdicts.",
            "analysis:agreement",
            110,
        ),
        "export": Command("Write a dataset with its annotations.", "datasets:export", 120),
        "push": Command(
            "Write a dataset to Hugging Face's Hub, or verdicts back to its traces.",
            "datasets:push",
            130,
        ),
        "index": Command(
            "Index a corpus, so that detectors can look things up in it.", "importing:index", 150
        ),
        "detectors": Command(
            "List the detectors: what each does and what it needs.", "models:detectors", 160
        ),
        "tools": Command("Start tool servers, to see which tools they offer.", "models:tools", 170),
        "check-model": Command(
            "Test what a model's endpoint supports.",
            "models:check_model",
            190,
        ),
        "datasets": Command(
            "List datasets with their settings and annotators, or change one.",
            "datasets:datasets",
            200,
        ),
        "snapshot": Command(
            "Save a dataset as it is now, as a version that never changes.",
            "versions:snapshot",
            210,
        ),
        "diff": Command(
            "Show what differs between two datasets or versions.", "versions:diff", 220
        ),
        "bin": Command("Deleted datasets: list, restore, delete permanently.", "versions:app", 230),
        "backup": Command(
            "Write the database and all tuned prompts into one file.", "versions:backup", 240
        ),
        "restore": Command("Put a backup into a database.", "versions:restore", 250),
        "guide": Command("Read the guide, page by page, or search it.", "guide:guide", 260),
        "roles": Command("What people may do: grant, revoke, list.", "access:roles", 270),
        "keys": Command("Keys of programs: create, list, revoke.", "access:keys", 280),
        "log": Command("Say who did what, the newest first.", "access:log", 290),
        "serve": Command("Serve the app on this machine until Ctrl+C.", "serving:serve", 300),
        "demo": Command(
            "Import and annotate the samples once, and serve the app.", "serving:demo", 310
        ),
        "mcp": Command(
            "Offer detectors, verification, scores and sources as MCP tools.", "serving:mcp", 320
        ),
        "api": Command(
            "Offer detectors, verification and scores as a JSON API.", "serving:api", 330
        ),
        "worker": Command(
            "Work on queued jobs until Ctrl+C; any number share them.", "jobs:worker", 400
        ),
        "annotators": Command(
            "Annotators of a dataset: rename, merge, remove, mark as gold.", "datasets:app", 410
        ),
        "jobs": Command("List, pause, resume, cancel and retry jobs.", "jobs:app", 450),
    },
)
