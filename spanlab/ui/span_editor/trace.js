
// ----------------------------------------------------------------------------------- Trace

/**
 * What a detector did on the way to its spans, beside the answer. Python sends a trace when it is
 * asked for one, and nothing is built before somebody looks: an item opens as fast with it as
 * without. Joined to span_editor.js; all text arrives as text nodes.
 */
class TracePanel {
    constructor(view) {
        this.view = view;
        this.annotator = null;
        this.choice = h("div", { class: "sl-trace-choice", role: "group", "aria-label": "Whose trace" });
        this.body = h("div", { class: "sl-trace-body", tabindex: "0", role: "region", "aria-label": "Trace" });
        const close = view.button("Close", "trace");
        this.node = h("section", { class: "sl-trace", "aria-label": "Trace of a detector", hidden: "" },
            h("div", { class: "sl-trace-head" }, h("h3", { class: "sl-title" }, "Trace"), this.choice, close), this.body);
    }

    get editor() {
        return this.view.editor;
    }

    get isOpen() {
        return !this.node.hidden;
    }

    /** Annotators of the open item that have something to tell. */
    tellers() {
        return this.editor.item?.payload.annotators.filter(tellsOfItself) ?? [];
    }

    /** The trace that the editor has to ask Python for, null if none. */
    wanted() {
        const { item, open } = this.editor;
        if (!this.isOpen || !item || item.id !== open || this.annotator === null) return null;
        return item.traces?.has(this.annotator) ? null : { item: item.id, annotator: this.annotator };
    }

    /** Open or close the panel; opening begins with who suggested the chosen span. */
    toggle() {
        if (this.isOpen) return this.close();
        const suggests = new Set(this.editor.focused?.members.map((member) => member.annotator));
        const tellers = this.tellers();
        const first = tellers.find(({ name }) => suggests.has(name)) ?? tellers.find(({ name }) => name === this.last) ?? tellers[0];
        return this.tell(first?.name ?? null);
    }

    /** The trace of the next annotator; the first if none is shown. */
    next() {
        const names = this.tellers().map(({ name }) => name);
        if (!this.isOpen) return this.toggle();
        return this.tell(names[(names.indexOf(this.annotator) + 1) % Math.max(names.length, 1)] ?? null);
    }

    tell(annotator) {
        if (annotator === null) return this.view.say("No detector left a trace here.", true);
        this.annotator = this.last = annotator;
        this.node.hidden = false;
        this.view.right.classList.add("sl-tracing");
        this.paint();
        this.body.scrollTop = 0;
        this.body.focus({ preventScroll: true });
        this.node.scrollIntoView({ block: "nearest" });
        return true;
    }

    close() {
        this.node.hidden = true;
        this.built = null;
        this.body.replaceChildren();
        this.view.right.classList.remove("sl-tracing");
        this.view.answer.focus({ preventScroll: true });
        this.view.paintList();
        return true;
    }

    /** Another item is shown: stay with the annotator if it has a trace here too. */
    follow() {
        if (!this.isOpen) return;
        const tellers = this.tellers();
        const there = tellers.find(({ name }) => name === this.last) ?? tellers[0];
        this.annotator = there?.name ?? null;
        this.paint();
    }

    /** Take in what Python sent; `about` is null where the annotation is gone. */
    receive({ item, annotator, about }) {
        const there = this.editor.items.get(item);
        if (!there) return;
        (there.traces ??= new Map()).set(annotator, about);
        if (this.isOpen && this.editor.item === there) this.paint();
    }

