"""What pipelines do: their traces as items, and recordings of those that run here.

span_files ── spans of any program and convention in one form
conventions ─ the names that these have for what spans say
spans ─────── what a span says of question, answer, messages and documents
prompts ───── a question and its passages inside a prompt
trace, runs ─ a trace as a whole, and the runs of a chat in one
reader ────── files of traces as a format
recording ─── functions that are recorded; listening: calls of models that are heard
"""
