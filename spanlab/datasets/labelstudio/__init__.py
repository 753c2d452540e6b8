"""Label Studio: its JSON export in, and the JSON out that it imports.

A task has ``data`` (the texts), ``annotations`` (of people) and ``predictions`` (of models), each
with a ``result`` of regions. A region of a text has ``start``, ``end``, ``labels`` and usually the
quoted ``text``. What else a result holds (choices, text areas, relations) is not about spans.

People become persons under their e-mail address, name or number, models detectors under their
version. A skipped task is skipped. A person's own mark counts as 1.0, whatever score the
prediction had that it was taken from.
"""

from spanlab.datasets.labelstudio._read import LabelStudioReader
from spanlab.datasets.labelstudio._write import LABEL, tasks

__all__ = ["LABEL", "LabelStudioReader", "tasks"]
