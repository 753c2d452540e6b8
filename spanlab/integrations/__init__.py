"""spanlab as one assertion among others, where people test already: one module for each program.

Each imports its program, and nothing else of spanlab imports these modules.
"""
