/** Drawing and choosing spans by mouse. */

import { describe, quote } from "./words.js";

/** The mouse over the answer: a drag marks what it covers, a click chooses a span. */
export class Pointer {
    constructor(view) {
        this.view = view;
        this.used = false; // the last thing the person did was done by mouse
    }

    listen(on) {
        on(this.view.answer, "pointerdown", (event) => this.press(event));
        on(document, "pointerup", (event) => this.release(event));
    }

    press(event) {
        if (this.view.tools.contains(event.target) || event.button !== 0) return;
        this.pressed = { x: event.clientX, y: event.clientY };
        this.view.root.classList.add("sl-dragging");
    }

    release(event) {
        this.view.root.classList.remove("sl-dragging");
        if (!this.pressed || !this.view.editor.item) return;
        const moved = Math.hypot(event.clientX - this.pressed.x, event.clientY - this.pressed.y) > 3;
        this.pressed = null;
        setTimeout(() => this.pointed(event, moved), 0); // the browser's selection is final only then
    }

    pointed(event, moved) {
        const { geometry, text, editor } = this.view;
        this.used = true;
        const selection = document.getSelection();
        const range = selection.rangeCount > 0 ? selection.getRangeAt(0) : null;
        const touches = range?.intersectsNode(text.node) ?? false;
        const start = touches ? geometry.unitOf(range.startContainer, range.startOffset) ?? 0 : null;
        const end = touches ? geometry.unitOf(range.endContainer, range.endOffset) ?? editor.item.text.length : null;
        if (touches && !range.collapsed) {
            this.drag(start, end, event.altKey || event.shiftKey);
        } else if (!moved) this.click(event, start);
        this.view.focusAnswer();
    }

    drag(start, end, exactly) {
        const { editor } = this.view;
        const { text } = editor.item;
        const range = exactly ? text.snapGraphemes(start, end) : text.snapWords(start, end);
        document.getSelection().removeAllRanges();
        if (!range) return;
        editor.selection.caret = range.end;
        if (editor.draw(range.start, range.end)) this.view.say(`Marked ${quote(text.slice(range.start, range.end))}.`);
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
        if (editor.focused) this.view.say(describe(editor.focused));
    }
}
