/** What each edit of claims does to a review's state; the mirror of spanlab/oplog/_claims.py. */

import { checkExtent, named } from "./extent.js";

export const CLAIM_EDITS = {
    "accept-claim": (state, { claim, mark, verdict }, length) => {
        checkSource(mark, length);
        const taken = { ...mark, prob: null, note: null };
        checkFree(new Map([...state.claims].filter(([, own]) => claimKey(own) !== claimKey(mark))), claim);
        drop(state, mark);
        state.claims.set(claim, judged(taken, verdict));
    },
    "replace-claims": (state, { kind, claims, marks }, length) => {
        const taken = named(kind, claims, marks);
        for (const mark of marks) checkSource(mark, length);
        state.claims = new Map();
        for (const [id, mark] of taken) {
            drop(state, mark);
            state.claims.set(id, { ...mark, prob: null, note: null });
        }
    },
    "reject-claim": (state, { mark }, length) => {
        checkSource(mark, length);
        drop(state, mark);
        state.rejectedClaims = [...state.rejectedClaims, { ...mark, note: null }];
    },
    "add-claim": (state, { claim, text, source, verdict }, length) => {
        checkSource({ source }, length);
        checkFree(state.claims, claim);
        state.claims.set(claim, {
            text, source: source ?? null, verdict: verdict ?? null, prob: null, evidence: [], note: null,
            error_stages: [], suggested_by: null, voters: [],
        });
    },
    "edit-claim": (state, { claim, text, verdict, note }) => {
        const said = { ...ownClaim(state, claim), text, note: note || null };
        state.claims.set(claim, judged(said, verdict));
    },
    "remove-claim": (state, { claim }) => {
        ownClaim(state, claim);
        state.claims.delete(claim);
    },
};

/** The claim with a verdict; what spoke for another one goes. */
function judged(claim, verdict) {
    if (!verdict || verdict === claim.verdict) return claim;
    return { ...claim, verdict, evidence: [], error_stages: [], voters: [] };
}

function drop(state, mark) {
    const key = claimKey(mark);
    for (const [id, own] of [...state.claims]) if (claimKey(own) === key) state.claims.delete(id);
    state.rejectedClaims = state.rejectedClaims.filter((claim) => claimKey(claim) !== key);
}

function checkSource({ source }, length) {
    if (source) checkExtent(source.start, source.end, length);
}

function checkFree(claims, id) {
    if (claims.has(id)) throw new Error(`claim id '${id}' is already in use`);
}

function ownClaim(state, id) {
    const claim = state.claims.get(id);
    if (!claim) throw new Error(`there is no claim with the id '${id}'`);
    return claim;
}

/** What makes two claims the same: whether it is a suggestion, whoever makes it, what it says, and where. */
export function claimKey({ suggested_by: by, text, source }) {
    return JSON.stringify([Boolean(by), text, source?.start ?? null, source?.end ?? null]);
}
