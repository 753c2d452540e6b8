/** What is to be seen of an item: the reviewer's spans, open and rejected suggestions. */

import { bestOf, joined } from "./joining.js";
import { originKey } from "./operations.js";

/**
 * What is to be seen: own spans, open and rejected suggestions, by id, in text order.
 *
 * What was decided of some characters was decided of everybody's suggestion of them. A suggestion
 * that is not decided is seen if it `isShown`, or if it has a comment; `weaker` is how many are not.
 */
export function marksOf(item, { hidden, isShown }) {
    const { state } = item.history;
    const marks = [...state.spans].map(([id, span]) => ownMark(item, id, span));
    const taken = [...state.spans.values()].filter((span) => span.origin).map((span) => span.origin.mark);
    const takenAt = new Set(taken.map(placeOf));
    const refusedAt = byPlaceOf(state.rejected);
    const noted = new Map(state.noted.map((span) => [placeOf(span), span]));
    const wholes = wholesOf(item, [...taken, ...state.rejected]);
    const loose = [];
    for (const group of item.groups) {
        const members = hidden.size ? group.members.filter((member) => !hidden.has(member.annotator)) : group.members;
        const refused = refusedAt.get(group.key);
        refusedAt.delete(group.key);
        const comment = (refused?.find((span) => span.note) ?? noted.get(group.key))?.note ?? null;
        if (refused || takenAt.has(group.key) || members.length === 0) noted.delete(group.key);
        if (members.length === 0 || takenAt.has(group.key)) continue;
        if (refused) marks.push(groupMark(group, members, { kind: "rejected", comment }));
        else for (const member of members) if (!isWithin(member, wholes)) loose.push(comment ? { ...member, comment } : member);
    }
    const seen = loose.filter((member) => isShown(member) || member.comment);
    for (const group of grouped(joined(seen, item), item.text)) {
        const comment = noted.get(group.key)?.note ?? null;
        noted.delete(group.key);
        if (takenAt.has(group.key) || refusedAt.has(group.key)) continue;
        marks.push(openMark(item, group, comment));
    }
    const rest = loose.filter((member) => !isShown(member) && !member.comment);
    const weaker = new Set(joined(rest, item).map((member) => placeKey(member.from, member.to))).size;
    for (const span of [...refusedAt.values()].flat()) marks.push(strangerMark(item, span, "rejected"));
    for (const span of noted.values()) marks.push(strangerMark(item, span, "open"));
    marks.sort(byPlace);
    return { marks: new Map(marks.map((mark) => [mark.id, mark])), weaker };
}

/** Suggestions of the same characters by several annotators, likeliest first, as one each. */
export function grouped(members, text) {
    const groups = new Map();
    for (const member of members) {
        const key = placeKey(member.from, member.to);
        let group = groups.get(key);
        if (!group) {
            group = { key, from: member.from, to: member.to, start: member.start, end: member.end, members: [] };
            group.text = text.slice(group.start, group.end);
            groups.set(key, group);
        }
        group.members.push(member);
    }
    for (const group of groups.values()) group.members.sort((one, two) => two.prob - one.prob);
    return [...groups.values()].sort(byPlace);
}

function ownMark(item, id, span) {
    const [start, end] = [item.text.unit(span.start), item.text.unit(span.end)];
    return {
        id: `own:${id}`, kind: "own", span: id, start, end, text: item.text.slice(start, end),
        prob: 1, label: span.label ?? null, note: span.note ?? null, comment: span.note ?? null, members: [],
        origin: span.origin?.mark ?? null, evidence: span.evidence ?? [], attributes: span.attributes ?? {},
        edited: span.origin ? span.origin.key !== originKey(span) : false,
    };
}

/** The mark of an open suggestion: most are the same after every key, of thousands in a long answer. */
function openMark(item, group, comment) {
    const [member, ...others] = group.members;
    if (comment || others.length > 0) return groupMark(group, group.members, { kind: "open", comment });
    if (!item.openMarks.has(member)) item.openMarks.set(member, groupMark(group, [member], { kind: "open", comment: null }));
    return item.openMarks.get(member);
}

function groupMark(group, members, { kind, comment }) {
    const [top] = members;
    const evidence = members.flatMap((member) => member.evidence ?? []);
    const best = bestOf(top, evidence);
    return {
        id: `sug:${group.key}`, kind, start: group.start, end: group.end, text: group.text,
        prob: top.prob, label: members.find((member) => member.label)?.label ?? null,
        note: comment ?? members.find((member) => member.note)?.note ?? null, comment, members, evidence, best, attributes: best.attributes,
    };
}

/** A decided or noted suggestion that nobody makes any more, or that was made of several. */
function strangerMark(item, span, kind) {
    const [start, end] = [item.text.unit(span.start), item.text.unit(span.end)];
    return {
        id: `${kind}:${originKey(span)}`, kind, start, end, text: item.text.slice(start, end),
        prob: span.prob, label: span.label ?? null, note: span.note ?? null, comment: span.note ?? null, members: [],
        evidence: span.evidence ?? [], attributes: span.attributes ?? {},
        best: {
            source: span.source ?? "unknown", start: span.start, end: span.end, prob: span.prob,
            label: span.label ?? null, evidence: span.evidence ?? [], attributes: span.attributes ?? {},
        },
    };
}

/** Decisions on what was several fragments, by annotator: no fragment covers the same characters. */
function wholesOf(item, decided) {
    const wholes = new Map();
    for (const mark of decided) {
        if (!mark.source || item.fragments.has(`${mark.source} ${placeOf(mark)}`)) continue;
        wholes.set(mark.source, [...(wholes.get(mark.source) ?? []), mark]);
    }
    return wholes;
}

function isWithin(member, wholes) {
    return (wholes.get(member.annotator) ?? []).some((whole) => (
        whole.start <= member.from && member.to <= whole.end && (whole.label ?? null) === (member.label ?? null)
    ));
}

function byPlaceOf(spans) {
    const found = new Map();
    for (const span of spans) found.set(placeOf(span), [...(found.get(placeOf(span)) ?? []), span]);
    return found;
}

function placeOf(span) {
    return placeKey(span.start, span.end);
}

/** A name for characters; groups of suggestions have it as their key. */
export function placeKey(start, end) {
    return `${start}-${end}`;
}

export function byPlace(one, two) {
    return one.start - two.start || one.end - two.end;
}
