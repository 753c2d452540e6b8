/** Where keys go from the press that opens a field on: into that field, however late it comes. */

import { specOf } from "./keys.js";
import { quote } from "./words.js";

const MODIFIERS = new Set(["Shift", "Control", "Alt", "AltGraph", "Meta", "CapsLock"]);
const PRESSED = new Set(["Enter", " "]); // with the focus on a button or link they press it

/**
 * What is typed after a key that opens a field never acts as a command. While the item is on its way,
 * keys are held until the field is open; where something that comes late takes the focus away, they
 * are handed to the field. Tab, a click elsewhere and the field's end let go of them.
 */
export class Typing {
    constructor(view) {
        this.view = view;
        this.field = null; // the one that was opened last
        this.held = null; // a command that opens one as soon as the item is there, and the keys after it
    }

    listen(on) {
        on(document, "keydown", (event) => this.key(event), { capture: true });
        on(document, "pointerdown", (event) => event.target !== this.field && this.leave(), { capture: true });
    }

    get isOn() {
        return this.field?.checkVisibility() ?? false;
    }

    /** A field is open, and keys are its own. */
    into(field) {
        this.field = field;
        field.focus();
        field.select();
        return true;
    }

    leave() {
        this.field = null;
    }

    key(event) {
        const { target, key } = event;
        if (this.held && this.isToBeHeld(event)) this.keep(event);
        else if (!this.isOn || target === this.field || MODIFIERS.has(key)) return;
        else if (key === "Tab") this.leave();
        else if (!target.closest("input, textarea, select") && !(PRESSED.has(key) && target.closest("button, a"))) this.hand(event);
    }

    /** Give the field a key that was pressed with the focus elsewhere; what it does not take for itself it writes. */
    hand(event) {
        event.stopImmediatePropagation();
        this.field.focus();
        if (!this.field.dispatchEvent(new KeyboardEvent("keydown", event))) event.preventDefault();
    }

    // -- while the item is on its way

    /** A command would open a field of an item that is not here yet. */
    hold(command, event, key) {
        this.held = { command, event, key, keys: [] };
        return this.view.say("Still opening the item. What you type will be in the field.");
    }

    /** Whether it is written, or ends or mends what is; and would go to the editor. */
    isToBeHeld(event) {
        const spec = specOf(event);
        const isTyped = event.key.length === 1 && !/^(Ctrl|Alt)\+/.test(spec);
        return (isTyped || ["Enter", "Backspace", "Escape"].includes(spec)) && (event.target === document.body || this.view.root.contains(event.target));
    }

    keep(event) {
        event.stopImmediatePropagation();
        event.preventDefault();
        if (event.key !== "Escape") return this.held.keys.push(event);
        this.held = null;
        return this.view.say("Cancelled.");
    }

    /** The item is here: open the field, and let it have what was typed. */
    release() {
        const { held } = this;
        if (!held) return;
        this.held = null;
        this.view.editor.run(held.command, held.event, held.key);
        if (!this.isOn && held.keys.length > 0) {
            const letters = held.keys.filter(({ key }) => key.length === 1).map(({ key }) => key);
            this.view.say(`Not entered, as no field has opened: ${quote(letters.join(""))}`, true);
        } else for (const event of held.keys) this.repeat(event);
    }

    /** Do what a held key would have done: in the field, and after its end in the answer. */
    repeat(event) {
        const target = this.isOn ? this.field : this.view.answer;
        if (!target.dispatchEvent(new KeyboardEvent("keydown", event)) || target !== this.field) return;
        if (event.key === "Enter") target.form?.requestSubmit();
        else document.execCommand(event.key === "Backspace" ? "delete" : "insertText", false, event.key);
    }
}
