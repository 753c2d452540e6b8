/** The table of the queue's items: searched, sorted, narrowed by state or label; a row opens its item. */

import { h, pressable } from "./dom.js";
import { STATUS_WORDS, percent, plural } from "./words.js";

const PAUSE = 150; // milliseconds without a key before Python is asked
const STATES = ["not-annotated", "done", "skipped"];
const number = (value) => (value ? String(value) : "");
const share = (value) => (value === null ? "" : percent(value));

/** Columns: what they are called, by which order of the queue they sort, what a cell says, if only shown where one does. */
const COLUMNS = [
    { name: "Item", order: "import", cell: (row) => row.id },
    { name: "Status", order: "status", cell: (row) => STATUS_WORDS[row.status] },
    { name: "Hallucinated", order: null, ifSaid: true, cell: (row) => (row.judges ? `${row.hallucinated} of ${row.judges}` : "") },
    { name: "Question and answer", order: null, cell: (row) => [row.question, row.answer].filter(Boolean).join(" — ") },
    { name: "Probability", order: "probability", does: "Highest probability of a span", cell: (row) => share(row.prob) },
    { name: "Disagreement", order: "disagreement", cell: (row) => share(row.disagreement) },
    { name: "Labels", order: "labels", cell: (row) => row.labels.join(", ") },
    { name: "Claims", order: "claims", cell: (row) => number(row.claims) },
    { name: "Passages", order: "passages", cell: (row) => number(row.passages) },
];

/** A dialog over the editor. */
export class ItemTable {
    constructor(view) {
        this.view = view;
        this.asked = { number: 0, text: "", status: null, label: null, order: null, reverse: false, after: null, before: null };
        this.answered = 0;
        this.rows = [];
        this.chosen = 0;
        this.input = h("input", { type: "search", "aria-label": "Search items", placeholder: "Search question, answer, comment or id", dir: "auto",
            maxlength: "200", "aria-controls": "sl-items", "aria-keyshortcuts": "ArrowDown ArrowUp Enter" });
        this.state = h("select", { class: "sl-choice", "aria-label": "Status" });
        this.label = h("select", { class: "sl-choice", "aria-label": "Label" });
        this.found = h("span", { class: "sl-quiet", role: "status" });
        this.heads = COLUMNS.map((column) => this.headOf(column));
        this.body = h("tbody", {});
        this.earlier = this.button("‹ Earlier", "Earlier items (PgUp)", () => this.turn("before", this.page?.previous));
        this.later = this.button("Later ›", "Later items (PgDn)", () => this.turn("after", this.page?.next));
        this.node = h("div", { class: "sl-sheet sl-items", role: "dialog", "aria-modal": "true", "aria-label": "Items", hidden: "" },
            h("div", { class: "sl-sheet-inner" },
                h("div", { class: "sl-items-head" }, h("h2", {}, "Items"), this.input, this.state, this.label, this.found,
                    this.button("✕", "Close (Esc)", () => this.close())),
                h("div", { class: "sl-items-rows", tabindex: "0", role: "group", "aria-label": "Rows" },
                    h("table", { id: "sl-items" }, h("thead", {}, h("tr", {}, ...this.heads)), this.body)),
                h("div", { class: "sl-items-foot" }, this.earlier, this.later,
                    h("span", { class: "sl-quiet" }, "↑ ↓ choose · Enter opens · Esc closes"))));
    }

    button(name, does, act) {
        return pressable(h("button", { class: "sl-button", type: "button", title: does, "aria-label": does }, name), act);
    }

    headOf({ name, order, does }) {
        if (!order) return h("th", { scope: "col" }, name);
        const sort = h("button", { type: "button", title: `Sort by ${(does ?? name).toLowerCase()}; again: the other way round` }, name);
        return h("th", { scope: "col", "data-order": order }, pressable(sort, () => this.sort(order)));
    }

    get isOpen() {
        return !this.node.hidden;
    }

    listen(on) {
        on(this.input, "input", () => {
            clearTimeout(this.waiting);
            this.opens = false;
            this.waiting = setTimeout(() => this.ask({ text: this.input.value.trim() }), PAUSE);
        });
        on(this.state, "change", () => this.ask({ status: this.state.value || null }));
        on(this.label, "change", () => this.ask({ label: this.label.value || null }));
        on(this.body, "click", (event) => {
            const row = event.target.closest("tr");
            if (row) this.open(this.rows[row.sectionRowIndex]);
        });
    }

