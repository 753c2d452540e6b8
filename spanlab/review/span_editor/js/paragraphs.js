/** Where an answer is broken into lines, for the eye alone: its text stays as it is. */

const PARAGRAPH_MOST = 4000;

/** Lines of `whole`; one too long to paint quickly is broken behind a space for the eye alone. */
export function paragraphsOf(whole) {
    const paragraphs = [];
    const newline = /\r\n|\n|\r/g;
    let start = 0;
    for (let match = newline.exec(whole); match; match = newline.exec(whole)) {
        pushParagraph(paragraphs, whole, start, match.index, newline.lastIndex);
        start = newline.lastIndex;
    }
    pushParagraph(paragraphs, whole, start, whole.length, whole.length);
    return paragraphs;
}

function pushParagraph(paragraphs, whole, start, end, next) {
    while (end - start > PARAGRAPH_MOST) {
        const cut = breakBefore(whole, start, start + PARAGRAPH_MOST);
        paragraphs.push({ start, end: cut, next: cut });
        start = cut;
    }
    paragraphs.push({ start, end, next });
}

function breakBefore(whole, from, to) {
    const piece = whole.slice(from, to);
    const sentence = Math.max(piece.lastIndexOf(". "), piece.lastIndexOf("? "), piece.lastIndexOf("! "));
    if (sentence > PARAGRAPH_MOST / 2) return from + sentence + 2;
    const wide = piece.lastIndexOf("。");
    if (wide > PARAGRAPH_MOST / 2) return from + wide + 1;
    const space = piece.lastIndexOf(" ");
    if (space > PARAGRAPH_MOST / 2) return from + space + 1;
    const last = new Intl.Segmenter().segment(whole.slice(from, to + 64)).containing(to - from);
    return last && last.index > 0 ? from + last.index : to;
}
