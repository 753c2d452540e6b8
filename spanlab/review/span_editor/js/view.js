/** All that can be seen. Knows the editor for what to show, changes nothing of it itself. */

import { ActionBar } from "./actions.js";
import { AnswerText } from "./answer.js";
import { Annotators } from "./annotators.js";
import { SpanCard } from "./card.js";
import { CaretMark } from "./caret.js";
import { Chooser } from "./chooser.js";
import { Citations } from "./citations.js";
import { ClaimPanel } from "./claim_panel.js";
import { h, pressable } from "./dom.js";
import { Evidence } from "./evidence.js";
import { Geometry } from "./geometry.js";
import { Guidelines } from "./guidelines.js";
import { Head } from "./head.js";
import { Hints } from "./hints.js";
import { Lanes } from "./lanes.js";
import { ELSEWHERE, ONCE, keyName, runIn, specOf } from "./keys.js";
import { Layout } from "./layout.js";
import { Notice } from "./notice.js";
import { Panel } from "./panel.js";
import { Pointer } from "./pointer.js";
import { Prompt } from "./prompt.js";
import { OF_ANSWER, OF_SPAN, QuestionForm } from "./questions.js";
import { ItemTable } from "./item_table.js";
import { KeySheet } from "./sheet.js";
import { SpanList } from "./span_list.js";
import { directionOf } from "./text.js";
import { isDark } from "./theme.js";
import { Threshold } from "./threshold.js";
import { SpanTools } from "./tools.js";
import { TracePanel } from "./trace.js";
import { Typing } from "./typing.js";

const OPENS = new Set(["attributes", "questions", "help", "trace", "findEvidence", "items", "guidelines", "findLabel", "findLane"]); // what takes the focus with it

/** The page of one editor: its parts, when they are painted, and what is said aloud. */
export class View {
    constructor(parent, editor) {
        this.editor = editor;
        this.todo = {};
        this.build(parent);
        this.listen();
    }

    build(parent) {
        this.head = new Head(this);
        this.text = new AnswerText(this);
        this.geometry = new Geometry(this);
        this.caret = new CaretMark(this);
        this.tools = new SpanTools(this);
        this.pointer = new Pointer(this);
        this.threshold = new Threshold(this);
        this.typing = new Typing(this);
        this.prompt = new Prompt(this);
        this.chooser = new Chooser(this);
        this.attributes = new QuestionForm(this, OF_SPAN);
        this.questions = new QuestionForm(this, OF_ANSWER);
        this.card = new SpanCard(this);
        this.trace = new TracePanel(this);
        this.claims = new ClaimPanel(this);
        this.citations = new Citations(this);
        this.evidence = new Evidence(this);
        this.annotators = new Annotators(this);
        this.lanes = new Lanes(this);
        this.list = new SpanList(this);
        this.sheet = new KeySheet(this);
        this.items = new ItemTable(this);
        this.guidelines = new Guidelines(this);
        this.notice = new Notice(this);
        this.hints = new Hints();
        this.actions = new ActionBar(this);
        this.question = h("div", { class: "sl-question", dir: "auto" });
        this.answer = h("div", {
            class: "sl-answer", tabindex: "0", role: "application",
            "aria-label": "Answer under review. Press question mark for the keys.",
        }, this.text.node, this.caret.node, ...this.tools.handles, this.tools.node);
        this.layout = new Layout(this);
        const spans = h("section", { class: "sl-spans" }, this.list.title, this.annotators.node, this.list.node);
        this.panel = new Panel(this, {
            evidence: { name: "Evidence", node: this.evidence.node },
            spans: { name: "Spans", node: spans, shown: () => this.list.paint() },
            claims: { name: "Claims", node: this.claims.node, shown: () => this.editor.item && this.claims.paint() },
            questions: { name: "Questions", node: h("section", {}, this.questions.node) },
            trace: { name: "Trace", node: this.trace.node, shown: () => this.trace.shown() },
        });
        this.panel.tabs.get("questions").hidden = this.editor.asked.questions.length === 0;
        this.left = h("section", { class: "sl-left", "aria-label": "Answer" },
            h("div", { class: "sl-above" }, this.question, this.threshold.node), this.lanes.node, this.answer, this.prompt.node, this.chooser.node);
        this.main = h("div", { class: "sl-main" }, this.left, this.layout.splitter, this.panel.node);
        this.nothing = h("div", { class: "sl-nothing", role: "status", hidden: "" });
        this.live = h("div", { class: "sl-live", "aria-live": "polite", role: "status" });
        this.toast = h("div", { class: "sl-toast", "aria-hidden": "true", hidden: "" });
        this.root = h("div", { class: `sl ${this.editor.asked.attributes.length > 0 ? "sl-asks" : ""}`, "data-unsaved": "0" },
            this.head.node, this.editor.conflict.node, this.nothing, this.main, this.hints.node, this.notice.node, this.actions.node,
            this.sheet.node, this.items.node, this.guidelines.node, this.toast, this.live);
        this.panel.node.firstChild.append(this.claims.opener, h("div", { class: "sl-panel-tools" }, this.evidence.controls, this.layout.controls));
        this.layout.paint();
        parent.append(this.root);
    }