    /** Open it with what was looked for last; it is asked for anew. */
    show() {
        this.node.hidden = false;
        this.fillChoices();
        this.ask({});
        return this.view.typing.into(this.input);
    }

    close() {
        this.node.hidden = true;
        this.opens = false;
        this.view.focusAnswer();
        return true;
    }

    fillChoices() {
        const { status, label } = this.asked;
        const labels = [...new Set([...this.view.editor.labels.all().map((one) => one.name), ...(label ? [label] : [])])];
        fill(this.state, "Any status", STATES.map((one) => [one, STATUS_WORDS[one]]), status);
        fill(this.label, "Any label", labels.map((one) => [one, one]), label);
    }

    sort(order) {
        const reverse = this.asked.order === order ? !this.asked.reverse : false;
        this.ask({ order, reverse });
    }

    turn(side, cursor) {
        if (cursor) this.ask({ [side]: cursor });
    }

    /** Ask Python for other rows; without `after` or `before` for the first. */
    ask(change) {
        clearTimeout(this.waiting);
        this.asked = { ...this.asked, after: null, before: null, ...change, number: this.asked.number + 1 };
        this.found.textContent = "Searching …";
        this.view.editor.outbox.send();
    }

    /** What Python has still to answer, null if nothing. */
    wanted() {
        return this.isOpen && this.answered < this.asked.number ? this.asked : null;
    }

    receive(page) {
        this.answered = page.number;
        if (page.number < this.asked.number) return; // something else was asked for meanwhile
        this.page = page;
        this.rows = page.rows;
        const here = this.asked.text ? 0 : this.rows.findIndex(({ id }) => id === this.view.editor.navigation.at);
        this.chosen = Math.max(0, here);
        this.paint();
        if (this.opens) this.open(this.rows[0]);
        this.opens = false;
    }

    paint() {
        const { order, reverse, previous, next } = this.page;
        const shown = COLUMNS.filter((column) => !column.ifSaid || this.rows.some(column.cell));
        this.body.replaceChildren(...this.rows.map((row) => h("tr", {}, ...shown.map((column) => (
            h("td", { dir: "auto", title: column.cell(row) }, column.cell(row))
        )))));
        for (const [index, head] of this.heads.entries()) {
            head.hidden = !shown.includes(COLUMNS[index]);
            const sorted = head.dataset.order === order;
            head.setAttribute("aria-sort", sorted ? (rises(order) !== reverse ? "ascending" : "descending") : "none");
        }
        const more = next ? ", more follow" : previous ? ", more before" : "";
        this.found.textContent = this.rows.length ? `${plural(this.rows.length, "item")}${more}` : "No item fits";
        [this.earlier.disabled, this.later.disabled] = [!previous, !next];
        this.mark();
    }

    /** Show which row Enter opens. */
    mark() {
        [...this.body.rows].forEach((row, index) => row.classList.toggle("sl-chosen-row", index === this.chosen));
        const row = this.rows[this.chosen];
        this.body.rows[this.chosen]?.scrollIntoView({ block: "nearest" });
        if (row) this.view.say(`${row.id}. ${STATUS_WORDS[row.status]}. ${row.answer}`);
    }

    key(event) {
        const acts = {
            Escape: () => this.close(),
            ArrowDown: () => this.step(1),
            ArrowUp: () => this.step(-1),
            PageDown: () => this.turn("after", this.page?.next),
            PageUp: () => this.turn("before", this.page?.previous),
            Enter: () => this.enter(),
        };
        const native = event.key !== "Escape" && ["SELECT", "BUTTON"].includes(event.target.tagName);
        if (native || !acts[event.key]) return;
        event.preventDefault();
        acts[event.key]();
    }

    /** Open the chosen row; while a search is under way, the first one that it finds. */
    enter() {
        const text = this.input.value.trim();
        if (text !== this.asked.text) this.ask({ text });
        this.opens = Boolean(this.wanted());
        if (!this.opens) this.open(this.rows[this.chosen]);
    }

    step(by) {
        this.chosen = Math.max(0, Math.min(this.rows.length - 1, this.chosen + by));
        this.mark();
    }

    open(row) {
        if (!row) return;
        this.close();
        this.view.editor.navigation.jump(row.id);
    }
}

function rises(order) {
    return order === "import" || order === "status";
}

function fill(select, any, choices, chosen) {
    select.replaceChildren(...[["", any], ...choices].map(([value, name]) => h("option", { value }, name)));
    select.value = chosen ?? "";
}
