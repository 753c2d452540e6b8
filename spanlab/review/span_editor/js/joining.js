/** Fragments that touch, by one annotator, are one suggestion until the reviewer opens it. */

import { originKey } from "./operations.js";

/** Suggestions as they are shown: `members` are one annotator's each, in text order. */
export function joined(members, { opened }) {
    const byAnnotator = new Map();
    for (const member of members) {
        const before = byAnnotator.get(member.annotator);
        if (before) before.push(member);
        else byAnnotator.set(member.annotator, [member]);
    }
    return [...byAnnotator.values()].flatMap((own) => joinedBy(own, (one, two) => mayJoin(one, two, opened)));
}

function joinedBy(members, mayBeOne) {
    const runs = [];
    for (const member of members) {
        const run = runs.at(-1);
        if (run && mayBeOne(run.at(-1), member)) run.push(member);
        else runs.push([member]);
    }
    return runs.map(together);
}

/** Python says what may be one, see Suggestion; here, neither has a comment or was opened. */
function mayJoin(one, two, opened) {
    return two.joins === one.to
        && !one.comment && !two.comment
        && !opened.has(memberKey(one)) && !opened.has(memberKey(two));
}

/** One suggestion for a run of fragments; it is likely if all of them are. */
function together(parts) {
    if (parts.length === 1) return parts[0];
    const [first, last] = [parts[0], parts.at(-1)];
    return {
        ...first, to: last.to, end: last.end, parts,
        prob: parts.reduce((most, part) => Math.max(most, part.prob), 0),
        likely: parts.every((part) => part.likely),
        note: notesOf(parts), evidence: parts.flatMap((part) => part.evidence ?? []),
    };
}

const NOTES = 3;

function notesOf(parts) {
    const notes = [...new Set(parts.map((part) => part.note).filter(Boolean))];
    const more = notes.length > NOTES ? [`and ${notes.length - NOTES} more`] : [];
    return [...notes.slice(0, NOTES), ...more].join("; ") || null;
}

/** What of an open suggestion is likely, as one of its annotators decided, and what is not. */
export function byLikelihood(mark) {
    if (mark.members.some(isLikely)) return { likely: [mark], rest: [] };
    const mixed = mark.members.find((member) => member.parts?.some(isLikely));
    if (!mixed) return { likely: [], rest: [mark] };
    const runs = joinedBy(mixed.parts, (one, two) => one.likely === two.likely);
    const pieces = runs.map((run) => ({
        start: run.start, end: run.end, prob: run.prob, likely: run.likely, text: mark.text.slice(run.start - mark.start, run.end - mark.start),
        best: bestOf(run, run.evidence ?? []),
    }));
    return { likely: pieces.filter(isLikely), rest: pieces.filter((piece) => !isLikely(piece)) };
}

/** Whether its annotator takes all of a suggestion for hallucinated: Python says so, see Suggestion. */
export function isLikely({ likely }) {
    return likely;
}

/** A member as an operation names it. */
export function bestOf(member, evidence) {
    return {
        source: member.annotator, start: member.from, end: member.to, prob: member.prob,
        label: member.label ?? null, evidence: distinct(evidence), attributes: member.attributes ?? {},
    };
}

export function memberKey(member) {
    return originKey({ source: member.annotator, start: member.from, end: member.to, label: member.label });
}

export function distinct(quotes) {
    return [...new Map(quotes.map((quote) => [`${quote.passage} ${quote.start} ${quote.end}`, quote])).values()];
}
