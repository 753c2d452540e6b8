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
        this.opened = new Map(); // fragments that are shown by themselves, each with those that it was one with
    }

    /** An annotator's spans; `from` and `to` are code points, `start` and `end` UTF-16 units. */
    members({ name, kind, decided, spans }) {
        return spans.map((span) => ({
            ...span, annotator: name, kind, decided, from: span.start, to: span.end,
            start: this.text.unit(span.start), end: this.text.unit(span.end),
        }));
    }

    /** Annotators whose spans overlap [start, end), with the share of it that they cover. */
    votes(start, end, hidden) {
        const votes = new Map();
        for (const group of this.groups) {
            if (group.start >= end) break;
            if (group.end <= start) continue;
            const covered = Math.min(end, group.end) - Math.max(start, group.start);
            for (const member of group.members) {
                if (hidden.has(member.annotator)) continue;
                const vote = votes.get(member.annotator)
                    ?? { annotator: member.annotator, prob: 0, covered: 0, exact: false, label: null, note: null };
                vote.prob = Math.max(vote.prob, member.prob);
                vote.covered += covered;
                vote.exact ||= group.start === start && group.end === end;
                vote.label ??= member.label ?? null;
                vote.note ??= member.note ?? null;
                votes.set(member.annotator, vote);
            }
        }
        for (const vote of votes.values()) vote.covered = Math.min(1, vote.covered / (end - start));
        return [...votes.values()].sort((one, two) => two.covered - one.covered || two.prob - one.prob);
    }
}
