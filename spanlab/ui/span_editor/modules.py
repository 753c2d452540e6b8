"""The editor's ES modules, in ``js/``, as one script that a browser loads them from.

Streamlit mounts a component from one script. It can serve a directory of files, too, but only of
packages that carry a second ``pyproject.toml`` inside, and with addresses that stay the same from
release to release: a page that loads while files are replaced mixes old modules with new ones,
and a page that stays open never gets the new ones. So all modules travel in one script, which
makes a blob of each and points its imports at the blobs of those before it.
"""

from __future__ import annotations

import json
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib.resources import files

_IMPORT = re.compile(r'^import .* from "\./(.+)";$', re.MULTILINE)
_LOADER = """\
const urls = {};
for (const [name, source] of %s) {
    const point = (line, module) => line.replace(`./${module}`, urls[module]);
    const linked = source.replace(/^import .* from "\\.\\/(.+)";$/gm, point);
    const named = [linked, `//# sourceURL=spanlab/${name}\\n`];
    urls[name] = URL.createObjectURL(new Blob(named, { type: "text/javascript" }));
}
const main = await import(urls[%s]);
for (const url of Object.values(urls)) URL.revokeObjectURL(url);
export default main.default;
"""


@cache
def script(main: str = "mount.js") -> str:
    """Return a module whose default export is that of the module ``main``.

    Raises:
        graphlib.CycleError: modules import each other in a circle.
    """
    folder = files(__package__).joinpath("js")
    sources: dict[str, str] = {}
    imports: dict[str, list[str]] = {}
    wanted = [main]
    while wanted:
        name = wanted.pop()
        sources[name] = folder.joinpath(name).read_text(encoding="utf-8")
        imports[name] = _IMPORT.findall(sources[name])
        wanted += [each for each in imports[name] if each not in sources]
    order = TopologicalSorter(imports).static_order()
    modules = json.dumps([[name, sources[name]] for name in order], ensure_ascii=False)
    return _LOADER % (modules, json.dumps(main))
