/** Done: what becomes of suggestions that the reviewer has not decided, and how to take it back. */

import { newId } from "./ids.js";
import { byLikelihood } from "./joining.js";
import { missing } from "./questions.js";
import { plural } from "./words.js";

const NAMED = 3; // responses that are missing, told by name

/** Finishes items the way the dataset's setting says. */
export class Finishing {
    constructor(editor) {
        this.editor = editor;
        this.rule = "rejected"; // or "likely", or "ask": see Undecided in Python
        this.wanted = null; // the item on which Done is to be taken back once it is shown
    }

    /** Finish the item; `rule` says what becomes of suggestions that are shown and not decided. */
    finish(status, rule = this.rule) {
        // who adjudicates decides on what there is to be, not on every suggestion
        const open = status === "done" && !this.editor.adjudicating ? this.editor.open() : [];
        if (open.length > 0 && rule === "ask") return this.ask(open);
        return this.conclude(status, open, rule);
    }

    /** Finish the item as hallucinated; that says nothing of the place, so suggestions stay undecided. */
    callHallucinated() {
        return this.conclude("done", [], this.rule, { calls: true });
    }

    ask(open) {
        const likely = this.editor.likely().length;
        const answer = (rule) => () => {
            this.editor.view.notice.hide();
            this.conclude("done", this.editor.open(), rule);
        };
        const choices = [{ name: "Reject", key: "r", act: answer("rejected") }];
        if (likely > 0) choices.push({ name: `Accept ${likely} likely`, key: "l", act: answer("likely") });
        choices.push({ name: "Back to the item", key: "Escape", act: () => this.editor.view.notice.hide() });
        return this.editor.view.notice.show(`What should happen to ${plural(open.length, "undecided suggestion")}?`, choices, { asks: true });
    }

    /**
     * Say whether Done may be: what is required has its responses, or whoever leads lets it lack them and
     * the reviewer wants that. Else say what is missing and lead there.
     */
    isAnswered(accepted, goOn) {
        const { view, asked } = this.editor;
        const open = missing(this.editor, accepted);
        if (open.length === 0) return true;
        const more = open.length > NAMED ? ` and ${open.length - NAMED} more` : "";
        const words = `${open.slice(0, NAMED).map((one) => one.words).join(", ")}${more}`;
        if (asked.unanswered === "told") {
            const choice = (act) => () => {
                view.notice.hide();
                act();
            };
            const choices = [{ name: "Finish anyway", key: "d", act: choice(goOn) }, { name: "Respond now", key: "Escape", act: choice(() => this.lead(open[0])) }];
            return !view.notice.show(`No response to ${words}.`, choices, { asks: true });
        }
        this.lead(open[0]);
        return !view.say(`Cannot finish: ${words} needs a response.`, true);
    }

    /** Go to a question that lacks its response. */
    lead({ question, mark, form }) {
        if (mark) this.editor.focusOn(mark);
        this.editor.view.flush();
        form.toggle(question.name);
    }

    conclude(status, open, rule, { anyway = false, calls = false } = {}) {
        const { editor } = this;
        const { item, view } = editor;
        const { accepted, rejected: refused } = (RULES[rule] ?? RULES.rejected)(open); // "ask" has nothing to ask here
        // Who marked the same words themselves has not judged that nothing is wrong with them.
        const own = [...item.history.state.spans.values()];
        const rejected = refused.filter(({ best }) => !own.some((span) => span.start < best.end && best.start < span.end));
        if (status === "done" && !editor.labels.areGiven(accepted)) return;
        if (status === "done" && !anyway && !this.isAnswered(accepted, () => this.conclude(status, open, rule, { anyway: true, calls }))) return;
        const marks = (chosen) => chosen.map((mark) => mark.best);
        const decides = accepted.length + rejected.length > 0;
        const suggested = item.payload.annotators.length > 0; // whether others' marks stood beside the answer
        const hallucinated = calls && own.length === 0 ? true : null; // spans say so themselves
        const op = decides
            ? { kind: "finish", spans: accepted.map(newId), accepted: marks(accepted), rejected: marks(rejected), suggested }
            : { kind: "status", status, suggested, hallucinated };
        view.notice.hide();
        const { state } = item.history;
        const changes = decides || state.status !== status || state.hallucinated !== hallucinated;
        if (changes && !editor.apply(op)) return;
        view.say(hallucinated ? "Done: hallucinated, no place marked." : status === "done" ? "Done." : "Skipped.");
        editor.navigation.go(1);
        if (op.kind !== "finish") return;
        const undo = { name: "Undo", key: "z", act: () => this.takeBack(item.id) };
        view.notice.show(`Item ${item.id}: ${countedWords(op)}.`, [undo]);
    }

    /** Return to before Done: the item opens, not done, with its suggestions undecided. */
    takeBack(id) {
        const { navigation, view } = this.editor;
        view.notice.hide();
        this.wanted = id;
        if (navigation.at === id) return this.shown();
        if (navigation.trail.at(-1) === id) navigation.trail.pop();
        return navigation.turnTo(id);
    }

    /** An item is shown: take Done back if it is the one. */
    shown() {
        const { item, view } = this.editor;
        if (item?.id !== this.wanted) return;
        this.wanted = null;
        if (item.history.edits.at(-1)?.kind !== "finish") {
            view.say("The item was changed after Done: undo step by step (u).", true);
            return;
        }
        this.editor.apply({ kind: "undo" });
        view.focusChanged({ scroll: true });
        view.say("Done was undone: the suggestions are undecided again.", true);
    }
}

/** What becomes of open suggestions. */
const RULES = {
    all: (open) => ({ accepted: open, rejected: [] }),
    rejected: (open) => ({ accepted: [], rejected: open }),
    likely: (open) => {
        const split = open.map(byLikelihood);
        return { accepted: split.flatMap(({ likely }) => likely), rejected: split.flatMap(({ rest }) => rest) };
    },
};

/** How many undecided suggestions a finish counted how. */
export function countedWords({ accepted, rejected }) {
    const all = plural(accepted.length + rejected.length, "undecided suggestion");
    if (accepted.length === 0) return `${all} counted as rejected`;
    if (rejected.length === 0) return `${all} counted as accepted`;
    return `${all}: ${accepted.length} counted as accepted, ${rejected.length} as rejected`;
}
