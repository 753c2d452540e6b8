/** What somebody who is here for the first time is told, once. */

import { h, pressable } from "./dom.js";

const STORED = "spanlab.hints"; // how many this browser has seen
const HINTS = [
    "Tab goes from one suggestion to the next. Press a to accept it, x to reject it.",
    "To mark text yourself, drag over it; or select with Shift and arrow keys and press d.",
    "Enter says that the item is done and opens the next one. Press ? for all keys.",
];
const TOUCH_HINTS = [
    "Tap a suggestion, then Accept or Reject.",
    "To mark text yourself, press long on a word, drag the handles, then tap Mark.",
    "Done says that the item is done and opens the next one.",
];

/** One hint at a time; what was seen does not come back. */
export class Hints {
    constructor() {
        this.hints = matchMedia("(pointer: coarse)").matches ? TOUCH_HINTS : HINTS;
        this.words = h("p", {});
        const seen = h("button", { class: "sl-button", type: "button" }, "Got it");
        this.node = h("div", { class: "sl-hint", role: "note", "aria-label": "Hint" }, this.words, pressable(seen, () => this.next()));
        this.at = this.stored();
        this.paint();
    }

    next() {
        this.at += 1;
        try {
            localStorage.setItem(STORED, String(this.at));
        } catch { /* without storage it comes back with the next page */ }
        this.paint();
    }

    paint() {
        this.node.hidden = this.at >= this.hints.length;
        if (!this.node.hidden) this.words.textContent = this.hints[this.at];
    }

    stored() {
        try {
            return Number(localStorage.getItem(STORED)) || 0;
        } catch {
            return 0;
        }
    }
}
