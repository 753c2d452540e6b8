/** Finding words in the evidence: every passage is searched whole, also where it is folded. */

import { centre, h, pressable } from "./dom.js";

const MOST = 9999; // matches that are counted
const FOUND = "sl-found-in-evidence"; // names of the highlights in the style sheet
const CHOSEN = "sl-chosen-in-evidence";

/** The line above the passages in which a reviewer types what to find. */
export class EvidenceSearch {
    constructor(evidence) {
        this.evidence = evidence;
        this.hits = [];
        this.at = 0;
        this.input = h("input", { type: "search", "aria-label": "Find in the evidence", placeholder: "Find in the evidence",
            dir: "auto", maxlength: "200" });
        this.count = h("span", { class: "sl-quiet", role: "status" });
        this.node = h("form", { class: "sl-find", role: "search", hidden: "" }, this.input, this.count,
            this.button("↑", "Previous match", () => this.step(-1)), this.button("↓", "Next match", () => this.step(1)),
            this.button("✕", "Close", () => this.close()));
        this.input.addEventListener("input", () => this.find());
        this.node.addEventListener("submit", (event) => event.preventDefault());
        this.node.addEventListener("keydown", (event) => this.key(event));
    }

    button(sign, does, act) {
        return pressable(h("button", { class: "sl-button", type: "button", title: does, "aria-label": does }, sign), act);
    }

    /** Open it, with what was looked for before. */
    open() {
        const { view, views } = this.evidence;
        if (views.length === 0) return view.say("This item has no passages.", true);
        view.panel.reveal("evidence");
        this.node.hidden = false;
        this.find();
        return view.typing.into(this.input);
    }

    close() {
        this.node.hidden = true;
        this.hits = [];
        this.paint();
        this.evidence.view.focusAnswer();
    }

    key(event) {
        const acts = { Escape: () => this.close(), Enter: () => this.step(event.shiftKey ? -1 : 1) };
        if (event.target !== this.input || event.isComposing || !acts[event.key]) return;
        event.preventDefault();
        acts[event.key]();
    }

    /** Another item is open: its passages are searched for the same. */
    again() {
        if (this.node.hidden) return;
        if (this.evidence.views.length === 0) this.close();
        else this.find();
    }

    find() {
        const pattern = patternOf(this.input.value);
        this.hits = [];
        this.evidence.views.forEach(({ text }, passage) => {
            if (!pattern) return;
            for (const match of text.whole.matchAll(pattern)) {
                if (this.hits.length === MOST) return;
                this.hits.push({ passage, start: match.index, end: match.index + match[0].length });
            }
        });
        this.at = 0;
        this.show();
    }

    step(by) {
        this.at = (this.at + by + this.hits.length) % Math.max(this.hits.length, 1);
        this.show();
    }

    show() {
        const hit = this.hits[this.at];
        const many = this.hits.length === MOST ? `${MOST}+` : String(this.hits.length);
        this.count.textContent = hit ? `${this.at + 1} of ${many}` : this.input.value.trim() ? "not found" : "";
        if (hit) {
            const passage = this.evidence.views[hit.passage];
            if (!passage.shows(hit)) passage.paint(passage.quotes, hit);
            centre(this.evidence.passages, passage.rangeOf(hit));
        }
        this.paint();
    }

    /** Highlight what is found and not folded away. The text stays as it is: no element is added. */
    paint() {
        const { highlights } = CSS;
        if (!highlights) return;
        const seen = this.hits.filter((hit) => this.evidence.views[hit.passage]?.shows(hit));
        const ranges = new Map(seen.map((hit) => [hit, this.evidence.views[hit.passage].rangeOf(hit)]));
        const chosen = ranges.get(this.hits[this.at]);
        highlights.set(FOUND, new Highlight(...ranges.values()));
        highlights.set(CHOSEN, new Highlight(...(chosen ? [chosen] : [])));
    }
}

/** Upper or lower case, and any white space for a space; offsets stay those of the text. */
function patternOf(typed) {
    const words = typed.trim().split(/\s+/).filter(Boolean);
    if (words.length === 0) return null;
    return new RegExp(words.map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("\\s+"), "giu");
}
