"""What the browser does on every page: keep what is being typed, watch the connection.

If the connection is gone it says so; once it is back it has the page drawn again.
"""

from __future__ import annotations

import streamlit as st

_STYLE = """<style>
[data-testid="stLayoutWrapper"]:has(> .st-key-browser) { position: absolute; }
</style>"""
# Streamlit builds a box again where a run draws something above it: what was typed into it and not
# sent yet, its focus and the next keys would be lost.
_DRAFT = """
const WAIT = 60_000; // ms for the box to come back
const BOXES = ["stTextInput", "stTextArea", "stNumberInput"]
    .flatMap((name) => ["input", "textarea"].map((box) => `[data-testid="${name}"] ${box}`)).join();

function keepDraft() {
    let draft = null; // of the box that is being typed in
    const keyOf = (box) => [...box.closest('[class*="st-key-"]')?.classList ?? []]
        .filter((name) => name.startsWith("st-key-")).join();
    const read = (box) => ({ box, label: box.ariaLabel, key: keyOf(box), value: box.value,
        caret: box.selectionStart, since: performance.now() });
    const isLost = () => draft !== null && !draft.box.isConnected
        && performance.now() - draft.since < WAIT;
    const watch = new MutationObserver(() => {
        if (!isLost()) return;
        const box = [...document.querySelectorAll(BOXES)]
            .find((box) => box.ariaLabel === draft.label && keyOf(box) === draft.key);
        if (box !== undefined) restore(box);
    });
    function restore(box) {
        const { value, caret } = draft;
        draft.box = box;
        if (document.activeElement === document.body) box.focus();
        Object.getOwnPropertyDescriptor(Object.getPrototypeOf(box), "value").set.call(box, value);
        box.dispatchEvent(new Event("input", { bubbles: true })); // as if it was typed
        if (caret !== null) box.setSelectionRange(caret, caret);
    }
    function forget() {
        draft = null;
        watch.disconnect();
    }
    addEventListener("popstate", forget);
    document.addEventListener("input", ({ target }) => {
        if (!target.matches?.(BOXES)) return;
        draft = read(target);
        watch.observe(document.body, { childList: true, subtree: true });
    });
    document.addEventListener("focusout", ({ target }) => setTimeout(() => {
        if (target === draft?.box && target.isConnected) forget(); // it has been sent
    }));
    document.addEventListener("keydown", (event) => {
        const sends = event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey;
        if (event.key === "Enter" && sends) forget();
        const isDrawn = document.querySelector('[data-test-script-state="notRunning"]') !== null;
        if (!isLost() || isDrawn || document.activeElement !== document.body) return;
        if (event.key.length > 1 || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        const { value, caret } = draft, at = caret ?? value.length;
        draft.value = value.slice(0, at) + event.key + value.slice(at);
        draft.caret = caret === null ? null : at + 1;
    }, { capture: true });
}
"""
_CONNECTION = """
const AFTER = 1500; // ms without a connection before anything is said

function watchConnection() {
    const app = document.querySelector('[data-testid="stApp"]');
    const note = document.createElement("div");
    note.className = "spanlab-down";
    note.setAttribute("role", "alert");
    note.style.cssText = "position: fixed; inset: 0 0 auto 0; z-index: 2000000;"
        + "padding: 0.8rem 1.2rem; background: #5c2e00; color: #fff; text-align: center;";
    note.hidden = true;
    document.body.append(note);

    // Streamlit's dialog takes all keys; closed, it stays away until the connection is back.
    const dialogs = new MutationObserver(() => {
        for (const dialog of document.querySelectorAll('[data-testid="stDialog"]')) {
            if (!/^\\s*Connection error/.test(dialog.textContent)) continue;
            dialog.querySelector("[aria-label='Close']")?.click();
        }
    });
    let timer, isLost = false;
    const look = () => {
        clearTimeout(timer);
        dialogs.disconnect();
        const state = app.dataset.testConnectionState;
        if (state === "CONNECTED") {
            note.hidden = true;
            // Parts of a page that a server before drew are unknown to this one, which ignores
            // what they send.
            if (isLost) globalThis.spanlabBrowser.setTriggerValue("again", true);
            isLost = false;
            return;
        }
        isLost = true;
        dialogs.observe(document.body, { childList: true, subtree: true });
        timer = setTimeout(() => {
            note.textContent = words(state);
            note.hidden = false;
        }, note.hidden ? AFTER : 0);
    };
    new MutationObserver(look).observe(app, { attributeFilter: ["data-test-connection-state"] });
}

function words(state) {
    if (state === "DISCONNECTED_FOREVER") return "The connection has ended. Reload the page.";
    const here = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
    const next = here ? "Start it with “spanlab serve”." : "If this lasts, tell who runs it.";
    return `spanlab is not responding. ${next} This page reconnects by itself; `
        + "your work in Review is kept in this browser.";
}
"""
_JS = f"""{_DRAFT}{_CONNECTION}
export default (component) => {{
    const watches = "spanlabBrowser" in globalThis;
    globalThis.spanlabBrowser = component;
    if (watches) return;
    keepDraft();
    watchConnection();
}};
"""


def watch_browser() -> None:
    """Have the browser do so, on every page of the app."""
    with st.container(key="browser"):
        st.html(_STYLE)
        st.components.v2.component("spanlab_browser", js=_JS, isolate_styles=False)(
            key="spanlab_browser", on_again_change=lambda: None
        )