    paint() {
        const { item } = this.editor;
        this.choice.replaceChildren(...this.tellers().map((teller) => this.chooser(teller)));
        this.body.setAttribute("aria-label", this.annotator === null ? "Trace" : `Trace of ${this.annotator}`);
        if (this.annotator === null) return this.show(item, h("p", { class: "sl-quiet" }, "No detector left a trace on this item."));
        const about = item.traces?.get(this.annotator);
        if (about === undefined) {
            this.show(item, h("p", { class: "sl-quiet" }, "Fetching the trace …"));
            return this.editor.outbox.send();
        }
        if (about === null) return this.show(item, h("p", { class: "sl-quiet" }, "This annotation is gone."));
        if (this.built === about) return undefined;
        this.show(item, ...this.sections(about, item));
        this.built = about;
        return this.view.say(`Trace of ${this.annotator}. ${summaryOf(about)}`);
    }

    show(item, ...nodes) {
        this.built = null;
        this.body.lang = item.payload.lang;
        this.body.replaceChildren(...nodes);
    }

    chooser({ name, status }) {
        const chosen = name === this.annotator;
        const node = h("button", { class: "sl-chip", type: "button", "aria-pressed": String(chosen), "data-status": status },
            h("b", {}, name), status === "failed" ? " failed" : "");
        node.addEventListener("click", () => this.tell(name));
        return node;
    }

    sections(about, item) {
        const nodes = [];
        if (about.status === "failed") {
            nodes.push(h("p", { class: "sl-trace-failed", dir: "auto" }, h("b", {}, "✕ Failed: "), about.note ?? "no reason was kept"));
        } else if (about.note) {
            nodes.push(h("p", { class: "sl-note", dir: "auto" }, about.note));
        }
        for (const steps of runsOfAKind(about.steps)) {
            const build = SECTIONS[steps[0].kind];
            if (build) nodes.push(build(this, steps, { about, item }));
        }
        if (about.steps.length === 0) nodes.push(h("p", { class: "sl-quiet" }, "It kept nothing of what it asked, read and decided."));
        return nodes;
    }

    /** A button that leads somewhere; a mouse goes on in the answer, a key stays in the trace. */
    leading(className, title, act, ...children) {
        const node = h("button", { class: `sl-lead ${className}`, type: "button", title }, ...children);
        node.addEventListener("mousedown", (event) => event.preventDefault());
        node.addEventListener("click", (event) => {
            act();
            if (event.detail > 0) this.view.answer.focus({ preventScroll: true });
        });
        return node;
    }

    /** Text of a model that stands in the answer, or is said not to. */
    placed(step) {
        const places = step.places ?? [];
        if (places.length === 0) {
            return h("span", { class: "sl-lost" }, step.text);
        }
        let turn = 0;
        const title = places.length === 1 ? "Show it in the answer" : `Show its ${places.length} places in the answer, one by one`;
        return this.leading("sl-found", title, () => {
            this.focusPlace(places[turn % places.length]);
            turn += 1;
        }, step.text);
    }

    /** Choose the span that lies exactly there, else select the characters. */
    focusPlace(place) {
        const { editor } = this;
        const { text } = editor.item;
        const [start, end] = [text.unit(place.start), text.unit(place.end)];
        const mark = [...editor.marks.values()].find((one) => one.start === start && one.end === end);
        this.view.pointing = false;
        if (mark) return editor.focusOn(mark.id);
        editor.focusOn(null, { scroll: false });
        editor.caret = start;
        return editor.moveCaret(end, true);
    }
}

/** Say whether an annotation has a trace, or failed and can say why. */
function tellsOfItself({ steps, status }) {
    return steps > 0 || status === "failed";
}

function runsOfAKind(steps) {
    const runs = [];
    for (const step of steps) {
        const last = runs.at(-1);
        if (last && last[0].kind === step.kind && step.kind !== "revision") last.push(step);
        else runs.push([step]);
    }
    return runs;
}

function summaryOf({ status, note, steps }) {
    return status === "failed" ? `Failed: ${note}` : `${plural(steps.length, "step")}.`;
}

