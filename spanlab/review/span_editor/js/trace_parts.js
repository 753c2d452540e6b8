/** Parts that steps of a trace are drawn from, those of systems, too. */

import { h } from "./dom.js";
import { distinct } from "./joining.js";
import { sourceOf } from "./passage.js";
import { stanceWords } from "./words.js";

const AROUND = 70;
const MOST_SENTENCES = 3;

/** A part of a trace with a title. */
export function section(title, ...children) {
    return h("section", { class: "sl-step" }, h("h2", {}, title), ...children);
}

/** A passage that was read, with the sentence that mattered. */
export function readNode(panel, index, about, item) {
    const passage = item.payload.passages[index];
    if (!passage) return missingNode(index);
    const { name, source } = sourceOf(passage, index);
    const quotes = distinct(about.evidence.filter((quote) => quote.passage === index));
    const text = panel.view.evidence.texts[index];
    const marked = quotes.slice(0, MOST_SENTENCES).map((quote) => {
        const [start, end] = [text.unit(quote.start), text.unit(quote.end)];
        return h("span", { class: "sl-sentence" }, textBefore(text, start),
            h("mark", { class: `sl-quote sl-${quote.stance}` }, text.slice(start, end)), textAfter(text, end),
            h("small", { class: "sl-stance" }, stanceWords(quote)));
    });
    const act = () => panel.view.evidence.showPassage(index, quotes);
    return panel.leading("sl-read", "Show the passage", act, h("b", {}, name), source ? h("small", {}, ` ${source}`) : "", ...marked);
}

export function missingNode(index) {
    return h("span", { class: "sl-quiet" }, `Passage ${index + 1} came after this item was opened; reload to read it.`);
}

/** The words just before a quote, with an ellipsis where text is left out. */
function textBefore(text, start) {
    const from = start <= AROUND ? 0 : Math.min(start, text.nextWordStart(start - AROUND));
    return `${from > 0 ? "… " : ""}${text.slice(from, start)}`;
}

/** The words just after a quote. */
function textAfter(text, end) {
    const to = end + AROUND >= text.length ? text.length : Math.max(end, text.previousWordEnd(end + AROUND));
    return `${text.slice(end, to)}${to < text.length ? " …" : ""}`;
}

/** Of which claim a step is, in which round and with which tool, as far as it says. */
export function stage({ claim, round, tool }) {
    const isNumber = Number.isInteger(claim);
    return [isNumber ? `claim ${claim + 1}` : "", round ? `round ${round}` : "", tool].filter(Boolean);
}

export function stageNode(step) {
    const parts = stage(step);
    return parts.length ? h("span", { class: "sl-quiet", dir: "auto" }, ` (${parts.join(" · ")})`) : "";
}
