/** What is to be seen of an item: the reviewer's spans, open and rejected suggestions. */

import { originKey } from "./operations.js";

/** What is to be seen: own spans, open and rejected suggestions, by id, in text order. */
export function marksOf(item, hidden) {
    const { state } = item.history;
    const marks = [];
    const taken = new Set();
    for (const [id, span] of state.spans) {
        if (span.origin) taken.add(span.origin.key);
        marks.push(ownMark(item, id, span));
    }
    const refused = new Map(state.rejected.map((span) => [originKey(span), span]));
    const noted = new Map(state.noted.map((span) => [placeKey(span.start, span.end), span]));
    for (const group of item.groups) {
        const members = hidden.size ? group.members.filter((member) => !hidden.has(member.annotator)) : group.members;
        const keys = group.members.map((member) => memberKey(member));
        const gone = keys.filter((key) => refused.has(key));
        const comment = (gone.map((key) => refused.get(key)).find((span) => span.note) ?? noted.get(group.key))?.note;
        for (const key of gone) refused.delete(key);
        noted.delete(group.key);
        if (members.length === 0 || keys.some((key) => taken.has(key))) continue;
        marks.push(groupMark(group, members, { kind: gone.length > 0 ? "rejected" : "open", comment }));
    }
    for (const span of refused.values()) marks.push(strangerMark(item, span, "rejected"));
    for (const span of noted.values()) marks.push(strangerMark(item, span, "open"));
    marks.sort(byPlace);
    return new Map(marks.map((mark) => [mark.id, mark]));
}

function ownMark(item, id, span) {
    const [start, end] = [item.text.unit(span.start), item.text.unit(span.end)];
    return {
        id: `own:${id}`, kind: "own", span: id, start, end, text: item.text.slice(start, end),
        prob: 1, label: span.label ?? null, note: span.note ?? null, comment: span.note ?? null, members: [],
        origin: span.origin?.mark ?? null, evidence: span.evidence ?? [],
        edited: span.origin ? span.origin.key !== originKey(span) : false,
    };
}

function groupMark(group, members, { kind, comment }) {
    const [top] = members;
    return {
        id: `sug:${group.key}`, kind, start: group.start, end: group.end, text: group.text,
        prob: top.prob, label: members.find((member) => member.label)?.label ?? null,
        note: comment ?? members.find((member) => member.note)?.note ?? null, comment: comment ?? null, members,
        evidence: members.flatMap((member) => member.evidence ?? []),
        likely: members.some((member) => member.likely),
        best: {
            source: top.annotator, start: group.from, end: group.to, prob: top.prob, label: top.label ?? null,
            evidence: distinct(members.flatMap((member) => member.evidence ?? [])),
        },
    };
}

/** A decided or noted suggestion that nobody makes any more. */
function strangerMark(item, span, kind) {
    const [start, end] = [item.text.unit(span.start), item.text.unit(span.end)];
    return {
        id: `${kind}:${originKey(span)}`, kind, start, end, text: item.text.slice(start, end),
        prob: span.prob, label: span.label ?? null, note: span.note ?? null, comment: span.note ?? null, members: [],
        evidence: span.evidence ?? [],
        best: {
            source: span.source ?? "unknown", start: span.start, end: span.end, prob: span.prob,
            label: span.label ?? null, evidence: span.evidence ?? [],
        },
    };
}

/** A name for characters; groups of suggestions have it as their key. */
export function placeKey(start, end) {
    return `${start}-${end}`;
}

function memberKey(member) {
    return originKey({ ...member, source: member.annotator });
}

export function byPlace(one, two) {
    return one.start - two.start || one.end - two.end;
}

export function distinct(quotes) {
    return [...new Map(quotes.map((quote) => [`${quote.passage} ${quote.start} ${quote.end}`, quote])).values()];
}
