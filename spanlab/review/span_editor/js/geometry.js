/** Positions of the answer's text on the screen. */

import { firstText, lastText, rangePlace } from "./dom.js";
import { LEFTWARDS } from "./text.js";

const WIDEST = 16; // UTF-16 units in which a character is looked for that has a width

/** From UTF-16 units to nodes and points of the painted answer, and back. */
export class Geometry {
    constructor(view) {
        this.view = view;
    }

    get text() {
        return this.view.editor.item.text;
    }

    /** The painted paragraph around UTF-16 unit `at`. */
    paragraph(at) {
        return this.view.text.elements[this.text.paragraphIndex(at)];
    }

    /** The DOM position of UTF-16 unit `at`. */
    position(at) {
        const element = this.paragraph(at);
        for (const child of element.childNodes) {
            const content = child.nodeType === Node.TEXT_NODE ? child : child.firstChild;
            if (at <= content.slStart + content.length) return { node: content, offset: Math.max(0, at - content.slStart) };
        }
        return { node: element.lastChild?.lastChild ?? element.lastChild ?? element, offset: element.lastChild?.textContent.length ?? 0 };
    }

    /** The UTF-16 unit of a DOM position in the answer, or null outside it. */
    unitOf(node, offset) {
        if (!this.view.text.node.contains(node)) return null;
        if (node.slStart !== undefined) return node.slStart + offset;
        const child = node.childNodes[offset] ?? null;
        const at = child ?? node;
        const inside = at.slStart !== undefined ? at : firstText(at);
        if (inside) return child ? inside.slStart : lastText(at).slStart + lastText(at).length;
        const element = at.closest?.(".sl-p") ?? at.querySelector?.(".sl-p");
        return element ? this.text.paragraphs[element.slIndex].start : null;
    }

    unitAtPoint(x, y) {
        const place = document.caretPositionFromPoint
            ? document.caretPositionFromPoint(x, y)
            : rangePlace(document.caretRangeFromPoint(x, y));
        return place ? this.unitOf(place.offsetNode, place.offset) : null;
    }

    /** The DOM range of UTF-16 units `start` to `end`. */
    range({ start, end }) {
        const [from, to] = [this.position(start), this.position(end)];
        const range = document.createRange();
        range.setStart(from.node, from.offset);
        range.setEnd(to.node, to.offset);
        return range;
    }

    /**
     * The edge at UTF-16 unit `at`, without width. Where a line wraps, one unit has two places: what
     * starts there stands on the next line, what ends there (`side` "end") on the one before.
     */
    rectAt(at, side = "start") {
        const paragraph = this.text.paragraphAt(at);
        const ends = at > paragraph.start && (side === "end" || at === paragraph.end);
        const box = this.boxBeside(at, ends, paragraph);
        const right = this.readsLeftwards(at, ends, box) !== ends;
        if (box) return new DOMRect(right ? box.right : box.left, box.top, 0, box.height);
        const around = this.paragraph(at).getBoundingClientRect();
        return new DOMRect(right ? around.right : around.left, around.top, 0, Math.min(around.height, 24));
    }

    /** The box of the character that begins at `at`, or ends there; null in an empty paragraph. */
    boxBeside(at, ends, paragraph) {
        for (let far = 1; far <= WIDEST; far += 1) { // what is joined to others may have no width of its own
            const start = ends ? Math.max(paragraph.start, at - far) : at;
            const end = ends ? at : Math.min(paragraph.end, at + far);
            const boxes = [...this.range({ start, end }).getClientRects()].filter(({ width }) => width > 0);
            if (boxes.length > 0) return boxes.at(ends ? -1 : 0);
        }
        return null;
    }

    /** Whether the character there is read from right to left: letters say, others go with what is around. */
    readsLeftwards(at, ends, box) {
        const { whole } = this.text;
        const before = whole.slice(Math.max(0, at - 2), at);
        const character = String.fromCodePoint((ends ? [...before].at(-1) : whole.slice(at, at + 2)).codePointAt(0) ?? 32);
        if (LEFTWARDS.test(character)) return true;
        if (/[\p{L}\p{Nd}]/u.test(character)) return false;
        const caret = box && this.range({ start: at, end: at }).getClientRects()[0];
        const sameLine = caret && caret.top < box.bottom && caret.bottom > box.top;
        if (sameLine && Math.abs(caret.left - box.left) < 1) return ends;
        if (sameLine && Math.abs(caret.left - box.right) < 1) return !ends;
        return getComputedStyle(this.paragraph(at)).direction === "rtl";
    }

    isRightToLeft(at) {
        this.view.flush();
        return getComputedStyle(this.paragraph(at)).direction === "rtl";
    }

    /** Where the caret lands one line up or down. */
    lineAway(key) {
        this.view.flush();
        const { text } = this;
        const { caret } = this.view.editor.selection;
        const down = key === "ArrowDown";
        const rect = this.rectAt(caret);
        for (let far = 0.75; far < 3; far += 0.5) {
            const y = down ? rect.bottom + rect.height * far : rect.top - rect.height * far;
            const unit = this.unitAtPoint(rect.left + 1, y);
            if (unit !== null && unit !== caret && (unit > caret) === down) return text.snapGrapheme(unit, false);
        }
        return down ? text.paragraphAt(caret).next : Math.max(0, text.paragraphAt(caret).start - 1);
    }

    /** Bring the text at `at` into the middle if it is not well within sight. */
    scrollTo(at, margin = 0.08) {
        const { answer } = this.view;
        for (let round = 0; round < 2; round += 1) { // the first round may lay out what was skipped
            const rect = this.rectAt(at);
            const box = answer.getBoundingClientRect();
            const room = box.height * margin;
            if (rect.top >= box.top + room && rect.bottom <= box.bottom - room) break;
            answer.scrollTop += rect.top - box.top - box.height * 0.4;
        }
    }

    /** Move a node that floats over the answer to a point of the screen. */
    put(node, left, top) {
        const { answer } = this.view;
        const box = answer.getBoundingClientRect();
        node.style.left = `${left - box.left + answer.scrollLeft}px`;
        node.style.top = `${top - box.top + answer.scrollTop}px`;
    }
}