/** How each kind of step looks; steps of one kind that follow each other come together. */
const SECTIONS = {
    query: (panel, steps, context) => section("Asked", ...steps.map((step) => queryNode(panel, step, context))),
    quote: (panel, steps) => {
        const lost = steps.filter((step) => (step.places ?? []).length === 0).length;
        const title = `${plural(steps.length, "quote")} of the answer${lost ? `, ${lost} not found in it` : ""}`;
        return section(title, h("ul", { class: "sl-steps" }, ...steps.map((step) => quoteNode(panel, step))));
    },
    fact: (panel, steps) => {
        const refuted = steps.filter((step) => step.verdict === "refuted").length;
        return section(`${plural(steps.length, "fact")} of the answer, ${refuted} refuted`,
            h("ul", { class: "sl-steps" }, ...steps.map((step) => factNode(panel, step))));
    },
    relation: (panel, steps) => relationsNode(steps),
    revision: (panel, [step], { item }) => revisionNode(step, item),
    remark: (panel, steps) => section("Remarks", ...steps.map((step) => h("p", { dir: "auto" }, step.text))),
    calls: (panel, steps) => section("Calls", callsTable(steps)),
};

function section(title, ...children) {
    return h("section", { class: "sl-step" }, h("h4", {}, title), ...children);
}

function queryNode(panel, step, { about, item }) {
    const passages = step.passages ?? [];
    const found = passages.length ? plural(passages.length, "passage") : "no passages";
    return h("div", { class: "sl-query" },
        h("p", { class: "sl-asked", dir: "auto" }, step.text || "the question"),
        h("p", { class: "sl-quiet" }, `${step.retriever} · ${found}`),
        h("ul", { class: "sl-steps" }, ...passages.map((index) => h("li", { dir: "auto" }, readNode(panel, index, about, item)))));
}

/** A passage that was read, with the sentence that mattered. */
function readNode(panel, index, about, item) {
    const passage = item.payload.passages[index];
    const name = passage?.title ?? `Passage ${index + 1}`;
    if (!passage) return h("span", { class: "sl-quiet" }, `${name} came after this item was opened; reload to read it.`);
    const quotes = distinct(about.evidence.filter((quote) => quote.passage === index));
    const text = panel.view.passageTexts[index];
    const marked = quotes.slice(0, MOST_SENTENCES).map((quote) => {
        const [start, end] = [text.unit(quote.start), text.unit(quote.end)];
        return h("span", { class: "sl-sentence" }, textBefore(text, start),
            h("mark", { class: `sl-quote sl-${quote.stance}` }, text.slice(start, end)), textAfter(text, end),
            h("small", { class: "sl-stance" }, stanceWords(quote)));
    });
    const act = () => panel.view.showPassage(index, quotes);
    return panel.leading("sl-read", "Show the passage", act, h("b", {}, name), ...marked);
}

/** The words just before a quote, with an ellipsis where text is left out. */
function textBefore(text, start) {
    const from = start <= AROUND ? 0 : Math.min(start, text.nextWordStart(start - AROUND));
    return `${from > 0 ? "… " : ""}${text.slice(from, start)}`;
}

/** The words just after a quote. */
function textAfter(text, end) {
    const to = end + AROUND >= text.length ? text.length : Math.max(end, text.previousWordEnd(end + AROUND));
    return `${text.slice(end, to)}${to < text.length ? " …" : ""}`;
}

function quoteNode(panel, step) {
    const lost = (step.places ?? []).length === 0;
    return h("li", { dir: "auto" }, panel.placed(step), probNode(step.prob),
        lost ? h("em", { class: "sl-lost-word", dir: "ltr" }, "not found in the answer") : "",
        step.reason ? h("p", { class: "sl-reason", dir: "auto" }, step.reason) : "");
}

function factNode(panel, step) {
    const [sign, words] = VERDICTS[step.verdict];
    const looked = step.looked_up ?? [];
    const inAnswer = (step.places ?? []).length > 0;
    return h("li", { class: `sl-fact sl-fact-${step.verdict}`, dir: "auto" },
        h("span", { class: "sl-verdict", dir: "ltr" }, `${sign} ${words}`), probNode(step.prob),
        inAnswer ? panel.placed(step) : h("span", { class: "sl-told" }, step.text),
        step.reason ? h("p", { class: "sl-reason", dir: "auto" }, step.reason) : "",
        looked.length ? h("p", { class: "sl-quiet", dir: "auto" }, `Looked up: ${looked.join(" · ")}`) : "");
}

