/** An answer as it is read: paragraphs, graphemes and words of its language. */

import { Offsets, lastAtMost } from "./offsets.js";
import { paragraphsOf } from "./paragraphs.js";

const SAMPLE = 1000; // UTF-16 units of a text that say how it is read

/** A letter that is read from right to left. */
export const LEFTWARDS = /(?!\p{Nd})[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;

/**
 * How a text is to be set: from right to left if most of its letters are read so, whatever word it
 * begins with; else as its first letter says.
 */
export function directionOf(text) {
    const letters = text.slice(0, SAMPLE).match(/\p{L}/gu) ?? [];
    return letters.filter((letter) => LEFTWARDS.test(letter)).length > letters.length / 2 ? "rtl" : "auto";
}

/** A text, addressed by UTF-16 units; `unit` and `point` translate from and to code points. */
export class Text extends Offsets {
    constructor(whole, lang) {
        super(whole);
        this.length = whole.length;
        this.paragraphs = paragraphsOf(whole);
        const locale = locales(lang);
        this.graphemes = new Intl.Segmenter(locale, { granularity: "grapheme" });
        this.sentences = new Intl.Segmenter(locale, { granularity: "sentence" });
        this.wording = new Intl.Segmenter(locale, { granularity: "word" });
    }

    slice(start, end) {
        return this.whole.slice(start, end);
    }

    paragraphIndex(at) {
        return Math.max(0, lastAtMost(this.paragraphs, at, (paragraph) => paragraph.start));
    }

    paragraphAt(at) {
        return this.paragraphs[this.paragraphIndex(at)];
    }

    /** Boundaries of graphemes within the paragraph at `at`, kept once they were asked for. */
    stops(paragraph) {
        paragraph.stops ??= [
            ...Array.from(this.graphemes.segment(this.slice(paragraph.start, paragraph.end)),
                (part) => paragraph.start + part.index),
            paragraph.end,
        ];
        return paragraph.stops;
    }

    words(paragraph) {
        paragraph.words ??= Array.from(this.wording.segment(this.slice(paragraph.start, paragraph.end)))
            .map((part) => ({
                start: paragraph.start + part.index,
                end: paragraph.start + part.index + part.segment.length,
                word: part.isWordLike,
            }));
        return paragraph.words;
    }

    nextGrapheme(at) {
        const paragraph = this.paragraphAt(at);
        if (at >= paragraph.end) return Math.min(paragraph.next, this.length);
        const stops = this.stops(paragraph);
        return stops[lastAtMost(stops, at) + 1];
    }

    previousGrapheme(at) {
        const index = this.paragraphIndex(at);
        const paragraph = this.paragraphs[index];
        if (at <= paragraph.start) return index === 0 ? 0 : this.paragraphs[index - 1].end;
        const stops = this.stops(paragraph);
        const slot = lastAtMost(stops, at);
        return stops[slot] < at ? stops[slot] : stops[slot - 1];
    }

    graphemeAt(at) {
        return this.slice(at, this.nextGrapheme(at)).trim() || "space";
    }

    /** The grapheme boundary at or before (or with `up`, at or after) `at`. */
    snapGrapheme(at, up) {
        const paragraph = this.paragraphAt(at);
        if (at >= paragraph.end) return at === paragraph.end || !up ? paragraph.end : paragraph.next;
        const stops = this.stops(paragraph);
        const slot = lastAtMost(stops, at);
        return stops[slot] === at || !up ? stops[slot] : stops[slot + 1];
    }

    /** The end of the next word after `at`. */
    nextWord(at) {
        return this.seek(at, 1, (word) => word.end > at, (word) => word.end) ?? this.length;
    }

    nextWordStart(at) {
        return this.seek(at, 1, (word) => word.start > at, (word) => word.start) ?? this.length;
    }

    /** The start of the word before `at`. */
    previousWord(at) {
        return this.seek(at, -1, (word) => word.start < at, (word) => word.start) ?? 0;
    }

    previousWordEnd(at) {
        return this.seek(at, -1, (word) => word.end < at, (word) => word.end) ?? 0;
    }

    seek(at, by, fits, found) {
        for (let index = this.paragraphIndex(at); index >= 0 && index < this.paragraphs.length; index += by) {
            const words = this.words(this.paragraphs[index]).filter((word) => word.word);
            const word = by > 0 ? words.find(fits) : words.findLast(fits);
            if (word) return found(word);
        }
        return null;
    }

    /** The word at `at`, or the one after it. */
    wordAt(at) {
        const word = this.words(this.paragraphAt(at)).find((part) => part.word && part.end > at);
        return word ? [word.start, word.end] : [at, this.nextWord(at)];
    }

    /** The sentence at `at`; at the end of a paragraph, its last one. */
    sentenceAt(at) {
        const { start, end } = this.paragraphAt(at);
        const part = this.sentences.segment(this.slice(start, end)).containing(Math.min(at, end - 1) - start);
        return part ? [start + part.index, start + part.index + part.segment.length] : [at, at];
    }

    /** Widen [start, end) to whole words and drop white space at its ends; null if none is left. */
    snapWords(start, end) {
        [start, end] = this.trim(start, end);
        if (start >= end) return null;
        const first = this.partAt(start);
        const last = this.partAt(end - 1);
        return this.trimmed(first?.word ? first.start : start, last?.word ? last.end : end);
    }

    /** Move [start, end) out to whole graphemes. */
    snapGraphemes(start, end) {
        return { start: this.snapGrapheme(start, false), end: this.snapGrapheme(end, true) };
    }

    partAt(at) {
        return this.words(this.paragraphAt(at)).find((part) => part.start <= at && at < part.end);
    }

    trimmed(start, end) {
        [start, end] = this.trim(start, end);
        return start < end ? { start, end } : null;
    }

    trim(start, end) {
        while (start < end && isSpace(this.whole[start])) start += 1;
        while (end > start && isSpace(this.whole[end - 1])) end -= 1;
        return [start, end];
    }
}

function locales(lang) {
    try {
        return lang && lang !== "und" ? Intl.getCanonicalLocales(lang) : undefined;
    } catch {
        return undefined;
    }
}

function isSpace(character) {
    return /\s/.test(character);
}
