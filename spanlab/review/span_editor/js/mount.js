/**
 * The span editor: shows one item, lets a reviewer decide by key or mouse, loses nothing typed.
 *
 * Top-down: mount, editor.js (what the person does), view.js (what the person sees),
 * conversation.js and outbox.js (what Python is told and answers), history.js (the operation log,
 * the mirror of spanlab/oplog), text.js and offsets.js (an answer and its places), trace.js (what a
 * detector did). Inside, every place is a UTF-16 unit; offsets.js translates.
 */

import { Editor } from "./editor.js";
import { SECTIONS } from "./trace_steps.js";

export { SECTIONS };

const mounted = new WeakMap();

/** Mount the editor, or hand new data to the one that is mounted. Called by Streamlit. */
export default function mount(component) {
    const { parentElement, data } = component;
    const wire = (globalThis.spanlab ??= {});
    let editor = mounted.get(parentElement);
    if (!editor) {
        editor = new Editor(parentElement, data, wire);
        mounted.set(parentElement, editor);
        wire.editor = editor;
        wire.receive = (answered) => editor.conversation.receive(answered);
        if (wire.component) editor.conversation.receive(wire.component);
    }
    editor.labels.take(data);
    editor.view.guidelines.take(data.guidelines);
    editor.view.hints.take(data.tour);
    editor.finishing.rule = data.undecided;
    editor.view.evidence.form.opener.hidden = !data.adds_evidence; // others would tell check items by it
    editor.view.theme(parentElement);
    return () => {
        mounted.delete(parentElement);
        editor.unmount();
    };
}
