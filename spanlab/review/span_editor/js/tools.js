/** What a mouse or finger finds at the span that it clicked: a small toolbar, and handles at both ends. */

import { h } from "./dom.js";
import { memberKey } from "./joining.js";

/** Toolbar and handles of the chosen span; a key press hides them. */
export class SpanTools {
    constructor(view) {
        this.view = view;
        this.node = h("div", { class: "sl-tools", role: "toolbar", "aria-label": "Span", hidden: "" });
        this.handles = ["start", "end"].map((side) => h("div", {
            class: `sl-handle sl-handle-${side}`, "aria-hidden": "true", hidden: "", "data-side": side,
        }));
    }

    listen(on) {
        for (const handle of this.handles) on(handle, "pointerdown", (event) => this.drag(event, handle));
    }

    contains(node) {
        return this.node.contains(node) || this.handles.includes(node);
    }

    /** Without the toolbar, the card has the buttons; with it, their places there stay empty. */
    hide(isHidden) {
        this.node.hidden = isHidden;
        this.view.root.classList.toggle("sl-at-span", !isHidden);
    }

    place() {
        const { editor, geometry, answer, pointer, actions } = this.view;
        const mark = editor.focused;
        this.hide(!mark || !pointer.used);
        if (this.node.hidden) return;
        this.node.replaceChildren(...this.buttons(mark), this.labelChoice(mark));
        (pointer.byTouch ? actions.node : answer).append(this.node); // fingers need the text around the span
        if (pointer.byTouch) return;
        const at = Math.max(mark.start, Math.min(mark.end, editor.selection.caret));
        const rect = geometry.rectAt(at, at === mark.end ? "end" : "start");
        const width = this.node.offsetWidth;
        const box = answer.getBoundingClientRect();
        geometry.put(this.node, Math.max(box.left + 4, Math.min(rect.left, box.right - width - 20)), rect.bottom + 8);
    }

    placeHandles() {
        const { editor, geometry, pointer } = this.view;
        const mark = editor.focused;
        for (const handle of this.handles) {
            handle.hidden = !mark || !pointer.used;
            if (handle.hidden) continue;
            const { side } = handle.dataset;
            const rect = geometry.rectAt(mark[side], side);
            geometry.put(handle, rect.left, rect.bottom);
            handle.style.setProperty("--sl-line-height", `${rect.height || 20}px`);
        }
    }

    /** What can be done to a mark, as buttons; each has one place, whatever the mark. */
    buttons(mark) {
        const { opened } = this.view.editor.item;
        const isOpened = mark.members.some((member) => opened.has(memberKey(member)));
        const isDrawn = mark.kind === "own" && !mark.origin;
        const commands = [
            ["Accept", "accept", mark.kind !== "own"],
            isDrawn ? ["Remove", "remove", true] : ["Reject", "reject", mark.kind !== "rejected"],
            ["Comment", "comment", mark.kind !== "rejected"],
            [isOpened ? "Rejoin" : "Split", "parts", isOpened || mark.members.some((member) => member.parts)],
        ];
        return commands.map(([name, command, may]) => {
            const node = this.view.button(name, command);
            node.disabled = !may;
            return node;
        });
    }

    labelChoice(mark) {
        const { editor } = this.view;
        const labels = editor.labels.all().map((label) => label.name);
        const select = h("select", { "aria-label": "Label", class: "sl-choice" },
            h("option", { value: "" }, "no label"),
            ...labels.map((label) => h("option", { value: label }, label)));
        select.value = labels.includes(mark.label) ? mark.label : "";
        select.addEventListener("change", () => {
            editor.label(select.value || null);
            this.view.focusAnswer();
        });
        return select;
    }

    drag(event, handle) {
        event.preventDefault();
        const { editor, geometry, caret } = this.view;
        const mark = editor.focused;
        const { text } = editor.item;
        let [start, end] = [mark.start, mark.end];
        const line = geometry.rectAt(mark[handle.dataset.side], handle.dataset.side);
        const below = event.pointerType === "touch" ? event.clientY - (line.top + line.bottom) / 2 : 0; // fingers stay on the knob
        const move = (moved) => {
            const at = geometry.unitAtPoint(moved.clientX, moved.clientY - below);
            if (at === null) return;
            const exactly = moved.altKey || moved.shiftKey;
            if (handle.dataset.side === "start" && at < end) start = exactly ? text.snapGrapheme(at, false) : wordEdge(text, at, "start");
            if (handle.dataset.side === "end" && at > start) end = exactly ? text.snapGrapheme(at, true) : wordEdge(text, at, "end");
            if (start < end) caret.select({ start, end });
        };
        const up = () => {
            handle.removeEventListener("pointermove", move);
            handle.style.pointerEvents = "";
            caret.select(null);
            if (start !== mark.start || end !== mark.end) editor.resize(start, end);
            this.placeHandles();
        };
        handle.setPointerCapture(event.pointerId);
        handle.addEventListener("pointermove", move);
        handle.addEventListener("pointerup", up, { once: true });
        handle.addEventListener("pointercancel", up, { once: true });
    }
}

function wordEdge(text, at, side) {
    const part = text.partAt(side === "start" ? at : Math.max(0, at - 1));
    return part?.word ? part[side] : at;
}
