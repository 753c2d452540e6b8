"""What the browser says while the server does not answer: our words in place of Streamlit's."""

from __future__ import annotations

import streamlit as st

_STYLE = """<style>
[data-testid="stLayoutWrapper"]:has(> .st-key-connection) { position: absolute; }
</style>"""
_JS = """
const AFTER = 1500; // ms without a connection before anything is said

export default () => {
    if (globalThis.spanlabConnection) return;
    const app = document.querySelector('[data-testid="stApp"]');
    const note = globalThis.spanlabConnection = document.createElement("div");
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
    let timer;
    const look = () => {
        clearTimeout(timer);
        dialogs.disconnect();
        const state = app.dataset.testConnectionState;
        if (state === "CONNECTED") {
            note.hidden = true;
            return;
        }
        dialogs.observe(document.body, { childList: true, subtree: true });
        timer = setTimeout(() => {
            note.textContent = words(state);
            note.hidden = false;
        }, note.hidden ? AFTER : 0);
    };
    new MutationObserver(look).observe(app, { attributeFilter: ["data-test-connection-state"] });
};

function words(state) {
    if (state === "DISCONNECTED_FOREVER") return "The connection has ended. Reload the page.";
    const here = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
    const next = here ? "Start it with “spanlab serve”" : "Ask whoever runs it if this lasts";
    return `spanlab does not answer. ${next}: this page goes on by itself when it is back. `
        + "What you type in Review meanwhile is kept in this browser.";
}
"""


def watch() -> None:
    """Watch the connection from the browser, on every page of the app."""
    with st.container(key="connection"):
        st.html(_STYLE)
        st.components.v2.component("spanlab_connection", js=_JS, isolate_styles=False)(
            key="spanlab_connection"
        )
