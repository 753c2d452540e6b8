/** Whose suggestions are shown. */

const STORED = "spanlab.shown";

/** The reviewer's choice, which this browser remembers. */
export class Visibility {
    constructor() {
        this.chosen = new Map(Object.entries(remembered()));
    }

    /** Detectors and votes are shown, gold labels and other people are not, unless chosen. */
    shows({ name, kind }) {
        return this.chosen.get(name) ?? (kind === "detector" || kind === "vote");
    }

    /** Names of an item's annotators that are not shown. */
    hidden(item) {
        const hidden = item.payload.annotators.filter((annotator) => !this.shows(annotator));
        return new Set(hidden.map((annotator) => annotator.name));
    }

    toggle(annotator) {
        this.chosen.set(annotator.name, !this.shows(annotator));
        try {
            localStorage.setItem(STORED, JSON.stringify(Object.fromEntries(this.chosen)));
        } catch {
            // a full or forbidden storage costs the memory of this choice, nothing else
        }
    }
}

function remembered() {
    try {
        return JSON.parse(localStorage.getItem(STORED) ?? "{}");
    } catch {
        return {};
    }
}
