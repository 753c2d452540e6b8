/** Elements of the page. An answer is hostile: text reaches the page as text nodes alone. */

import { percent } from "./words.js";

/** Build an element; strings become text nodes, never markup. */
export function h(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
}

/** Let a mouse press a button without taking the focus from where it is. */
export function pressable(node, act) {
    node.addEventListener("mousedown", (event) => event.preventDefault());
    node.addEventListener("click", act);
    return node;
}

export function meter(prob) {
    const bar = h("span", { class: "sl-meter", "aria-hidden": "true" }, h("span", {}));
    bar.firstChild.style.width = percent(prob).replace(" ", "");
    return bar;
}

export function centre(box, node) {
    const [outer, inner] = [box.getBoundingClientRect(), node.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) {
        box.scrollTop += inner.top - outer.top - outer.height / 3;
    }
}

export function firstText(node) {
    return document.createTreeWalker(node, NodeFilter.SHOW_TEXT).nextNode();
}

export function lastText(node) {
    let last = node;
    while (last.lastChild) last = last.lastChild;
    return last;
}

export function rangePlace(range) {
    return range ? { offsetNode: range.startContainer, offset: range.startOffset } : null;
}
