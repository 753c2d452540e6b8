/** One item: its text, its suggestions, and the reviewer's log on it. */

import { History } from "./history.js";
import { grouped, placeKey } from "./marks.js";
import { Text } from "./text.js";

/** One item as it is shown: its text, its suggestions, and the reviewer's log on it. */
export class Item {
    constructor(payload) {
        this.payload = payload;
        this.id = payload.id;
        this.text = new Text(payload.answer, payload.lang);
        this.history = new History(payload.snapshot, payload.operations, this.text.points);
        const members = payload.annotators.flatMap((annotator) => this.members(annotator));
        this.groups = grouped(members, this.text);
        this.fragments = new Set(members.map(({ annotator, from, to }) => `${annotator} ${placeKey(from, to)}`));
        this.openMarks = new WeakMap(); // of suggestions by one annotator, see marks.js
        this.opened = new Map(); // fragments that are shown by themselves, each with those that it was one with
    }

    /** An annotator's spans; `from` and `to` are code points, `start` and `end` UTF-16 units. */
    members({ name, kind, spans }) {
        return spans.map((span) => ({
            ...span, annotator: name, kind, from: span.start, to: span.end, ...this.units(span),
            ...(span.graded && { graded: span.graded.map((piece) => ({ ...piece, ...this.units(piece) })) }),
        }));
    }

    units({ start, end }) {
        return { start: this.text.unit(start), end: this.text.unit(end) };
    }
}
