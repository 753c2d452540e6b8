/** A picture on the page as a file of its own. */

const SHARPNESS = 2; // pixels of a PNG for each of the picture's

/** Save an SVG element as it is. */
export function saveSvg(svg, name) {
    save(new Blob([new XMLSerializer().serializeToString(svg)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** Save an SVG element as pixels. */
export async function savePng(svg, name) {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.width * SHARPNESS;
    canvas.height = image.height * SHARPNESS;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const pixels = await new Promise((done) => canvas.toBlob(done, "image/png"));
    save(pixels, `${name}.png`);
}

/** Save what a blob has as a file. */
export function save(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name.replace(/[^\p{L}\p{N} ._-]+/gu, "_");
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
