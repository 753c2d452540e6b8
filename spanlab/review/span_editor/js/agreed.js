/** What several annotators mark in common, as suggestions that name those who do. Code points. */

import { distinct } from "./joining.js";

/** A suggestion that is one annotator's own span. */
export function soleSource(source, { start, end, prob, label, evidence, attributes }) {
    return { source, start, end, prob, label: label ?? null, voters: [], evidence: evidence ?? [], attributes: attributes ?? {} };
}

/**
 * The longest stretches of the answer of which each character is marked by at least `least` of
 * `voters`, without white space at their ends.
 */
export function agreed(text, voters, least, source) {
    const marked = voters.map(({ name, spans }) => ({ name, spans, merged: merge(spans) }));
    const steps = marked.flatMap(({ merged }) => merged.flatMap(({ start, end }) => [[start, 1], [end, -1]]))
        .sort(([one, up], [two, down]) => one - two || down - up);
    const found = [];
    let depth = 0;
    let from = null;
    for (const [at, by] of steps) {
        depth += by;
        if (depth >= least) from ??= at;
        else if (from !== null) {
            found.push({ start: from, end: at });
            from = null;
        }
    }
    return found.map((part) => trimmed(text, part)).filter(Boolean).map((part) => mark(part, marked, source));
}

function merge(spans) {
    const merged = [];
    for (const { start, end } of [...spans].sort((one, two) => one.start - two.start)) {
        const last = merged.at(-1);
        if (last && start <= last.end) last.end = Math.max(last.end, end);
        else merged.push({ start, end });
    }
    return merged;
}

function trimmed(text, { start, end }) {
    const units = text.trimmed(text.unit(start), text.unit(end));
    return units && { start: text.point(units.start), end: text.point(units.end) };
}

/** A stretch with those who mark some of it; its label is what more than half of them say. */
function mark({ start, end }, marked, source) {
    const over = ({ spans }) => spans.filter((span) => span.start < end && span.end > start);
    const voters = marked.filter((one) => over(one).length > 0);
    const spans = voters.flatMap(over);
    const counts = new Map();
    for (const voter of voters) {
        for (const label of new Set(over(voter).map((span) => span.label ?? null))) counts.set(label, (counts.get(label) ?? 0) + 1);
    }
    const [label] = [...counts].find(([, count]) => count > voters.length / 2) ?? [null];
    return {
        source, start, end, prob: 1, label, voters: voters.map(({ name }) => name),
        evidence: distinct(spans.flatMap((span) => span.evidence ?? [])),
    };
}
