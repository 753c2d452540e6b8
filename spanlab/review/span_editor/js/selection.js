/** The caret and what is selected, in UTF-16 units of the open answer. */

import { quote } from "./words.js";

/** One caret; where it began to select is its anchor. */
export class Selection {
    constructor(editor) {
        this.editor = editor;
        this.caret = 0;
        this.anchor = null;
        this.byWords = false;
    }

    get text() {
        return this.editor.item.text;
    }

    /** What is selected, null if nothing. */
    get range() {
        if (this.anchor === null) return null;
        return { start: Math.min(this.anchor, this.caret), end: Math.max(this.anchor, this.caret) };
    }

    move(to, extend, byWords = false) {
        const { view } = this.editor;
        const caret = Math.max(0, Math.min(this.text.length, to));
        const anchor = extend ? this.anchor ?? this.caret : null;
        this.anchor = anchor === caret ? null : anchor;
        this.byWords = byWords;
        this.caret = caret;
        view.caretChanged({ scroll: true });
        const { range } = this;
        view.say(range ? `Selected ${quote(this.text.slice(range.start, range.end))}` : this.text.graphemeAt(caret));
        return true;
    }

    drop() {
        this.anchor = null;
        this.editor.view.caretChanged();
    }
}
