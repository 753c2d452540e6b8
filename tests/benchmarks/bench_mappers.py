"""What mapping alone costs in agreement and in time: perfect models, long answers, odd answers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

from perfect import ORDERS, VARIANTS, Answer, answers, correction, extraction, macro, repeated

from spanlab.text.corrections import changes, map_revision
from spanlab.text.facts import closest_sentence, map_fact
from spanlab.text.quotes import ModelQuote, map_quotes
from spanlab.text.tokens import tokens

_ROOT = Path(__file__).resolve().parent.parent.parent
_LENGTHS = (1_000, 10_000, 30_000, 100_000)
_QUOTES = 200
# Those of the shared task; spaCy reads Chinese by characters, as we do.
_LANGUAGES = ("ar", "ca", "cs", "de", "en", "es", "eu", "fa", "fi", "fr", "hi", "it", "sv", "zh")


def main() -> None:
    """Print the ceilings, the ratio to a plain alignment, and cost against length."""
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if shared.is_dir():
        _print_ceilings(answers(shared))
    else:
        print(f"no shared data at {shared}: set SPANLAB_SHARED for the ceilings")
    _print_ratio()
    _print_costs()
    _print_odd()
    _print_start()


def _print_ceilings(items: list[Answer]) -> None:
    langs = list(dict.fromkeys(item.lang for item in items))
    print("mappers: IoU that a perfect model reaches, Mu-SHROOM val")
    print(f"  {'':36} macro  " + "   ".join(f"{lang:4}" for lang in langs))
    distinct = [item for item in items if not repeated(item)]
    rows = [(f"quotes {order}", extraction(items, order)) for order in ORDERS]
    rows.append(("each once, no text twice in gold", extraction(distinct, "each text once")))
    for variant in VARIANTS:
        rows.append((f"correction {variant}", correction(items, variant, "word")))
        rows.append(("  refine=char", correction(items, variant, "char")))
    for name, scores in rows:
        print(f"  {name:36} {macro(scores):.4f} " + "  ".join(f"{s:.3f}" for s in scores.values()))


def _print_ratio() -> None:
    draw = random.Random(1)
    words = _vocabulary(draw)
    answer = [draw.choice(words) for _ in range(2_000)]
    revised = [draw.choice(words) if draw.random() < 0.1 else word for word in answer]
    old, new = " ".join(answer), " ".join(revised)
    tokens(old, "en")
    plain = _seconds(lambda: _plain(answer, revised))
    align = min(_seconds(lambda: changes(answer, revised)) for _ in range(5))
    whole = min(_seconds(lambda: map_revision(old, new, lang="en")) for _ in range(5))
    print("2,000 words, 10 % changed, CPU time")
    print(f"  plain Python dynamic programme {plain * 1000:8.1f} ms")
    print(f"  alignment of the same words    {align * 1000:8.1f} ms, {plain / align:.0f}x")
    print(f"  map_revision, words included   {whole * 1000:8.1f} ms, {plain / whole:.0f}x")


def _plain(old: list[str], new: list[str]) -> list[tuple[str, int]]:
    """Align by the textbook: a table of costs, then the way back."""
    table = [list(range(len(new) + 1))]
    for i, word in enumerate(old, 1):
        above, row = table[-1], [i]
        for j, other in enumerate(new, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (word != other)))
        table.append(row)
    edits: list[tuple[str, int]] = []
    i, j = len(old), len(new)
    while i or j:
        if i and j and table[i][j] == table[i - 1][j - 1] + (old[i - 1] != new[j - 1]):
            i, j = i - 1, j - 1
            if old[i] != new[j]:
                edits.append(("replace", i))
        elif i and table[i][j] == table[i - 1][j] + 1:
            i -= 1
            edits.append(("delete", i))
        else:
            j -= 1
            edits.append(("insert", i))
    return edits[::-1]


def _print_costs() -> None:
    print(f"cost per answer against its length, CPU ms ({_QUOTES} quotes); last: 100,000 / 10,000")
    print(f"  {'':30}" + "".join(f"{length:>10,}" for length in _LENGTHS))
    rows: dict[str, list[float]] = {}
    for length in _LENGTHS:
        for name, task in _tasks(length).items():
            task()
            best = min(_seconds(task) for _ in range(2))
            rows.setdefault(name, []).append(best * 1000)
    for name, costs in rows.items():
        figures = "".join(f"{cost:10.1f}" for cost in costs)
        print(f"  {name:30}{figures}   {costs[3] / costs[1]:.1f}x")


def _tasks(length: int) -> dict[str, Callable[[], object]]:
    draw = random.Random(length)
    vocabulary = _vocabulary(draw)
    words = [draw.choice(vocabulary) for _ in range(length // 6)]
    for index in range(12, len(words), 12):
        words[index] += "."
    answer = " ".join(words)
    starts = sorted(draw.choices(range(len(words) - 3), k=_QUOTES))
    texts = [" ".join(words[start : start + 3]) for start in starts]
    exact = [ModelQuote(text) for text in texts]
    edited = [ModelQuote(text[:-2] + "q" + text[-1]) for text in texts]
    absent = [ModelQuote(text[::-1]) for text in texts]
    some = " ".join(word if draw.random() > 0.1 else "changed" for word in words)
    other = " ".join(draw.choice(vocabulary) for _ in words)
    han = "".join(chr(0x4E00 + draw.randrange(800)) for _ in range(length))
    han_revised = "".join(c for c in han if draw.random() > 0.05)
    sentence = " ".join(words[24:36])
    return {
        "map_quotes, word for word": lambda: map_quotes(answer, exact),
        "map_quotes, one letter off": lambda: map_quotes(answer, edited),
        "map_quotes, standing nowhere": lambda: map_quotes(answer, absent),
        "map_fact": lambda: map_fact(answer, sentence, exact[:3], lang="en"),
        "map_revision, 10 % changed": lambda: map_revision(answer, some, lang="en"),
        "map_revision, all rewritten": lambda: map_revision(answer, other, lang="en"),
        "map_revision, all, by characters": lambda: map_revision(
            answer, other, lang="en", refine="char"
        ),
        "map_revision, zh, 5 % deleted": lambda: map_revision(han, han_revised, lang="zh"),
        "closest_sentence, remembered": lambda: closest_sentence([answer], sentence, lang="en"),
    }


def _print_odd() -> None:
    print("one word 20,000 times (100,000 characters), CPU ms")
    answer = "word " * 20_000
    for name, task in {
        "200 quotes of the word": lambda: map_quotes(answer, [ModelQuote("word")] * 200),
        "200 quotes of 1 to 200 words": lambda: map_quotes(
            answer, [ModelQuote("word " * count) for count in range(1, 201)]
        ),
        "200 such with a typo": lambda: map_quotes(
            answer, [ModelQuote("word " * count + "wrod") for count in range(1, 201)]
        ),
        "revision without seven of them": lambda: map_revision(
            answer, "word " * 9_000 + "other " + "word " * 10_992, lang="en"
        ),
    }.items():
        print(f"  {name:32}{_seconds(task) * 1000:10.1f}")


def _print_start() -> None:
    ours = _processor_seconds("from spanlab.text.tokens import tokens\n", "tokens(text, lang)")
    plain = _processor_seconds("import spacy\n", "spacy.blank(lang)(text)")
    print(
        f"20 texts in {len(_LANGUAGES)} languages in a new process: {ours:.1f} s of processor time"
    )
    print(f"  by spaCy's rules for all of them {plain:.1f} s, {plain / ours:.1f}x")


def _processor_seconds(imports: str, task: str) -> float:
    """Measure a new process that reads a text in each language, and the first six again."""
    loop = f"for lang in {(*_LANGUAGES, *_LANGUAGES[:6])}:\n    text = 'A text.'\n    {task}\n"
    told = "import time; print(time.process_time())"
    child = subprocess.run(
        [sys.executable, "-c", imports + loop + told], capture_output=True, text=True, check=True
    )
    return float(child.stdout)


def _vocabulary(draw: random.Random) -> list[str]:
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(draw.choices(letters, k=draw.randint(2, 8))) for _ in range(4_000)]


def _seconds(task: Callable[[], object]) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


if __name__ == "__main__":
    main()
