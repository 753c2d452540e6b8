/** Drawing and choosing spans by mouse or touch. */

import { h, pressable } from "./dom.js";
import { describe, quote } from "./words.js";

/**
 * The mouse over the answer: a drag marks what it covers, a click chooses a span. A tap is a click;
 * what fingers select they may still be changing, so a button marks it.
 */
export class Pointer {
    constructor(view) {
        this.view = view;
        this.used = false; // the last thing the person did was done by mouse or touch
        this.byTouch = false; // and by touch
        this.touched = null; // what fingers have selected
        this.mark = h("button", { class: "sl-button sl-primary sl-mark", type: "button", hidden: "" });
        pressable(this.mark, () => {
            const { start, end } = this.touched;
            this.touch(null);
            this.used = true;
            this.drag(start, end, true);
        });
    }

    listen(on) {
        on(this.view.answer, "pointerdown", (event) => this.press(event));
        on(document, "pointerup", (event) => this.release(event));
        on(document, "pointercancel", () => this.cancel());
        on(document, "selectionchange", () => this.selected());
    }

    press(event) {
        if (this.view.tools.contains(event.target) || event.button !== 0) return;
        this.pressed = { x: event.clientX, y: event.clientY };
        this.byTouch = event.pointerType === "touch";
        this.view.root.classList.add("sl-dragging");
    }

    /** What was pressed is no click: it became scrolling or selecting. */
    cancel() {
        this.view.root.classList.remove("sl-dragging");
        this.pressed = null;
    }

    release(event) {
        const { pressed } = this;
        this.cancel();
        if (!pressed || !this.view.editor.item) return;
        const moved = Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) > (this.byTouch ? 10 : 3);
        setTimeout(() => this.pointed(event, moved), 0); // the browser's selection is final only then
    }

    pointed(event, moved) {
        this.used = true;
        const range = this.range();
        if (this.byTouch) {
            if (moved) return;
            this.touch(null);
            this.click(event, this.view.geometry.unitAtPoint(event.clientX, event.clientY));
        } else if (range && range.start < range.end) {
            this.drag(range.start, range.end, event.altKey || event.shiftKey);
        } else if (!moved) this.click(event, range?.start ?? null);
        if (!this.view.typing.isOn) this.view.focusAnswer();
    }

    /** What the browser has selected of the answer, null if nothing. */
    range() {
        const { geometry, text, editor } = this.view;
        const selection = document.getSelection();
        const range = selection.rangeCount > 0 ? selection.getRangeAt(0) : null;
        if (!range?.intersectsNode(text.node)) return null;
        return {
            start: geometry.unitOf(range.startContainer, range.startOffset) ?? 0,
            end: geometry.unitOf(range.endContainer, range.endOffset) ?? editor.item.text.length,
        };
    }

    /** Fingers select by a long press and the handles that the system draws. */
    selected() {
        if (!this.byTouch || this.view.caret.selecting || !this.view.editor.item) return;
        const range = this.range();
        if (!range || range.start === range.end) return; // a tap on the button may take it away first
        this.cancel();
        this.touch(range);
    }

    /** Offer to mark what fingers have selected, or nothing. */
    touch(range) {
        this.touched = range;
        this.mark.hidden = !range;
        if (!range) return;
        this.view.tools.hide(true);
        this.mark.textContent = `Mark ${quote(this.view.editor.item.text.slice(range.start, range.end))}`;
    }

    drag(start, end, exactly) {
        const { editor } = this.view;
        const { text } = editor.item;
        const range = exactly ? text.snapGraphemes(start, end) : text.snapWords(start, end);
        document.getSelection().removeAllRanges();
        if (!range) return;
        editor.selection.caret = range.end;
        if (!editor.draw(range.start, range.end)) return;
        this.view.hints.used("draw");
        this.view.say(`Marked ${quote(text.slice(range.start, range.end))}.`);
    }

    /** A click chooses the shortest span under it; again, the next longer one. */
    click(event, at) {
        const segment = event.target.closest?.(".sl-seg");
        const { editor } = this.view;
        editor.selection.drop();
        if (at !== null) editor.selection.caret = editor.item.text.snapGrapheme(at, false);
        const under = (segment?.slMarks ?? []).map((id) => editor.marks.get(id)).filter(Boolean)
            .sort((one, two) => (one.end - one.start) - (two.end - two.start));
        const before = editor.focus;
        const index = under.findIndex((mark) => mark.id === before);
        editor.focus = under.length === 0 ? null : under[(index + 1) % under.length].id;
        this.view.focusChanged({ scroll: false });
        if (editor.focused) this.view.say(describe(editor.focused, editor.names));
        if (at !== null) this.view.citations.click(at);
    }
}
