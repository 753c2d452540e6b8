/** The bar above the answer: from which probability on suggestions are shown. */

import { h } from "./dom.js";
import { keyName } from "./keys.js";

const STEP = 5;
const MOST = 95;
const STORED = "spanlab.thresholds";
const SHOWN = "spanlab.percentages";

/** The reviewer's choice, which this browser remembers for each dataset. */
export class Threshold {
    constructor(view) {
        this.view = view;
        this.chosen = read(STORED, {});
        const [weaker, stronger] = ["moreSuggestions", "fewerSuggestions"].map((command) => (
            view.editor.keys.find((key) => key.command === command).keys[0]
        ));
        this.slider = h("input", { type: "range", min: "0", max: String(MOST), step: String(STEP), id: "sl-threshold", "aria-label": "Suggestions from" });
        this.slider.title = `Show more or fewer suggestions (${keyName(weaker)} ${keyName(stronger)})`;
        this.value = h("output", { for: "sl-threshold" });
        this.count = h("span", { class: "sl-quiet sl-threshold-count" });
        this.always = h("input", { type: "checkbox", "aria-label": "% in the text" });
        this.always.checked = read(SHOWN, false) === true;
        this.node = h("div", { class: "sl-threshold" },
            h("label", { for: "sl-threshold" }, "Suggestions from"), this.slider, this.value,
            h("kbd", { "aria-hidden": "true" }, keyName(weaker)), h("kbd", { "aria-hidden": "true" }, keyName(stronger)),
            this.count, h("label", { class: "sl-always", title: "Otherwise at the span that is chosen or pointed at" },
                this.always, "% in the text"));
    }

    listen(on) {
        on(this.slider, "input", () => this.set(Number(this.slider.value)));
        on(this.node, "pointerup", () => setTimeout(() => this.view.focusAnswer(), 0));
        on(this.always, "change", () => {
            write(SHOWN, this.always.checked);
            this.paint();
        });
    }

    /** In percent. */
    get least() {
        return this.chosen[this.view.editor.navigation.place?.dataset] ?? 0;
    }

    set(percent) {
        const { editor } = this.view;
        this.chosen[editor.navigation.place.dataset] = Math.max(0, Math.min(MOST, percent));
        write(STORED, this.chosen);
        editor.refresh();
        this.view.focusChanged();
    }

    move(steps) {
        this.set(this.least + steps * STEP);
        this.view.say(`Suggestions from ${this.least} %: ${this.counted()}`);
        return true;
    }

    paint() {
        this.slider.value = String(this.least);
        this.value.textContent = `${this.least} %`;
        this.count.textContent = this.counted();
        this.view.root.classList.toggle("sl-percentages", this.always.checked);
    }

    counted() {
        const { editor } = this.view;
        return `${editor.count("open")} shown${editor.weaker ? `, ${editor.weaker} weaker hidden` : ""}`;
    }
}

function read(name, otherwise) {
    try {
        return JSON.parse(localStorage.getItem(name)) ?? otherwise;
    } catch {
        return otherwise;
    }
}

function write(name, value) {
    try {
        localStorage.setItem(name, JSON.stringify(value));
    } catch {
        // a full or forbidden storage costs the memory of this choice, nothing else
    }
}
