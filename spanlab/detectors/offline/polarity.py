"""The few words that say yes, no or not, in the languages that the detector was trained on."""

from __future__ import annotations

from spanlab.detectors.offline.normal import fold


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(word) for word in text.split())


NEGATIONS = _words(
    "not no never nor nein nicht kein keine nie ne pas jamais non mai nunca jamás ni inte ingen "
    "inget aldrig ej ei eivät en et emme ette eikä 不 没 無 无 非 未 नहीं न मत لا لم ليس لن غير نه "
    "نیست není nikdy ez cap"
)
YES = _words("yes ja oui si sí sì kyllä 是 हाँ हां نعم بله ano bai")
NO = _words("no nein non nej ei 否 不 नहीं لا خیر ne ez")
