#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""reference.py OUTPUT [ROOT]: the API reference, one HTML page made from include/heddle.
reference.py --man FOLDER [ROOT]: the same as man pages of section 3 (manual.py).

A comment belongs to the declaration right below it, and to those that follow without
an empty line and without a comment of their own. Names of functions, types and
statuses become links wherever they stand. The page needs no network and no file
beside it; check_reference.py compares it with the library.
"""
import html
import pathlib
import re
import sys

from heddle_lint import files
import manual

# The order of reading; headers that are not named here follow by name.
FIRST = ["heddle", "status", "ctx", "data", "task", "graph", "la", "cuda", "opencl",
         "machine", "perf", "trace"]
SKIPPED = {"HEDDLE_API", "HEDDLE_MUST_USE", "HEDDLE_STATUS_ENUM"}
ITEM = re.compile(r'''
    (?P<space>\s*\n\s*\n\s*|\s+)
  | (?P<comment>/\*.*?\*/)
  | (?P<extern>extern\s+"C"\s*\{|\}(?=\s*\n\s*\#endif))
  | (?P<macro>\#[ ]*define\s+(?P<name>\w+)(?:\\\n|[^\n])*)
  | (?P<directive>\#(?:\\\n|[^\n])*)
''', re.X | re.S)


class Entry:
    """One declaration: its kind, its name, its comment and its text.

    A comment that stands alone is an entry of the kind "text" without a name.
    """

    def __init__(self, kind, name, comment, text):
        self.kind, self.name, self.comment, self.text = kind, name, comment, text


class Header:
    def __init__(self, path, root):
        self.name = path.relative_to(root / "include").as_posix()
        self.top, self.entries, self.includes = "", [], []
        self.read(path.read_text())

    def read(self, text):
        body = re.sub(r"\A.*?#define \w+_H\n", "", text, count=1, flags=re.S)
        self.includes = re.findall(r'^#include "(heddle/[^"]+)"', text, re.M)
        at, comment, gap, used = 0, "", True, True
        while at < len(body):
            m = ITEM.match(body, at)
            if m is None:
                at, comment = self.declaration(body, at, comment)
                gap, used = False, True
                continue
            at = m.end()
            if m["space"] and m["space"].count("\n") > 1:
                if not used:
                    self.add("text", "", comment, "")
                comment, gap, used = "", True, True
            elif m["comment"]:
                if not self.top and not self.entries:
                    self.top = clean(m["comment"])
                elif gap or not trailing(body, m.start()):
                    comment, gap, used = clean(m["comment"]), False, False
            elif m["macro"] and m["name"] not in SKIPPED:
                self.add("macro", m["name"], comment, m["macro"])
                gap, used = False, True

    def declaration(self, body, at, comment):
        """The text to its semicolon, outside of braces and comments; of an inline
        function to its brace, and its body is left out."""
        depth, end, brace = 0, at, None
        while end < len(body):
            if body.startswith("/*", end):
                end = body.index("*/", end) + 2
                continue
            c = body[end]
            if c == "{" and depth == 0:
                brace = end
            depth += (c == "{") - (c == "}")
            end += 1
            if depth == 0 and (c == ";" or c == "}" and "(" in body[at:brace]):
                break
        is_inline = brace is not None and "(" in body[at:brace]
        text = body[at:brace if is_inline else end].rstrip() + (";" if is_inline else "")
        self.add(*what(text), comment, text)
        return end, comment

    def add(self, kind, name, comment, text):
        self.entries.append(Entry(kind, name, comment, text))


def trailing(body, start):
    """A comment behind code on the same line."""
    return body[body.rfind("\n", 0, start) + 1:start].strip() != ""


def clean(comment):
    """The text of a comment, without its stars."""
    lines = comment[2:-2].split("\n")
    return "\n".join([lines[0].strip()] + [re.sub(r"^\s*\* ?", "", line) for line in lines[1:]]
                     ).strip("\n ")


def what(text):
    """The kind and the name of a declaration."""
    bare = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    head = bare.split("{")[0]
    if head.startswith("typedef") and "{" not in bare:
        m = re.search(r"\(\*\s*(\w+)\)", bare) or re.search(r"(\w+)\s*(?:\[[^]]*\])?\s*;", bare)
        return "type", m[1]
    m = re.match(r"(?:typedef\s+)?(struct|union|enum)\s*(\w*)", head)
    if m and "(" not in head:
        if bare.startswith("typedef"):
            return m[1], re.search(r"(\w+)\s*;\s*\Z", bare)[1]
        return m[1], m[2] or "constants"
    m = re.search(r"\b(heddle_\w+)\s*\(", head) or re.search(r"\b(heddle_\w+)", head)
    return "function", m[1]


# --- HTML ---------------------------------------------------------------------

class Links:
    """Names and where they are explained; the first declaration with a body wins."""

    def __init__(self, headers):
        self.target = {}
        for h in headers:
            for e in filter(lambda e: e.name, h.entries):
                has_body = "{" in e.text or e.kind in ("function", "macro")
                if e.name not in self.target or has_body:
                    self.target[e.name] = f"{anchor(h.name)}-{e.name}"
                for value in constants(e):
                    self.target.setdefault(value, f"{anchor(h.name)}-{e.name}")

    def link(self, text, own=""):
        def one(m):
            where = self.target.get(m[0])
            return m[0] if where is None or m[0] == own else f'<a href="#{where}">{m[0]}</a>'
        return re.sub(r"\b(?:heddle|HEDDLE)_\w+", one, html.escape(text, quote=False))


def constants(entry):
    """Values of an enum; of the list of statuses too."""
    if entry.name == "HEDDLE_STATUS_LIST":
        return re.findall(r"X\((HEDDLE_\w+)", entry.text)
    if entry.kind != "enum":
        return []
    bare = re.sub(r"/\*.*?\*/", "", entry.text, flags=re.S)
    return re.findall(r"\b(HEDDLE_\w+)\s*(?:=|,|\})", bare)


def anchor(name):
    return re.sub(r"\W", "-", name)


def prose(text, links):
    """Paragraphs; lines `HEDDLE_X  text` and `Word:  text` become a list; --- x ---
    is a heading."""
    m = re.fullmatch(r"-+ (.*?) -+", text)
    if m:
        return f"<h4>{links.link(m[1])}</h4>"
    out, words, pairs = [], [], []

    def flush():
        if words:
            out.append("<p>" + links.link(" ".join(words)) + "</p>")
        if pairs:
            rows = "".join(f"<dt>{links.link(a)}</dt><dd>{links.link(b)}</dd>" for a, b in pairs)
            out.append(f"<dl>{rows}</dl>")
        words.clear()
        pairs.clear()

    for line in text.split("\n"):
        m = re.match(r"((?:HEDDLE_\w+,? ?)+|[A-Z]\w*:|other)  +(\S.*)", line)
        if not line.strip():
            flush()
        elif m:
            if words:
                flush()
            pairs.append((m[1].strip(), m[2].strip()))
        elif pairs and line.startswith(" "):
            pairs[-1] = (pairs[-1][0], pairs[-1][1] + " " + line.strip())
        else:
            if pairs:
                flush()
            words.append(line.strip())
    flush()
    return "\n".join(out)


def code(text, links, own):
    parts = re.split(r"(/\*.*?\*/)", text, flags=re.S)
    return "".join(f'<span class="c">{links.link(p, own)}</span>' if p.startswith("/*")
                   else links.link(p, own) for p in parts)


def section(header, links):
    where = anchor(header.name)
    title, _, rest = header.top.partition("\n")
    rows = [f'<section id="{where}" class="header"><h2>{html.escape(header.name)}</h2>',
            f'<p class="brief">{links.link(title.split(" - ", 1)[-1])}</p>',
            prose(rest.strip("\n"), links)]
    for e in header.entries:
        if e.kind == "text":
            rows.append(f'<div class="alone">{prose(e.comment, links)}</div>')
            continue
        ident = f"{where}-{e.name}"
        rows.append(f'<article id="{ident}" data-kind="{e.kind}" data-name="{e.name}">'
                    f'<h3><a href="#{ident}">{e.name}</a> <small>{e.kind}</small></h3>'
                    f'<div class="comment">{prose(e.comment, links)}</div>'
                    f'<pre>{code(e.text, links, e.name)}</pre></article>')
    return "\n".join(rows + ["</section>"])


def index(header):
    where, seen, rows = anchor(header.name), set(), []
    for e in header.entries:
        if e.name and e.name not in seen:
            seen.add(e.name)
            rows.append(f'<li data-name="{e.name}"><a href="#{where}-{e.name}">{e.name}</a></li>')
    return (f'<details><summary><a href="#{where}">{header.name}</a></summary>'
            f'<ul>{"".join(rows)}</ul></details>')


STYLE = """
:root { --page: #fff; --panel: #f6f7f9; --text: #1a212c; --muted: #586374; --line: #dde2e9;
        --accent: #1f55d0; color-scheme: light; }
@media (prefers-color-scheme: dark) { :root { --page: #12151a; --panel: #1a1e25; --text: #e7eaf0;
        --muted: #9aa5b5; --line: #2b323d; --accent: #82aaff; color-scheme: dark; } }
* { box-sizing: border-box; }
body { margin: 0; display: grid; grid-template-columns: 21rem minmax(0, 1fr);
       background: var(--page); color: var(--text); font: 15px/1.55 system-ui, sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1rem;
      background: var(--panel); border-right: 1px solid var(--line); font-size: 13px; }
nav input { width: 100%; padding: .4rem .5rem; font: inherit; color: inherit;
      background: var(--page); border: 1px solid var(--line); border-radius: 4px; }
nav ul { list-style: none; margin: 0 0 .5rem; padding-left: 1rem; }
nav summary { padding: .15rem 0; cursor: pointer; }
main { padding: 1rem 2.5rem 6rem; max-width: 62rem; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
h2 { margin: 3rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { margin: 2rem 0 .3rem; font: 600 15px/1.4 ui-monospace, monospace; }
h4 { margin: 2.5rem 0 0; font-size: 16px; }
h3 small { color: var(--muted); font-weight: 400; }
.brief { font-size: 17px; color: var(--muted); margin-top: 0; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 4px;
      padding: .7rem .9rem; overflow-x: auto; font: 13px/1.5 ui-monospace, monospace; }
.c { color: var(--muted); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dt { font: 13px/1.6 ui-monospace, monospace; } dd { margin: 0; }
p { margin: .5rem 0; } .alone { margin-top: 2rem; }
article:target h3, section:target > h2 { background: var(--panel); }
[hidden] { display: none !important; }
@media (max-width: 800px) { body { display: block; } nav { position: static; height: auto;
      max-height: 45vh; } main { padding: 1rem; } }
"""

SCRIPT = """
const box = document.querySelector('nav input');
const rows = [...document.querySelectorAll('nav li')];
const groups = [...document.querySelectorAll('nav details')];
const text = new Map([...document.querySelectorAll('article')].map(
    (a) => [a.id, a.textContent.toLowerCase()]));
function search() {
    const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
    for (const li of rows) {
        const id = li.firstChild.getAttribute('href').slice(1);
        li.hidden = !words.every((w) => text.get(id).includes(w));
    }
    for (const g of groups) {
        const some = [...g.querySelectorAll('li')].some((li) => !li.hidden);
        g.hidden = !some && words.length > 0;
        g.open = words.length > 0 && some;
    }
}
box.addEventListener('input', search);
box.addEventListener('keydown', (e) => {
    const first = rows.find((li) => !li.hidden);
    if (e.key === 'Enter' && first) location.hash = first.firstChild.getAttribute('href');
});
document.addEventListener('keydown', (e) => {
    if (e.key === '/' && document.activeElement !== box) { e.preventDefault(); box.focus(); }
});
"""


def page(headers, version):
    links = Links(headers)
    return "\n".join([
        '<!DOCTYPE html>', '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>Heddle {version}: reference</title><style>{STYLE}</style></head><body>',
        '<nav><p><b>Heddle</b> ' + version + ', API reference</p>',
        '<input type="search" placeholder="search: / , then words" aria-label="search">',
        *map(index, headers), '</nav><main>', '<h1>Heddle: API reference</h1>',
        '<p>Made from the public headers by <code>make docs</code>. The guide, '
        '<code>docs/guide</code>, says how the parts are used together.</p>',
        *(section(h, links) for h in headers), '</main>',
        f'<script>{SCRIPT}</script></body></html>', ''])


def main():
    is_man = sys.argv[1] == "--man"
    out, *rest = sys.argv[2:] if is_man else sys.argv[1:]
    out, root = pathlib.Path(out), pathlib.Path(rest[0] if rest else ".").resolve()
    headers = [Header(path, root) for path in files(root, ".h", under=("include/heddle",))]
    headers.sort(key=lambda h: (FIRST.index(pathlib.Path(h.name).stem)
                                if pathlib.Path(h.name).stem in FIRST else len(FIRST), h.name))
    version = (root / "VERSION").read_text().strip()
    if is_man:
        dated = (root / "docs/man/heddle.1").read_text()
        n = manual.write(headers, out, re.search(r"^\.Dd (.*)$", dated, re.M)[1])
        print(f"{out}: {n} man pages of {len(headers)} headers")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(headers, version))
    nentries = sum(e.kind != "text" for h in headers for e in h.entries)
    print(f"{out}: {nentries} declarations of {len(headers)} headers")


main()
