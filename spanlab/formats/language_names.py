"""What people call a language in place of its tag: its name, or its code of three letters."""

from __future__ import annotations

from typing import Final

_NAMES: Final = """
ar ara arabic العربية
bg bul bulgarian български
bn ben bengali বাংলা
ca cat catalan català
cs ces cze czech čeština
da dan danish dansk
de deu ger german deutsch
el ell gre greek ελληνικά
en eng english
es spa spanish español castellano
et est estonian eesti
eu eus baq basque euskara
fa fas per persian farsi فارسی
fi fin finnish suomi
fr fra fre french français francais
he heb hebrew עברית
hi hin hindi हिन्दी
hr hrv croatian hrvatski
hu hun hungarian magyar
id ind indonesian
it ita italian italiano
ja jpn japanese 日本語
ko kor korean 한국어
lt lit lithuanian lietuvių
lv lav latvian latviešu
nl nld dut dutch nederlands
no nor norwegian norsk
pl pol polish polski
pt por portuguese português
ro ron rum romanian română
ru rus russian русский
sk slk slo slovak slovenčina
sl slv slovenian slovene slovenščina
sr srp serbian српски
sv swe swedish svenska
sw swa swahili kiswahili
ta tam tamil தமிழ்
th tha thai ไทย
tr tur turkish türkçe
uk ukr ukrainian українська
ur urd urdu اردو
vi vie vietnamese
zh zho chi cmn chinese mandarin 中文 汉语
"""
LANGUAGES: Final = {
    name: line.split()[0] for line in _NAMES.strip().splitlines() for name in line.split()
}
