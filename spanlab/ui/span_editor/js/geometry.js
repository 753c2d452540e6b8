/** Positions of the answer's text on the screen. */

import { firstText, lastText, rangePlace } from "./dom.js";

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

    rectAt(at) {
        const { node, offset } = this.position(at);
        const range = document.createRange();
        range.setStart(node, offset);
        range.collapse(true);
        const rect = range.getClientRects()[0];
        if (rect) return rect;
        const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
        const box = element.getBoundingClientRect();
        const right = getComputedStyle(element).direction === "rtl";
        return new DOMRect(right ? box.right : box.left, box.top, 0, Math.min(box.height, 24));
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
