"""Prompt optimisation: reviewed labels tune the prompts that make the next suggestions.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3": the instruction and demonstrations of a
detector's prompt are searched to maximise the shared task's own metrics on labelled items.
"""
