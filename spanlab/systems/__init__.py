"""The systems that find hallucinations, a folder each; none knows another, and nothing knows them.

What a system offers (detectors, commands, tabs of pages) stands in its ``doors.py``.
"""
