/** The commands of claims; keys.py says what each does and by which key. */

import { markOf } from "./claims.js";
import { newId } from "./ids.js";
import { VERDICTS } from "./verdicts.js";
import { quote } from "./words.js";

const NONE = "Choose a claim first.";

export const CLAIM_COMMANDS = {
    claims: (editor) => editor.view.claims.toggle(),
    nextClaim: (editor) => editor.view.claims.step(1),
    previousClaim: (editor) => editor.view.claims.step(-1),
    acceptClaim: (editor) => {
        const { row } = editor.view.claims;
        if (!row?.best) return editor.view.say(row ? "This claim is yours." : NONE, true);
        return decide(editor, { kind: "accept-claim", claim: row.own?.id ?? newId(), mark: markOf(row.best) }, "Accepted");
    },
    rejectClaim: (editor) => {
        const { row } = editor.view.claims;
        if (row && !row.best) return CLAIM_COMMANDS.removeClaim(editor);
        if (!row) return editor.view.say(NONE, true);
        return decide(editor, { kind: "reject-claim", mark: markOf(row.own?.suggested_by ? taken(row) : row.best) }, "Rejected");
    },
    judgeClaim: (editor, event, key) => {
        const { row } = editor.view.claims;
        const verdict = Object.keys(VERDICTS)[Number(key) - 1];
        if (!row) return editor.view.say(NONE, true);
        if (row.own && !row.own.suggested_by) return decide(editor, edit(row.own, { verdict }), VERDICTS[verdict][1]);
        const mark = markOf(row.members.find((member) => member.verdict === verdict) ?? (row.own ? taken(row) : row.best));
        const note = row.own?.note;
        const id = row.own?.id ?? newId();
        if (note) return decide(editor, edit(row.own, { verdict }), VERDICTS[verdict][1]);
        return decide(editor, { kind: "accept-claim", claim: id, mark, verdict }, VERDICTS[verdict][1]);
    },
    removeClaim: (editor) => {
        const { row } = editor.view.claims;
        if (!row?.own) return editor.view.say("Only a claim of yours can be removed; x rejects a suggestion.", true);
        return decide(editor, { kind: "remove-claim", claim: row.own.id }, "Removed");
    },
    commentClaim: (editor) => {
        const { own } = editor.view.claims.row ?? {};
        if (!own) return editor.view.say("Give your verdict first.", true);
        return ask(editor, "Why this verdict", own.note, (note) => editor.apply(edit(own, { note })));
    },
    rewordClaim: (editor) => {
        const { own } = editor.view.claims.row ?? {};
        if (!own || own.suggested_by) return editor.view.say("Only a claim that you wrote can be reworded.", true);
        return ask(editor, "What the claim says", own.text, (text) => text && editor.apply(edit(own, { text })));
    },
    writeClaim: (editor) => {
        const source = sourceOf(editor);
        const text = source ? editor.item.text.slice(editor.item.text.unit(source.start), editor.item.text.unit(source.end)) : "";
        return ask(editor, "What the claim says", text, (typed) => {
            const claim = newId();
            if (!typed || !editor.apply({ kind: "add-claim", claim, text: typed, source })) return;
            editor.selection.drop();
            editor.view.flush();
            editor.view.claims.choose(`own ${claim}`);
        });
    },
    claimTrail: (editor) => editor.view.claims.card.trail.enter(),
    takeClaimsOf: (editor, event, key) => editor.view.claims.lanes.take(Number(key)),
    takeMajorityOfClaims: (editor) => editor.view.claims.lanes.takeMajority(),
    takeUnionOfClaims: (editor) => editor.view.claims.lanes.takeUnion(),
    takeNoClaims: (editor) => editor.view.claims.lanes.replace([], "Nothing taken"),
    leaveClaims: (editor) => editor.view.claims.leave(),
};

/** Apply a decision on the chosen claim, and go on to the next open one. */
function decide(editor, operation, done) {
    const { claims } = editor.view;
    const { text } = claims.row;
    if (!editor.apply(operation)) return true;
    editor.view.flush();
    if (claims.row?.kind !== "open") claims.toNextOpen();
    return editor.view.say(`${done}: ${quote(text)}`);
}

function edit(own, change) {
    return { kind: "edit-claim", claim: own.id, text: own.text, verdict: own.verdict, note: own.note ?? "", ...change };
}

/** The suggestion that the reviewer took over. */
function taken({ own, members }) {
    return members.find((member) => member.annotator === own.suggested_by) ?? own;
}

/** The words of the answer that a claim of one's own is about: what is selected, else the span in focus. */
function sourceOf({ item, selection, focused }) {
    const range = selection.range ?? focused;
    return range ? { start: item.text.point(range.start), end: item.text.point(range.end) } : null;
}

/** Ask for a line of text; then the list has the focus again. */
function ask(editor, title, before, keep) {
    return editor.view.prompt.ask(title, before ?? "", (typed) => {
        keep(typed.trim());
        editor.view.panel.choose("claims");
        editor.view.claims.list.focus({ preventScroll: true });
        editor.view.focusChanged();
    });
}
