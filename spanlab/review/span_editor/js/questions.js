/** What the dataset asks: of the chosen span, in its card, and of the whole answer, in a tab. */

import { h, pressable } from "./dom.js";
import { quote, shorten } from "./words.js";

const MOST = 12; // options that have buttons; of more, one is found by its name

export const QUESTION_COMMANDS = {
    attributes: (editor) => editor.view.attributes.toggle(),
    questions: (editor) => editor.view.questions.toggle(),
    nextQuestion: (editor) => formOf(editor).step(1),
    previousQuestion: (editor) => formOf(editor).step(-1),
    respond: (editor, event, key) => formOf(editor).take(key),
    findResponse: (editor) => formOf(editor)?.ask() ?? editor.view.say("Choose a question first.", true),
    clearResponse: (editor) => formOf(editor).respond(null),
    leaveQuestions: (editor) => formOf(editor).leave(),
};

/** Whose questions a form has, what is responded to them, and which span (null: none) it is about. */
export const OF_SPAN = {
    name: "Attributes of the span", key: "q", tab: "spans", nothing: "This dataset asks nothing of this span.",
    asked: ({ asked, focused }) => (focused ? asked.attributes.filter((one) => isAskedOf(one, focused.label)) : []),
    responses: ({ focused }) => focused?.attributes ?? {},
    others: () => [],
    own: (editor) => editor.own(),
};
export const OF_ANSWER = {
    name: "Questions on the answer", key: "Q", tab: "questions", nothing: "This dataset asks nothing of the whole answer.",
    asked: ({ asked }) => asked.questions,
    responses: ({ item }) => item?.history.state.responses ?? {},
    others: (editor) => {
        const hidden = editor.hidden();
        return editor.names.ordered(editor.item.payload.annotators).filter(({ name }) => !hidden.has(name));
    },
    own: () => null,
};

/** Questions one below the other; the keys go to the current one while the focus is in here. */
export class QuestionForm {
    constructor(view, about) {
        this.view = view;
        this.about = about;
        this.at = 0;
        this.node = h("div", { class: "sl-questions", role: "group", tabindex: "0", "aria-label": about.name, hidden: "" });
    }

    get editor() {
        return this.view.editor;
    }

    get hasFocus() {
        return this.node.contains(document.activeElement);
    }

    get responses() {
        return this.about.responses(this.editor);
    }

    /** Go to the first open question (or the one named), or from in here back to the answer. */
    toggle(name = null) {
        if (this.hasFocus && name === null) return this.leave();
        if (this.about === OF_SPAN && !this.editor.focused) return this.view.say("Choose a span first.", true);
        const asked = this.about.asked(this.editor);
        if (asked.length === 0) return this.view.say(this.about.nothing, true);
        if (!this.node.checkVisibility()) this.view.panel.choose(this.about.tab);
        this.paint();
        const open = asked.findIndex((one) => (name ? one.name === name : responseTo(this.responses, one) === null));
        this.node.focus({ preventScroll: true });
        return this.go(Math.max(0, open));
    }

    leave() {
        this.view.focusAnswer();
        this.paint();
        return true;
    }

    step(by) {
        const { length } = this.questions;
        return this.go((this.at + by + length) % length);
    }

    go(at) {
        this.at = at;
        this.paint();
        this.node.children[at]?.scrollIntoView({ block: "nearest" });
        return this.view.say(this.described(this.questions[at]));
    }

    /** Respond with the option or value that has this digit. */
    take(digit) {
        const found = optionsOf(this.questions[this.at]).find(({ key }) => key === digit);
        return found ? this.respond(found.response) : this.view.say(`Nothing here has the key ${digit}.`, true);
    }

    /** Ask for a text, or for an option by a part of its name. */
    ask() {
        const question = this.questions[this.at];
        const { prompt, chooser } = this.view;
        const keep = (response) => {
            this.toggle(question.name);
            this.respond(response);
        };
        if (question.kind === "text") {
            const before = responseTo(this.responses, question) ?? "";
            return prompt.ask(titleOf(question), before, (typed) => keep(typed.trim() || null));
        }
        const all = optionsOf(question);
        const choose = (name) => keep(all.find((one) => one.name === name).response);
        return chooser.open({ noun: "option", all, draw: ({ name }) => [name], choose });
    }

    /** Respond to the current question, or with null take that back; then comes the next one. */
    respond(response) {
        const question = this.questions[this.at];
        if (response === null && responseTo(this.responses, question) === null) return this.view.say("There is no response here.", true);
        const span = this.about.own(this.editor);
        if (span === null && this.about === OF_SPAN) return true;
        if (!this.editor.apply({ kind: "respond", span, question: question.name, response })) return true;
        this.view.focusChanged({ scroll: false });
        this.view.flush();
        if (response === null) return this.view.say(`${titleOf(question)}: nothing.`);
        if (this.at + 1 < this.questions.length) this.go(this.at + 1);
        else this.leave();
        return this.view.say(`${titleOf(question)}: ${response}.`);
    }

