/** The caret and the selection as they are seen. */

import { h } from "./dom.js";

/** A drawn caret; the selection is the browser's own, so that screen readers know of it. */
export class CaretMark {
    constructor(view) {
        this.view = view;
        this.node = h("div", { class: "sl-caret", "aria-hidden": "true", hidden: "" });
    }

    paint() {
        const { geometry, answer, editor } = this.view;
        const { range, caret } = editor.selection;
        if (range || this.selecting) this.select(range);
        this.node.hidden = document.activeElement !== answer;
        if (this.node.hidden) return;
        const rect = geometry.rectAt(caret);
        geometry.put(this.node, rect.left, rect.top);
        this.node.style.height = `${rect.height || 20}px`;
    }

    select(range) {
        const { geometry } = this.view;
        const selection = document.getSelection();
        this.selecting = range !== null;
        if (!range) return selection.removeAllRanges();
        const [from, to] = [geometry.position(range.start), geometry.position(range.end)];
        return selection.setBaseAndExtent(from.node, from.offset, to.node, to.offset);
    }
}
