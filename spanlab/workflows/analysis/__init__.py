"""Analyses of labels: scores, agreement, rates, stages, and the progress of people."""
