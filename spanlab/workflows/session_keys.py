"""Models that people set up in the browser: endpoint, and a key that no file or database ever has.

The key lies in the memory of the app's process. What is stored, such as a job's request, has a name
for it that means something in this process alone, so that such a job is worked on here and nowhere
else. When the process ends, or the session that gave the key, the key is gone. A job that has begun
keeps it until then; one that finds it gone says so, and what it has done stays.
"""

from __future__ import annotations

from spanlab.errors import UsageError
from spanlab.lm import ModelChoice
from spanlab.lm.choice import EndpointAddress
from spanlab.lm.secrets import lend, take_back

__all__ = ["ModelChoice", "lend", "session_model", "take_back"]

_NO_KEY = "no key in the browser"  # never the environment's: the address is somebody else's


def session_model(model: str, endpoint: str, key: str) -> ModelChoice:
    """Return a model as it was set up in the browser.

    Args:
        model: its name.
        endpoint: the address of the API; empty for the environment's.
        key: the name under which the key was lent; empty for none, which with an endpoint means
            that it gets none, not even the environment's.

    Raises:
        UsageError: the model has no name, or the address is none.
    """
    if not model.strip():
        raise UsageError("name the model that is to be asked, for example gpt-4o-mini")
    try:
        url = str(EndpointAddress.parse(endpoint.strip())) if endpoint.strip() else None
    except ValueError as error:
        raise UsageError(f"the endpoint is no address: {error}") from None
    name = key or (_NO_KEY if url else "")
    return ModelChoice(model=model.strip(), base_url=url, **({"api_key_env": name} if name else {}))