    // -- painting

    paint(hasFocus = this.hasFocus) {
        this.questions = this.about.asked(this.editor);
        this.node.hidden = this.questions.length === 0;
        this.at = Math.max(0, Math.min(this.at, this.questions.length - 1));
        const others = this.about.others(this.editor);
        this.node.replaceChildren(...this.questions.map((question, index) => this.row(question, index, others)));
        if (hasFocus) this.node.focus({ preventScroll: true });
    }

    /** How many have no response. */
    count() {
        return this.about.asked(this.editor).filter((one) => responseTo(this.responses, one) === null).length;
    }

    row(question, index, others) {
        const given = responseTo(this.responses, question);
        const options = optionsOf(question);
        const said = others.map((one) => [one, responseTo(one.responses, question)]).filter(([, response]) => response !== null);
        const press = (act) => () => {
            this.at = index;
            act();
        };
        const button = (name, key, act) => pressable(h("button", { class: "sl-button", type: "button" }, h("span", {}, name), key && key !== name ? h("kbd", { "aria-hidden": "true" }, key) : ""), press(act));
        const node = h("div", { class: `sl-question-row ${index === this.at ? "sl-current" : ""}`, role: "group", "aria-label": this.described(question) },
            index === 0 && !this.hasFocus ? h("kbd", { "aria-hidden": "true" }, this.about.key) : "",
            h("span", { class: "sl-question-title", dir: "auto" }, titleOf(question), question.required ? h("small", {}, " required") : ""),
            question.low_title ? h("small", {}, question.low_title) : "");
        if (question.kind !== "text" && options.length <= MOST) {
            node.append(...options.map(({ name, key, response }) => {
                const one = button(name, key, () => this.respond(response === given ? null : response));
                one.setAttribute("aria-pressed", String(response === given));
                one.classList.toggle("sl-chosen", response === given);
                return one;
            }), question.high_title ? h("small", {}, question.high_title) : "");
        } else {
            node.append(given === null ? "" : h("span", { dir: "auto" }, shorten(String(given), 120)), button(question.kind === "text" ? "Write" : "Choose", "↵", () => this.ask()));
        }
        if (said.length > 0) node.append(h("small", { class: "sl-quiet", dir: "auto" }, said.map(([one, response]) => `${this.editor.names.of(one.name)}: ${shorten(String(response), 60)}`).join(" · ")));
        return node;
    }

    described(question) {
        const given = responseTo(this.responses, question);
        return `${titleOf(question)}${question.required ? ", required" : ""}: ${given ?? "no response"}`;
    }
}

function formOf({ view }) {
    return [view.attributes, view.questions].find((form) => form.hasFocus);
}

/** What is required and lacks a response: on own spans, on suggestions that are about to be accepted, on the answer. */
export function missing(editor, accepted) {
    const { attributes, questions } = editor.asked;
    const lacks = (responses) => (one) => one.required && responseTo(responses, one) === null;
    const own = [...editor.marks.values()].filter((mark) => mark.kind === "own");
    const pieces = accepted.map((piece) => ({ ...piece, label: piece.best.label, attributes: piece.best.attributes }));
    const ofSpans = [...own, ...pieces].flatMap(({ id, text, label, attributes: given }) => (
        attributes.filter((one) => isAskedOf(one, label)).filter(lacks(given)).map((question) => ({
            question, mark: id ?? null, form: editor.view.attributes, words: `${titleOf(question)} of ${quote(text)}`,
        }))
    ));
    const whole = questions.filter(lacks(OF_ANSWER.responses(editor)));
    return [...ofSpans, ...whole.map((question) => ({ question, form: editor.view.questions, words: titleOf(question) }))];
}

function isAskedOf({ labels }, label) {
    return labels.length === 0 || labels.includes(label);
}

function titleOf({ title, name }) {
    return title || name;
}

/** What is responded to a question; what it does not allow, such as an option that is gone, is none. */
function responseTo(responses, question) {
    const given = responses && Object.hasOwn(responses, question.name) ? responses[question.name] : null;
    if (question.kind === "text") return typeof given === "string" ? given : null;
    return optionsOf(question).some(({ response }) => response === given) ? given : null;
}

/** What can be responded, with the digits that choose it: values of a scale are their own. */
function optionsOf({ kind, options, low, high }) {
    if (kind === "choice") return options.map((name, index) => ({ name, response: name, key: index < 9 ? String(index + 1) : null }));
    if (kind === "text") return [];
    const values = Array.from({ length: high - low + 1 }, (_, index) => low + index);
    return values.map((value) => ({ name: String(value), response: value, key: value >= 0 && value <= 9 ? String(value) : null }));
}
