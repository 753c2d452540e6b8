/** The claims of an item: what annotators suggest, and what the reviewer made of it. */

import { claimKey } from "./claim_operations.js";

/**
 * One row for each claim, in the order of the answer. `members` are the annotators that suggest it,
 * `best` the one whose verdict most of them give, `own` the reviewer's claim with its id.
 */
export function rowsOf(item, hidden) {
    const { state } = item.history;
    const rows = new Map();
    for (const { name, kind, claims } of item.payload.annotators) {
        if (hidden.has(name)) continue;
        claims.forEach((claim, index) => {
            const key = claimKey({ ...claim, suggested_by: null });
            if (!rows.has(key)) rows.set(key, rowOf(claim));
            rows.get(key).members.push({ ...claim, annotator: name, kind, index, suggested_by: name, voters: [] });
        });
    }
    for (const row of rows.values()) row.best = bestOf(row.members);
    for (const [id, claim] of state.claims) {
        const key = claimKey({ ...claim, suggested_by: null });
        const row = claim.suggested_by ? rows.get(key) : null;
        if (row && !row.own) row.own = { ...claim, id };
        else rows.set(`own ${id}`, { ...rowOf(claim), own: { ...claim, id } });
    }
    for (const claim of state.rejectedClaims) {
        const key = claimKey({ ...claim, suggested_by: null });
        if (!rows.has(key)) rows.set(key, { ...rowOf(claim), best: claim });
        rows.get(key).rejected = true;
    }
    return [...rows].map(([key, row]) => ({ ...row, key, kind: kindOf(row) })).sort(byPlace);
}

function rowOf({ text, source }) {
    return { text, source, members: [], best: null, own: null, rejected: false };
}

function kindOf({ own, rejected }) {
    if (own) return "own";
    return rejected ? "rejected" : "open";
}

/** The first of those whose verdict most annotators give. */
function bestOf(members) {
    const votes = (verdict) => members.filter((one) => one.verdict === verdict).length;
    return members.reduce((best, one) => (votes(one.verdict) > votes(best.verdict) ? one : best));
}

/** How an operation names what an annotator suggests. */
export function markOf({ suggested_by: by, text, source, verdict, prob, evidence, error_stages: stages, voters = [] }) {
    return { suggested_by: by, text, source, verdict, prob, evidence, error_stages: stages, voters };
}

/** Whose trace tells how the verdict on a row came about; null if nobody's does. */
export function tellerOf(row, annotators) {
    const tells = new Set(annotators.filter(({ steps }) => steps > 0).map(({ name }) => name));
    const members = [row.best, ...row.members].filter((member) => member?.annotator);
    return members.find(({ annotator }) => tells.has(annotator)) ?? null;
}

function byPlace(one, two) {
    const start = ({ source }) => source?.start ?? Infinity;
    return start(one) === start(two) ? 0 : start(one) - start(two);
}
