/** The line in which one of many is searched by its name: a label, an annotator. */

import { h } from "./dom.js";

/** Asks for one of many by a part of its name or description. */
export class Chooser {
    constructor(view) {
        this.view = view;
        this.input = h("input", {
            type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "sl-choices", autocomplete: "off", dir: "auto",
        });
        this.list = h("ul", { class: "sl-choices", id: "sl-choices", role: "listbox" });
        this.node = h("div", { class: "sl-chooser", hidden: "" }, this.input, this.list);
    }

    listen(on) {
        on(this.input, "input", () => this.find());
        on(this.list, "mousedown", (event) => event.preventDefault());
        on(this.list, "click", (event) => this.choose(event.target.closest("li")?.slName));
    }

    /**
     * Ask for one of `all`, each with a name and perhaps a description.
     *
     * @param {{noun: string, all: object[], draw: (one: object) => (Node | string)[], choose: (name: string) => void}} asked
     */
    open(asked) {
        this.asked = asked;
        this.back = document.activeElement;
        const title = asked.noun[0].toUpperCase() + asked.noun.slice(1);
        this.input.setAttribute("aria-label", title);
        this.input.placeholder = `Part of the name of a${/^[aeiou]/.test(asked.noun) ? "n" : ""} ${asked.noun}`;
        this.list.setAttribute("aria-label", `${title}s`);
        this.input.value = "";
        this.node.hidden = false;
        this.find();
        return this.view.typing.into(this.input);
    }

    find() {
        const wanted = this.input.value.toLowerCase().trim();
        this.found = this.asked.all.filter(({ name, description = "" }) => `${name}\n${description}`.toLowerCase().includes(wanted));
        this.at = 0;
        this.paint();
    }

    paint() {
        this.list.replaceChildren(...this.found.map((one, index) => {
            const node = h("li", { role: "option", id: `sl-choice-${index}`, "aria-selected": String(index === this.at) }, ...this.asked.draw(one));
            node.slName = one.name;
            return node;
        }));
        if (this.found.length === 0) this.list.append(h("li", { class: "sl-quiet" }, `No such ${this.asked.noun}.`));
        this.input.setAttribute("aria-activedescendant", `sl-choice-${this.at}`);
        this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
    }

    key(event) {
        const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        if (step && this.found.length > 0) {
            this.at = (this.at + step + this.found.length) % this.found.length;
            this.paint();
        } else if (event.key === "Enter") this.choose(this.found[this.at]?.name);
        else if (["Escape", "Tab"].includes(event.key)) this.close();
        else return;
        event.preventDefault();
    }

    choose(name) {
        if (!name) return;
        this.close();
        this.asked.choose(name);
    }

    close() {
        this.node.hidden = true;
        if (this.view.claims.list === this.back) this.back.focus({ preventScroll: true });
        else this.view.focusAnswer();
    }
}
