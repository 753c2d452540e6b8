/**
 * What each edit of a review does to its state; the mirror of spanlab/oplog. Offsets in here are
 * code points, as stored.
 */

import { CLAIM_EDITS } from "./claim_operations.js";
import { checkExtent, named } from "./extent.js";

/** A reviewer's spans and claims by id, in the order in which they were made. */
export class ReviewState {
    static of(snapshot) {
        const state = new ReviewState();
        state.spans = new Map(Object.entries(snapshot.spans).map(([id, span]) => [id, withOrigin(span)]));
        state.rejected = snapshot.rejected;
        state.noted = [];
        state.claims = new Map(Object.entries(snapshot.claims));
        state.rejectedClaims = snapshot.rejected_claims;
        state.status = snapshot.status;
        state.hallucinated = snapshot.hallucinated ?? null;
        state.note = snapshot.note ?? null;
        state.responses = snapshot.responses ?? {};
        return state;
    }

    copy() {
        const state = new ReviewState();
        state.spans = new Map(this.spans);
        state.rejected = this.rejected;
        state.noted = this.noted;
        state.claims = new Map(this.claims);
        state.rejectedClaims = this.rejectedClaims;
        state.status = this.status;
        state.hallucinated = this.hallucinated;
        state.note = this.note;
        state.responses = this.responses;
        return state;
    }
}

function withOrigin(span) {
    if (!span.source) return span;
    const mark = {
        source: span.source, start: span.start, end: span.end, prob: span.prob, label: span.label ?? null,
        voters: span.voters ?? [], evidence: span.evidence ?? [], attributes: span.attributes ?? {},
    };
    return { ...span, origin: { key: originKey(span), mark } };
}

/** What each edit does to a state; each checks before it changes anything. */
export const EDITS = {
    accept: (state, op, length) => take(state, [[op.span, op.mark]], length),
    "accept-all": (state, op, length) => {
        take(state, named(op.kind, op.spans, op.marks), length);
    },
    replace: (state, op, length) => {
        const before = state.spans;
        const taken = named(op.kind, op.spans, op.marks);
        state.spans = new Map();
        try {
            take(state, taken, length);
        } catch (error) {
            state.spans = before;
            throw error;
        }
    },
    reject: (state, { mark }, length) => refuse(state, [mark], length),
    add: (state, op, length) => {
        if (state.spans.has(op.span)) throw new Error(`span id '${op.span}' is already in use`);
        checkExtent(op.start, op.end, length);
        state.spans.set(op.span, { start: op.start, end: op.end, prob: 1, label: op.label ?? null });
    },
    remove: (state, op) => {
        ownSpan(state, op.span);
        state.spans.delete(op.span);
    },
    resize: (state, op, length) => {
        checkExtent(op.start, op.end, length);
        change(state, op.span, { start: op.start, end: op.end });
    },
    relabel: (state, op) => change(state, op.span, { label: op.label ?? null }),
    note: (state, op) => {
        const text = op.text || null;
        if (op.span === null || op.span === undefined) state.note = text;
        else change(state, op.span, { note: text });
    },
    respond: (state, { span = null, question, response = null }) => {
        const before = span === null ? state.responses : ownSpan(state, span).attributes ?? {};
        const { [question]: _, ...left } = before;
        const given = response === null ? left : { ...left, [question]: response };
        if (span === null) state.responses = given;
        else change(state, span, { attributes: given });
    },
    "note-suggestion": (state, { mark, text }, length) => {
        checkExtent(mark.start, mark.end, length);
        const note = text || null;
        if (state.rejected.some((span) => samePlace(span, mark))) {
            state.rejected = state.rejected.map((span) => (samePlace(span, mark) ? { ...span, note } : span));
            return;
        }
        const kept = without(state.noted, [mark]);
        state.noted = note ? [...kept, { ...suggested(mark), prob: mark.prob ?? 1, note }] : kept;
    },
    status: (state, op) => {
        state.status = op.status;
        state.hallucinated = op.hallucinated ?? null;
    },
    finish: (state, op, length) => {
        const taken = named(op.kind, op.spans, op.accepted);
        for (const mark of op.rejected) checkExtent(mark.start, mark.end, length);
        take(state, taken, length);
        refuse(state, op.rejected, length);
        state.status = "done";
        state.hallucinated = null;
    },
    ...CLAIM_EDITS,
};

function refuse(state, marks, length) {
    for (const mark of marks) checkExtent(mark.start, mark.end, length);
    const keys = new Set(marks.map(originKey));
    const going = [...state.spans].filter(([, span]) => keys.has(originKey(span)));
    const commented = [...going.map(([, span]) => span), ...state.noted, ...state.rejected].filter((span) => span.note);
    const refused = new Map();
    for (const mark of marks) {
        refused.delete(originKey(mark)); // named again, it stands last
        refused.set(originKey(mark), { ...suggested(mark), prob: mark.prob ?? 1, note: commentOn(mark, commented) });
    }
    for (const [id] of going) state.spans.delete(id);
    state.rejected = [...state.rejected.filter((span) => !keys.has(originKey(span))), ...refused.values()];
    state.noted = without(state.noted, marks);
}

function take(state, taken, length) {
    for (const [id, mark] of taken) {
        if (state.spans.has(id)) throw new Error(`span id '${id}' is already in use`);
        checkExtent(mark.start, mark.end, length);
    }
    const keys = new Set();
    const commented = [...state.noted, ...state.rejected].filter((span) => span.note);
    for (const [id, mark] of taken) {
        const key = originKey(mark);
        const note = commentOn(mark, commented);
        state.spans.set(id, { ...suggested(mark), note, origin: { key, mark } });
        keys.add(key);
    }
    if (state.rejected.length > 0) state.rejected = state.rejected.filter((span) => !keys.has(originKey(span)));
    if (state.noted.length > 0) state.noted = without(state.noted, taken.map(([, mark]) => mark));
}

/** The first note on the characters of a suggestion, whoever else suggests them. */
function commentOn(mark, spans) {
    return spans.find((span) => span.note && samePlace(span, mark))?.note ?? null;
}

/** The spans that do not cover exactly the characters of one of `decided`. */
function without(spans, decided) {
    return spans.filter((span) => !decided.some((mark) => samePlace(span, mark)));
}

function samePlace(one, two) {
    return one.start === two.start && one.end === two.end;
}

function suggested(mark) {
    return {
        start: mark.start, end: mark.end, prob: 1, label: mark.label ?? null, source: mark.source,
        voters: mark.voters ?? [], evidence: mark.evidence ?? [], attributes: mark.attributes ?? {},
    };
}

function change(state, id, update) {
    state.spans.set(id, { ...ownSpan(state, id), ...update });
}

function ownSpan(state, id) {
    const span = state.spans.get(id);
    if (!span) throw new Error(`there is no span with the id '${id}'`);
    return span;
}

export function originKey(span) {
    return JSON.stringify([span.source ?? null, span.start, span.end, span.label ?? null]);
}
