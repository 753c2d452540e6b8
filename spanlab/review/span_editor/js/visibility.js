/** Whose suggestions are shown. */

const STORED = "spanlab.shown";

/** The reviewer's choice, which this browser remembers. */
export class Visibility {
    constructor() {
        this.chosen = new Map(Object.entries(remembered()));
    }

    /** All that Python sends is shown, but for gold labels, unless chosen: whoever is blind gets no others. */
    shows({ name, kind }) {
        return this.chosen.get(name) ?? kind !== "gold";
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
