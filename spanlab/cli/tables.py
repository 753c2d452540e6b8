"""Results as text tables and as JSON."""

from __future__ import annotations

from spanlab.storage import DatasetSummary
from spanlab.workflows.evaluating import Evaluation
