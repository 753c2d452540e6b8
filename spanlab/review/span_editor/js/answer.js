/** The answer as it is painted: chunks of paragraphs, and the marks over them. */

import { h } from "./dom.js";
import { byParagraph, lineHeight, piecesOf, segmentClasses, segmentStyle, signatureOf, spread } from "./pieces.js";
import { directionOf } from "./text.js";
import { shorten } from "./words.js";

const CHUNK = 2000;
const LINE = 60;
const NO_MARKS = [];

/** The text of the open answer. Only what changed since it was last painted is painted anew. */
export class AnswerText {
    constructor(view) {
        this.view = view;
        this.node = h("div", { class: "sl-text" });
        this.painted = [];
    }

    build(text) {
        this.elements = [];
        this.painted = [];
        const chunks = [];
        let chunk = null;
        let size = 0;
        const whole = directionOf(text.whole);
        text.paragraphs.forEach((paragraph, index) => {
            if (!chunk || size > CHUNK) {
                if (chunk) sizeHint(chunk, size);
                chunk = h("div", { class: "sl-chunk" });
                chunks.push(chunk);
                size = 0;
            }
            const dir = whole === "auto" ? whole : directionOf(text.slice(paragraph.start, paragraph.end));
            const element = h("div", { class: "sl-p", dir });
            element.slIndex = index;
            chunk.append(element);
            this.elements.push(element);
            size += paragraph.end - paragraph.start + LINE;
        });
        if (chunk) sizeHint(chunk, size);
        this.node.dir = whole === "rtl" ? "rtl" : "ltr";
        this.node.replaceChildren(...chunks);
    }

    /** Paint the paragraphs whose marks changed. */
    paint(text, marks, focus) {
        const { lanes, editor } = this.view;
        const all = [...marks.values()];
        const perParagraph = lanes.isOn ? byParagraph(lanes.entries(all, editor.item), text) : spread(all, text);
        this.elements.forEach((element, index) => {
            const here = perParagraph.get(index) ?? NO_MARKS;
            const signature = here.map(({ mark, lane }) => signatureOf(mark, lane, focus)).join("|");
            if (this.painted[index] === signature) return;
            this.painted[index] = signature;
            this.paintParagraph(element, text, here, focus);
        });
    }

    /** Replace the pieces of a paragraph that differ; those before and behind them stay. */
    paintParagraph(element, text, here, focus) {
        const pieces = piecesOf(text.paragraphs[element.slIndex], here);
        element.style.lineHeight = lineHeight(here);
        const signatures = pieces.map(({ start, end, over }) => (
            `${start} ${end} ${over.map(({ mark, lane }) => signatureOf(mark, lane, focus)).join("|")}`
        ));
        const before = element.slSignatures ?? [];
        const most = Math.min(before.length, signatures.length);
        let same = 0;
        while (same < most && before[same] === signatures[same]) same += 1;
        let behind = 0;
        while (behind < most - same && before.at(-1 - behind) === signatures.at(-1 - behind)) behind += 1;
        for (let count = before.length - same - behind; count > 0; count -= 1) element.childNodes[same].remove();
        const fresh = pieces.slice(same, pieces.length - behind).map((piece) => this.piece(piece, text, focus));
        const next = element.childNodes[same] ?? null;
        for (const node of fresh) element.insertBefore(node, next);
        element.slSignatures = signatures;
    }

    piece(piece, text, focus) {
        const content = document.createTextNode(text.slice(piece.start, piece.end));
        content.slStart = piece.start;
        return piece.over.length === 0 ? content : this.segment(piece, content, focus);
    }

    segment(piece, content, focus) {
        const node = h("span", { class: segmentClasses(piece, focus) });
        node.slMarks = piece.over.map(({ mark }) => mark.id);
        node.style.cssText = segmentStyle(piece);
        const open = piece.over.filter(({ mark, lane }) => mark.kind === "open" && lane !== null).map(({ mark }) => mark);
        if (open.length > 0) node.dataset.prob = percents(open);
        const begins = open.filter((mark) => mark.start === piece.start);
        if (begins.length > 0) node.dataset.n = percents(begins);
        const lanes = piece.over.map(({ mark }) => mark).filter((mark) => mark.kind === "lane" && mark.start === piece.start);
        if (lanes.length > 0) node.dataset.lanes = lanes.map((mark) => mark.number).join("·");
        const [tagged] = piece.over.filter(({ lane }) => lane !== null).map(({ mark }) => mark)
            .filter((mark) => mark.start === piece.start && mark.label && mark.kind !== "rejected");
        if (tagged) {
            node.dataset.tag = shorten(tagged.label, 24);
            node.style.setProperty("--sl-tag", this.view.editor.labels.colour(tagged.label));
        }
        node.append(content);
        return node;
    }

    /** Show which characters a button is about, or no longer, with an empty list. */
    highlight(pieces) {
        if (!globalThis.Highlight) return;
        CSS.highlights.delete("sl-which");
        if (pieces.length > 0) CSS.highlights.set("sl-which", new Highlight(...pieces.map((piece) => this.view.geometry.range(piece))));
    }
}

function percents(marks) {
    return marks.map((mark) => Math.round(mark.prob * 100)).join("·");
}

/** Height a chunk will have about, so that skipping its layout does not make scrolling jump. */
function sizeHint(chunk, characters) {
    chunk.style.containIntrinsicBlockSize = `auto ${Math.ceil(characters / 75) * 30}px`;
}
