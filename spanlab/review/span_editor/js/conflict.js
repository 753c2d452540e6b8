/** Writes that came too late: what happened to them, and the two ways on. */

import { h } from "./dom.js";
import { inForce } from "./history.js";
import { plural } from "./words.js";

/** The banner over an item whose writes were refused, and what its buttons do. */
export class Conflict {
    constructor(editor) {
        this.editor = editor;
        this.mine = null; // operations to lay on top of the item once it is here anew
        this.node = h("div", { class: "sl-banner", role: "alert", hidden: "" });
    }

    paint() {
        const { item, outbox } = this.editor;
        const held = item ? outbox.writes.filter((write) => outbox.concerns(write, item.id) && write.held) : [];
        this.node.hidden = held.length === 0;
        if (held.length === 0 || this.paintedFor === `${item.id} ${held.length}`) return;
        const [first] = held;
        const why = first.stale
            ? `This item was changed in another tab, window or browser under the name ${first.reviewer} since you opened it here. `
            : `The server refused a change: ${first.reason} `;
        this.node.replaceChildren(
            h("p", {}, why, `Your ${plural(held.length, "change")} here ${held.length === 1 ? "is" : "are"} not saved yet.`),
            this.choice("Use the other version", () => this.takeTheirs()),
            this.choice("Reapply my changes", () => this.putMineOnTop()),
        );
    }

    choice(name, act) {
        const node = h("button", { class: "sl-button", type: "button" }, name);
        node.addEventListener("click", () => {
            this.paintedFor = null;
            act();
        });
        return node;
    }

    takeTheirs() {
        this.editor.outbox.drop(this.editor.item.id);
        this.editor.navigation.reopen();
    }

    putMineOnTop() {
        const { item, outbox, navigation } = this.editor;
        this.mine = { item: item.id, ops: inForce(outbox.drop(item.id)) };
        navigation.reopen();
    }

    /** Apply what was kept of the reviewer's own to the item as it is now. */
    layOnTop() {
        const { mine, editor } = this;
        if (!mine || mine.item !== editor.item.id) return;
        this.mine = null;
        let lost = 0;
        for (const op of mine.ops) if (!editor.apply(op)) lost += 1;
        editor.view.say(lost ? `${lost} of your changes no longer fit and were left out.` : "Your changes are on top.", true);
    }
}
