/** What somebody who is here for the first time is told, once. */

import { h, pressable } from "./dom.js";

const STORED = "spanlab.hints"; // how many this browser has seen
const ITEMS = 3; // after so many nobody is new
const WELCOME = "You see one answer of a language model. Find what is made up: the passages are the evidence, and marks are suggestions.";
const HINTS = [
    { words: WELCOME, touch: WELCOME, commands: [], page: ["tour", "Take a tour"] },
    { words: "Tab goes from one suggestion to the next. Press a to accept it, x to reject it.", touch: "Tap a suggestion, then Accept or Reject.",
        commands: ["nextSpan", "previousSpan", "accept", "reject"] },
    { words: "To mark text yourself, drag over it; or select with Shift and arrow keys and press d.",
        touch: "To mark text yourself, press long on a word, drag the handles, then tap Mark.", commands: ["draw"] },
    { words: "Enter says that the item is done and opens the next one. Press ? for all keys.",
        touch: "Done says that the item is done and opens the next one.", commands: ["done", "help"] },
];

/** One hint at a time; what was seen does not come back, nor what is done already. */
export class Hints {
    constructor() {
        this.byTouch = matchMedia("(pointer: coarse)").matches;
        this.done = new Set(); // commands
        this.items = 0; // finished here
        this.words = h("p", {});
        const seen = h("button", { class: "sl-button", type: "button" }, "Got it");
        this.link = h("a", {});
        this.node = h("div", { class: "sl-hint", role: "note", "aria-label": "Hint" }, this.words, this.link, pressable(seen, () => this.next()));
        this.at = this.stored();
        this.paint();
    }

    /** Python says whether there is a tour: people who were invited have none. */
    take(hasTour) {
        this.hasTour = hasTour;
        this.paint();
    }

    /** Somebody has run a command: whoever does what a hint says needs it no more, nor any after some items. */
    used(command) {
        this.done.add(command);
        this.items += ["done", "skip"].includes(command) ? 1 : 0;
        if (this.items >= ITEMS) this.at = HINTS.length - 1;
        if (!this.node.hidden && (this.items >= ITEMS || HINTS[this.at].commands.includes(command))) this.next();
    }

    next() {
        do this.at += 1; while (HINTS[this.at]?.commands.some((command) => this.done.has(command)));
        try {
            localStorage.setItem(STORED, String(this.at));
        } catch { /* without storage it comes back with the next page */ }
        this.paint();
    }

    paint() {
        const hint = HINTS[this.at];
        this.node.hidden = !hint;
        if (hint) this.words.textContent = this.byTouch ? hint.touch : hint.words;
        [this.link.href, this.link.textContent] = (this.hasTour && hint?.page) || ["", ""];
    }

    stored() {
        try {
            return Number(localStorage.getItem(STORED)) || 0;
        } catch {
            return 0;
        }
    }
}