function relationsNode(steps) {
    const rows = steps.map((step) => h("tr", {}, ...["subject", "relation", "object"].map((part) => h("td", { dir: "auto" }, step[part]))));
    const head = h("tr", {}, ...["Subject", "Relation", "Object"].map((name) => h("th", { scope: "col" }, name)));
    const details = h("details", steps.length > FEW_RELATIONS ? {} : { open: "" },
        h("summary", {}, `${plural(steps.length, "relation")} read from the passages`),
        h("table", { class: "sl-table" }, h("thead", {}, head), h("tbody", {}, ...rows)));
    return h("section", { class: "sl-step" }, details);
}

function callsTable(steps) {
    const number = (value) => value.toLocaleString("en");
    const row = (step) => {
        const cached = step.cached_tokens ? ` (${number(step.cached_tokens)} cached by the provider)` : "";
        const again = step.from_cache ? ` (${number(step.from_cache)} from the cache)` : "";
        return [["Model", step.model], ["Calls", `${number(step.calls)}${again}`],
            ["Tokens in", `${number(step.input_tokens ?? 0)}${cached}`], ["Tokens out", number(step.output_tokens ?? 0)],
            ["Cost", step.cost === null || step.cost === undefined ? "price unknown" : money(step.cost)]];
    };
    return h("div", {}, ...steps.map((step) => h("dl", { class: "sl-calls" },
        ...row(step).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))));
}

function money(cost) {
    if (cost === 0) return "$0";
    return cost < 0.01 ? `$${cost.toPrecision(2)}` : `$${cost.toFixed(2)}`;
}

function probNode(prob) {
    return prob === null || prob === undefined ? "" : h("span", { class: "sl-prob", dir: "ltr" }, meter(prob), percent(prob));
}

/** The answer as a model corrected it: what it took out struck through, what it put in underlined. */
function revisionNode(step, item) {
    const changes = countChanges(step.diff);
    const title = changes ? `Revision: ${plural(changes, "change")}` : "Revision: nothing changed";
    const diff = h("div", { class: "sl-diff" });
    for (const [kind, from, to] of step.diff) {
        if (kind === "inserted") diff.append(h("ins", {}, from));
        else {
            const text = item.text.slice(item.text.unit(from), item.text.unit(to));
            diff.append(...(kind === "deleted" ? [h("del", {}, text)] : sameNodes(text, item.payload.lang)));
        }
    }
    return section(title, diff);
}

function countChanges(diff) {
    return diff.filter(([kind], index) => kind !== "same" && (index === 0 || diff[index - 1][0] === "same")).length;
}

/** Text that a revision kept; the middle of a long stretch waits behind a button. */
function sameNodes(text, lang) {
    if (text.length <= LONG_SAME) return [document.createTextNode(text)];
    const whole = new Text(text, lang);
    const [start, end] = [whole.snapGrapheme(KEPT_SAME, true), whole.snapGrapheme(text.length - KEPT_SAME, false)];
    const more = h("button", { class: "sl-more", type: "button", title: "Show the unchanged text" },
        `… ${(end - start).toLocaleString("en")} characters unchanged …`);
    more.addEventListener("click", () => more.replaceWith(document.createTextNode(text.slice(start, end))));
    return [document.createTextNode(text.slice(0, start)), more, document.createTextNode(text.slice(end))];
}

const VERDICTS = {
    supported: ["✓", "supported"],
    refuted: ["✕", "refuted"],
    "not-enough-evidence": ["?", "not enough evidence"],
};
const AROUND = 70;
const MOST_SENTENCES = 3;
const FEW_RELATIONS = 12;
const LONG_SAME = 600;
const KEPT_SAME = 160;
