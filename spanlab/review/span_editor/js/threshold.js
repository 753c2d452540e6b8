/** The bar above the answer: which suggestions are shown, by how probable they are. */

import { h } from "./dom.js";
import { isLikely } from "./joining.js";
import { keyName } from "./keys.js";

const STEP = 5;
const MOST = 95;
const START = 50; // where what is likely is shown, and nothing else
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
        this.slider.title = `Show more or fewer suggestions (${keyName(weaker)} ${keyName(stronger)}). Starts with what the `
            + `detector itself marked; if it gives only probabilities, with those above ${START} %`;
        this.value = h("output", { for: "sl-threshold" });
        this.count = h("span", { class: "sl-quiet sl-threshold-count" });
        this.always = h("input", { type: "checkbox", "aria-label": "% in the text" });
        this.always.checked = read(SHOWN, false) === true;
        this.node = h("div", { class: "sl-threshold" },
            h("label", { for: "sl-threshold" }, "Suggestions"), this.slider, this.value,
            this.count, h("label", { class: "sl-always", title: "Otherwise at the span that is chosen or pointed at" },
                this.always, "% in the text"));
    }

    listen(on) {
        on(this.slider, "input", () => this.set(Number(this.slider.value)));
        on(this.node, "pointerup", () => setTimeout(() => this.view.typing.isOn || this.view.focusAnswer(), 0));
        on(this.always, "change", () => {
            write(SHOWN, this.always.checked);
            this.paint();
        });
    }

    /** In percent. */
    get least() {
        return this.chosen[this.view.editor.navigation.place?.dataset] ?? START;
    }

    /** What says whether a suggestion is shown. Up to where a dataset starts, all that are likely are. */
    filter() {
        const { least } = this;
        if (least === START) return isLikely;
        return (one) => one.prob >= least / 100 || (least < START && isLikely(one));
    }

    /** Show suggestions from so many percent on. */
    set(least) {
        const { editor } = this.view;
        const { dataset } = editor.navigation.place;
        this.chosen[dataset] = Math.max(0, Math.min(MOST, least));
        write(STORED, this.chosen);
        const before = editor.focused;
        editor.refresh();
        if (!editor.focused) editor.focus = editor.markOver(before)?.id ?? editor.firstMark();
        this.view.focusChanged();
    }

    move(steps) {
        this.set(this.least + steps * STEP);
        this.view.say(`Suggestions: ${this.named}: ${this.counted}`);
        return true;
    }

    paint() {
        this.node.hidden = this.view.editor.item.groups.length === 0;
        this.slider.value = String(this.least);
        this.slider.setAttribute("aria-valuetext", this.named);
        this.value.textContent = this.named;
        this.count.textContent = this.counted;
        this.view.root.classList.toggle("sl-percentages", this.always.checked);
    }

    get named() {
        return this.least === START ? "likely only" : `${this.least} % and above`;
    }

    get counted() {
        const { weaker } = this.view.editor;
        return `${this.view.editor.count("open")} shown${weaker ? `, ${weaker} weaker hidden` : ""}`;
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
