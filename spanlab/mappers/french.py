"""French words, without the pattern by which spaCy keeps compounds such as "grand-père" whole.

To compile that pattern takes three seconds of every process, at the import of spaCy's rules for
French, and alignment parts words at hyphens anyway. What remains are elisions and abbreviations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spacy.language import Language

_ELISION: Final = "'’"
_WHOLE: Final = (
    *("aujourd'hui", "Aujourd'hui", "aujourd’hui", "Aujourd’hui"),
    *("janv.", "févr.", "avr.", "juill.", "sept.", "oct.", "nov.", "déc."),
    *("Dr.", "M.", "MM.", "Mlle.", "Mme.", "Mr.", "St.", "Ste."),
    *("apr.", "av.", "cf.", "etc.", "No.", "pp.", "Vol.", "J.-C."),
)


def french() -> Language:
    """Return a pipeline that cuts French texts into words."""
    import spacy
    from spacy.lang import punctuation
    from spacy.lang.char_classes import ALPHA
    from spacy.util import compile_infix_regex, compile_prefix_regex

    language = spacy.blank("xx")
    tokenizer: Any = language.tokenizer  # whose type is that of any function
    elided = rf"[dlnDLN][{_ELISION}](?=[{ALPHA}])"
    prefixes = compile_prefix_regex([*punctuation.TOKENIZER_PREFIXES, elided])
    elision = rf"(?<=[{ALPHA}][{_ELISION}])(?=[{ALPHA}])"
    infixes = compile_infix_regex([*punctuation.TOKENIZER_INFIXES, elision])
    tokenizer.prefix_search = prefixes.search
    tokenizer.infix_finditer = infixes.finditer
    for word in _WHOLE:
        tokenizer.add_special_case(word, [{"ORTH": word}])
    return language
