"""The formats of files: one file for each, or for some that are alike.

A module here that has a ``FORMAT``, a ``FormatEntry`` with a name, is a format; no list says so.
"""
