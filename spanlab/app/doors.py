"""What is offered here, at the doors of the app."""

from spanlab.doors import Command, Room

ROOM = Room(
    commands={
        "guide": Command("Read the guide, page by page, or search it.", "guide_command:guide", 260),
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
    },
    offers={"visitor": {"session": "visitor:actor"}},
)
