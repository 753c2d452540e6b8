"""A person's annotation as the result of an append-only log of operations.

The log is the truth; the annotation is what is left when it is replayed from its snapshot
(an imported annotation, or nothing). Undo and redo are operations like any other, so they
survive a reload. ``review/span_editor/js/operations.js`` replays the same log in the browser; a
browser test holds the two to the same results.
"""
