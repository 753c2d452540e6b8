/** The passages beside the answer, with the quotes of the chosen span marked. */

import { centre, h } from "./dom.js";
import { distinct } from "./marks.js";
import { Text } from "./text.js";
import { STANCE_WORDS, stanceWords } from "./words.js";

/** Passages of the open item; `texts` are theirs, by index. */
export class Evidence {
    constructor(view) {
        this.view = view;
        this.passages = h("div", { class: "sl-passages", tabindex: "0", role: "region", "aria-label": "Evidence" });
        this.node = h("section", { class: "sl-evidence" }, this.passages);
    }

    build({ passages, lang }) {
        if (this.builtFor === passages) return;
        this.builtFor = passages;
        this.view.panel.count("evidence", passages.length);
        this.bodies = passages.map((passage) => h("div", { class: "sl-passage-text", dir: "auto" }, passage.text));
        this.texts = passages.map((passage) => new Text(passage.text, lang));
        this.marked = new Set();
        this.shown = "";
        const nodes = passages.map((passage, index) => h("article", { class: "sl-passage" },
            passageHead(passage, index), this.bodies[index]));
        if (nodes.length === 0) nodes.push(h("p", { class: "sl-quiet" }, "This item came without passages."));
        this.passages.replaceChildren(...nodes);
        this.passages.scrollTop = 0;
    }

    /** Quotes that belong to the chosen span: its own, else those of suggestions over it. */
    quotes() {
        const { editor } = this.view;
        const mark = editor.focused;
        if (!mark) return [];
        if (mark.evidence.length > 0) return distinct(mark.evidence);
        const hidden = editor.hidden();
        return distinct(editor.item.groups
            .filter((group) => group.start < mark.end && group.end > mark.start)
            .flatMap((group) => group.members)
            .filter((member) => !hidden.has(member.annotator))
            .flatMap((member) => member.evidence ?? []));
    }

    paint() {
        const quotes = this.quotes();
        const signature = JSON.stringify(quotes);
        if (signature === this.shown) return;
        this.shown = signature;
        const touched = new Set([...this.marked, ...quotes.map((quote) => quote.passage)]);
        for (const index of touched) this.paintPassage(index, quotes.filter((quote) => quote.passage === index));
        this.marked = new Set(quotes.map((quote) => quote.passage));
        this.at = 0;
        this.show();
    }

    paintPassage(index, quotes) {
        const body = this.bodies[index];
        if (!body) return;
        const text = this.texts[index];
        const nodes = [];
        let at = 0;
        for (const quote of quotes.sort((one, two) => one.start - two.start)) {
            const [start, end] = [Math.max(at, text.unit(quote.start)), text.unit(quote.end)];
            if (start >= end) continue;
            nodes.push(text.slice(at, start), h("mark", {
                class: `sl-quote sl-${quote.stance}`, title: STANCE_WORDS[quote.stance],
            }, text.slice(start, end)), h("small", { class: "sl-stance" }, stanceWords(quote)));
            at = end;
        }
        nodes.push(text.slice(at, text.length));
        body.replaceChildren(...nodes);
    }

    /** Bring the quote whose turn it is into sight; false if there is none. */
    show() {
        const marks = this.passages.querySelectorAll("mark");
        if (marks.length === 0) return false;
        const chosen = marks[this.at % marks.length];
        for (const mark of marks) mark.classList.toggle("sl-chosen", mark === chosen);
        centre(this.passages, chosen);
        return chosen;
    }

    next() {
        this.view.panel.reveal("evidence");
        this.at = (this.at ?? -1) + 1;
        const shown = this.show();
        return this.view.say(shown ? `Evidence: ${shown.textContent}` : "No evidence for this span.", !shown);
    }

    /** Bring a passage into sight with these quotes marked, until another span is chosen. */
    showPassage(index, quotes) {
        for (const other of new Set([...this.marked, index])) this.paintPassage(other, other === index ? [...quotes] : []);
        this.marked = new Set([index]);
        this.shown = null;
        this.at = 0;
        const passage = this.bodies[index].parentElement;
        this.view.panel.reveal("evidence");
        if (!this.show()) centre(this.passages, passage);
        this.view.say(`${passage.firstChild.textContent}. ${quotes.map((quote) => quote.note ?? "").join(" ")}`.trim());
    }
}

function passageHead(passage, index) {
    const title = passage.title ?? `Passage ${index + 1}`;
    const web = /^https?:\/\//i.test(passage.url ?? "");
    const name = web
        ? h("a", { href: passage.url, target: "_blank", rel: "noopener noreferrer" }, title)
        : h("span", {}, title);
    const rest = [passage.date, web ? null : passage.url].filter(Boolean).join(" · ");
    return h("h4", { dir: "auto" }, name, rest ? h("small", {}, ` ${rest}`) : "");
}