    /** A button that does what a key does, and says which key. */
    button(name, command, className = "", key = null) {
        const entry = this.editor.keys.find((one) => one.command === command);
        const shown = entry?.keys.at(key ? Number(key) - 1 : 0) ?? "";
        const does = key ? `Label the span “${name}”` : entry?.does ?? name;
        const node = h("button", {
            class: `sl-button ${className}`, type: "button", "data-command": command,
            title: `${does} (${keyName(shown)})`,
        },
            h("span", {}, name), h("kbd", { "aria-hidden": "true" }, keyName(shown)));
        return pressable(node, (event) => {
            const mouse = { key: event.detail === 0 ? "Enter" : "", target: node };
            if (command === "done") this.editor.selection.drop();
            if (this.notice.asks) return;
            this.editor.run(command, mouse, key);
            const stays = this.claims.node.contains(document.activeElement);
            if (!OPENS.has(command) && !stays && !this.prompt.isOpen && !this.notice.asks) this.focusAnswer();
        });
    }

    focusAnswer() {
        return this.answer.focus({ preventScroll: true });
    }

    unmount() {
        this.listening.abort();
        this.root.remove();
    }

    /** Fill what the window has left below whatever stands above the editor. */
    fill() {
        const top = this.root.getBoundingClientRect().top + (this.root.closest("section")?.scrollTop ?? 0);
        this.root.style.setProperty("--sl-top", `${Math.round(top)}px`);
    }

    theme(parent) {
        this.root.classList.toggle("sl-dark", isDark(parent));
        this.fill();
    }

    // -- whole item

    open(item) {
        this.fill();
        this.nothing.hidden = true;
        this.main.hidden = false;
        this.root.classList.remove("sl-opening");
        this.question.textContent = item.payload.question;
        this.question.dir = directionOf(item.payload.question);
        this.question.lang = item.payload.lang;
        this.question.hidden = !item.payload.question;
        this.answer.lang = item.payload.lang;
        this.root.dataset.item = item.id;
        const isNew = this.paintedItem !== item;
        if (isNew) {
            this.text.build(item.text);
            this.paintedItem = item;
            this.answer.scrollTop = 0;
            this.tools.hide(true);
            this.pointer.touch(null);
        }
        this.citations.build(item);
        this.evidence.build(item.payload);
        this.annotators.build(item.payload);
        this.lanes.build(item);
        this.trace.follow();
        this.claims.open(item);
        this.marksChanged();
        if (isNew) {
            this.flush(); // which tabs there are
            this.panel.open(item.payload);
        }
        this.head.paint();
        this.editor.conflict.paint();
        if (this.mayTakeFocus()) this.focusAnswer();
    }

    mayTakeFocus() {
        const active = document.activeElement;
        const isTypedInto = this.typing.isOn || active?.matches("input:not([type=range], [type=checkbox]), textarea, select");
        const elsewhere = [this.prompt, this.trace, this.items, this.evidence.search].some(({ node }) => node.contains(active));
        return !active || active === document.body || (this.root.contains(active) && !isTypedInto && !elsewhere);
    }

    opening() {
        this.root.classList.add("sl-opening");
        this.root.dataset.item = "";
        this.say("Opening the item.");
    }

    empty(message) {
        this.root.dataset.item = "";
        this.main.hidden = true;
        this.nothing.hidden = false;
        this.nothing.replaceChildren(h("p", {}, message ?? "Nothing to review here."));
        this.head.paint();
    }

    // -- something changed; all that one key changes is painted at once, when its command is over

    marksChanged() {
        this.todo.marks = true;
        this.schedule();
    }

    focusChanged({ scroll = false } = {}) {
        Object.assign(this.todo, { marks: true, focus: true, scroll: this.todo.scroll || scroll });
        this.schedule();
    }

    caretChanged({ scroll = false } = {}) {
        Object.assign(this.todo, { caret: true, scrollCaret: this.todo.scrollCaret || scroll });
        this.schedule();
    }

