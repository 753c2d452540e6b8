/** Streamlit's theme: our colours differ between a dark and a light background. */

/** Say whether the background behind the editor is dark. */
export function isDark(parent) {
    const style = getComputedStyle(parent.host ?? parent);
    return luminance(style.getPropertyValue("--st-background-color").trim()) < 0.4;
}

/** Relative luminance of a CSS colour such as #1a2b3c or rgb(…); 1 if it is neither. */
function luminance(colour) {
    const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})/i.exec(colour);
    const parts = hex ? hex.slice(1).map((part) => parseInt(part, 16)) : (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
    if (parts.length < 3) return 1;
    const [red, green, blue] = parts.map((part) => (part / 255) ** 2.2);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
