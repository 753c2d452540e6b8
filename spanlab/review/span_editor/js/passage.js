/** One passage on the screen: where it comes from, and of a long text what matters with its surroundings. */

import { h, pressable } from "./dom.js";
import { lastAtMost } from "./offsets.js";
import { Text, directionOf } from "./text.js";
import { STANCE_WORDS, plural, stanceWords } from "./words.js";

const LONG = 6000; // characters that are always shown whole
const AROUND = 1500; // characters on either side of what matters in a longer text
const WORD = 40; // characters within which a cut looks for a space

/** Head and text of a passage; `text` translates its offsets. */
export class PassageView {
    constructor(passage, index, lang) {
        this.text = new Text(passage.text, lang);
        this.whole = this.text.length <= LONG;
        this.body = h("div", { class: "sl-passage-text", dir: directionOf(passage.text) });
        this.node = h("article", { class: "sl-passage" }, headOf(passage, index), this.body);
        this.title = this.node.firstChild.firstChild.textContent;
        this.paint([]);
    }

    /** Mark these quotes, with so much around them; without any, show where the passage begins. */
    paint(quotes, also = null) {
        this.quotes = quotes;
        this.leaves = [];
        this.marks = placesOf(quotes, this.text);
        this.windows = this.windowsAround(also ? [...this.marks, also] : this.marks);
        const nodes = [];
        let at = 0;
        for (const [start, end] of this.windows) {
            nodes.push(...this.gap(at, start), ...this.window(start, end));
            at = end;
        }
        this.body.replaceChildren(...nodes, ...this.gap(at, this.text.length));
    }

    windowsAround(places) {
        if (this.whole) return [[0, this.text.length]];
        if (places.length === 0) return [[0, this.cut(LONG)]];
        const windows = [];
        for (const { start, end } of places.toSorted((one, two) => one.start - two.start)) {
            const [from, to] = [this.cut(start - AROUND), this.cut(end + AROUND)];
            if (windows.length > 0 && from <= windows.at(-1)[1] + WORD) windows.at(-1)[1] = Math.max(to, windows.at(-1)[1]);
            else windows.push([from, to]);
        }
        return windows;
    }

    /** A place near `at` where the text may be cut: behind a space, else between characters. */
    cut(at) {
        if (at <= 0) return 0;
        if (at >= this.text.length) return this.text.length;
        const space = this.text.slice(at, at + WORD).search(/\s/);
        return space >= 0 ? at + space + 1 : this.text.unit(this.text.point(at));
    }

    /** A button in place of what is left out. */
    gap(start, end) {
        if (start >= end) return [];
        const node = h("button", { class: "sl-more sl-fold", type: "button" }, `… ${plural((end - start).toLocaleString("en"), "more character")}`);
        return [pressable(node, () => {
            this.whole = true;
            this.paint(this.quotes);
        })];
    }

    /** The text from `start` to `end`, with the marks that lie in it. */
    window(start, end) {
        const nodes = [];
        let at = start;
        for (const mark of this.marks) {
            const from = Math.max(at, mark.start);
            if (from >= mark.end || mark.start < start || mark.end > end) continue;
            nodes.push(this.leaf(at, from), h("mark", { class: `sl-quote sl-${mark.quote.stance}`, title: STANCE_WORDS[mark.quote.stance] },
                this.leaf(from, mark.end)), h("small", { class: "sl-stance" }, stanceWords(mark.quote)));
            at = mark.end;
        }
        nodes.push(this.leaf(at, end));
        return nodes;
    }

    leaf(start, end) {
        const node = document.createTextNode(this.text.slice(start, end));
        this.leaves.push({ node, start });
        return node;
    }

    shows({ start, end }) {
        return this.windows.some(([from, to]) => from <= start && end <= to);
    }

    /** Where UTF-16 units of a window stand in the page. */
    rangeOf({ start, end }) {
        const range = document.createRange();
        const [first, last] = [start, end - 1].map((at) => this.leaves[lastAtMost(this.leaves, at, (leaf) => leaf.start)]);
        range.setStart(first.node, start - first.start);
        range.setEnd(last.node, end - last.start);
        return range;
    }
}

function placesOf(quotes, text) {
    return quotes
        .map((quote) => ({ start: text.unit(quote.start), end: text.unit(quote.end), quote }))
        .sort((one, two) => one.start - two.start);
}

/** A passage's name, and its site or address with its date. */
export function sourceOf({ title, url, date }, index) {
    const web = /^https?:\/\//i.test(url ?? "") && URL.canParse(url);
    return {
        name: title ?? `Passage ${index + 1}`,
        source: [web ? new URL(url).host : url, date].filter(Boolean).join(" · "),
        web,
    };
}

function headOf(passage, index) {
    const { name, source, web } = sourceOf(passage, index);
    const shown = web
        ? h("a", { href: passage.url, target: "_blank", rel: "noopener noreferrer" }, name)
        : h("span", {}, name);
    return h("h2", { dir: "auto" }, shown, source ? h("small", {}, ` ${source}`) : "");
}
