"""The offline detector: a trained checker of lexical evidence, for any language; see ``detector``.

This file stays empty, so that the detector's ``entry`` is read without loading its model.
"""
