/** What each annotator marks of some characters, and how probable they take it for. */

import { percent, quote } from "./words.js";

const NAMED = 3; // parts of a stretch that are quoted

/**
 * The annotators of `item` who mark some of [start, end), those who mark most of it first. Each has
 * `pieces`: what they mark of it, in text order, pieces that touch and are as probable as one.
 */
export function votesOn(item, { start, end }, hidden) {
    const votes = new Map();
    for (const group of item.groups) {
        if (group.start >= end) break;
        if (group.end <= start) continue;
        for (const member of group.members) {
            if (hidden.has(member.annotator)) continue;
            const vote = votes.get(member.annotator) ?? { annotator: member.annotator, pieces: [], label: null, note: null, attributes: {} };
            vote.pieces.push(...(member.graded ?? [member]).filter((piece) => piece.start < end && piece.end > start));
            vote.label ??= member.label ?? null;
            vote.note ??= member.note ?? null;
            vote.attributes = { ...member.attributes, ...vote.attributes };
            votes.set(member.annotator, vote);
        }
    }
    for (const vote of votes.values()) {
        vote.pieces = merged(vote.pieces, item.text);
        vote.covered = vote.pieces.reduce((sum, piece) => sum + Math.min(end, piece.end) - Math.max(start, piece.start), 0);
        vote.prob = vote.pieces.reduce((most, { prob }) => Math.max(most, prob), 0);
    }
    return [...votes.values()].sort((one, two) => two.covered - one.covered || two.prob - one.prob);
}

function merged(pieces, text) {
    const all = [];
    for (const { start, end, prob } of [...pieces].sort((one, two) => one.start - two.start || one.end - two.end)) {
        const last = all.at(-1);
        const touches = last && (start <= last.end || text.slice(last.end, start) === " ");
        if (touches && last.prob === prob) last.end = Math.max(last.end, end);
        else all.push({ start, end, prob });
    }
    return all;
}

/** What an annotator marks of [start, end), in words: exactly it, all of it in a longer span, or which parts. */
export function voteWords({ pieces }, { start, end }, text) {
    const [first] = pieces;
    if (pieces.length === 1 && first.start === start && first.end === end) return `${percent(first.prob)}, same span`;
    const whole = pieces.find((piece) => piece.start <= start && piece.end >= end);
    if (whole) return `${percent(whole.prob)}, inside ${quote(text.slice(whole.start, whole.end))}`;
    const parts = pieces.toSorted((one, two) => two.prob - one.prob || one.start - two.start).slice(0, NAMED)
        .map((piece) => `${percent(piece.prob)} on ${quote(text.slice(Math.max(start, piece.start), Math.min(end, piece.end)))}`);
    const more = pieces.length - parts.length;
    return `${parts.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