    schedule() {
        if (this.scheduled) return;
        this.scheduled = true;
        queueMicrotask(() => this.flush());
    }

    /** Paint what is due. To be called before positions on the screen are read. */
    flush() {
        this.scheduled = false;
        const { todo } = this;
        const { item, focused, marks, focus, selection } = this.editor;
        this.todo = {};
        if (!item) return;
        if (todo.marks) {
            this.text.paint(item.text, marks, focus);
            this.citations.paint();
            this.threshold.paint();
            this.list.show([...marks.values()], focus);
            this.claims.paint();
            this.questions.paint();
            this.panel.count("questions", this.questions.count());
            this.head.paint();
        }
        if (todo.focus) {
            this.card.paint();
            this.evidence.paint();
        }
        if (todo.scroll && focused) this.geometry.scrollTo(focused.start);
        else if (todo.scrollCaret) this.geometry.scrollTo(selection.caret, 0.15);
        if (todo.marks || todo.caret) {
            this.caret.paint();
            this.tools.placeHandles();
        }
        if (todo.focus) this.tools.place();
    }

    // -- what comes from the person

    listen() {
        this.listening = new AbortController();
        const { signal } = this.listening;
        const on = (target, type, act, options = {}) => target.addEventListener(type, act, { signal, ...options });
        this.typing.listen(on);
        on(this.root, "keydown", (event) => this.key(event));
        this.pointer.listen(on);
        this.tools.listen(on);
        this.list.listen(on);
        this.claims.listen(on);
        this.layout.listen(on);
        this.threshold.listen(on);
        this.prompt.listen(on);
        this.chooser.listen(on);
        this.sheet.listen(on);
        this.items.listen(on);
        this.guidelines.listen(on);
        on(this.answer, "focus", () => this.editor.item && this.caretChanged());
        on(this.answer, "blur", () => this.editor.item && this.caretChanged());
        on(window, "popstate", () => this.editor.navigation.follow());
        on(window, "beforeunload", () => this.editor.outbox.store());
        on(window, "resize", () => {
            this.fill();
            if (this.editor.item) this.caretChanged();
        });
    }

    key(event) {
        event.stopPropagation(); // Streamlit has letters of its own: r reruns, c clears the cache
        if (event.isComposing) return;
        const asking = [this.prompt, this.chooser, this.items].find((one) => one.node.contains(event.target));
        if (asking) return asking.key(event);
        if (["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) return undefined;
        const spec = specOf(event);
        if (this.notice.key(spec, event)) return event.preventDefault();
        const inText = event.target === this.answer;
        const inClaims = this.claims.node.contains(event.target);
        if (inClaims && !this.sheet.isOpen && this.claims.key(spec, event)) return undefined;
        const form = [this.attributes, this.questions].find(({ node }) => node.contains(event.target));
        if (form && !this.sheet.isOpen && runIn(this.editor, this.editor.questionBindings, spec, event)) return undefined;
        if (!inText && ELSEWHERE.has(event.key)) return undefined;
        if (this.sheet.isOpen && !["?", "Escape"].includes(spec)) return undefined;
        if (this.guidelines.isOpen && !["g", "Escape"].includes(spec)) return undefined;
        this.pointer.used = false;
        this.tools.hide(true);
        const leaving = this.leaving && event.key === "Tab";
        if (event.key !== "Shift") this.leaving = inText && spec === "Escape";
        if (leaving) return undefined; // Escape, then Tab: out of the text, however many spans it has
        for (const command of this.editor.bindings.get(spec) ?? []) {
            if (event.repeat && ONCE.has(command)) return event.preventDefault(); // a key held down
            if (!this.editor.run(command, event, spec.at(-1))) continue;
            event.preventDefault();
            return undefined;
        }
        return undefined;
    }

    escape() {
        const { editor } = this;
        if (this.sheet.isOpen) return this.sheet.toggle(false);
        if (this.guidelines.isOpen) return this.guidelines.toggle(false);
        if (this.trace.node.contains(document.activeElement)) return this.trace.close();
        if (editor.selection.range) return editor.selection.drop();
        if (editor.focus) return editor.focusOn(null, { scroll: false });
        return true;
    }

    /** Tell a screen reader what happened; with `loudly`, everybody. */
    say(message, loudly = false) {
        this.live.textContent = message === this.live.textContent ? `${message}\u00a0` : message;
        if (loudly) {
            this.toast.textContent = message;
            this.toast.hidden = false;
            clearTimeout(this.toasting);
            this.toasting = setTimeout(() => (this.toast.hidden = true), 3500);
        }
        return true;
    }
}
