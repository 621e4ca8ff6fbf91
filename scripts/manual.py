# SPDX-License-Identifier: BSD-3-Clause
"""Man pages of section 3 from what reference.py has read: one per public header, and for
every function, macro and type a page that is a reference to the header's one."""
import re

NAMED = ("function", "macro")


def escape(text):
    return text.replace("\\", "\\e")


def line(text):
    """A line of text: no request at its beginning."""
    text = escape(text)
    return "\\&" + text if text[:1] in (".", "'") else text


def prose(text):
    """Paragraphs; indented lines stay as they are."""
    out, literal, labelled = [], False, False
    for part in text.split("\n"):
        if not part.strip():
            labelled = False
            if out and out[-1] != ".Pp" and not literal:
                out.append(".Pp")
            continue
        label = re.match(r"[A-Z]\w*(: +| {2,})\S", part) and not part.startswith("HEDDLE_")
        if label and out and not literal and out[-1] != ".Pp":
            out.append(".Pp")
        labelled = bool(label) or labelled and part.startswith(" ")
        verbatim = not labelled and (part.startswith("    ") or
                                     bool(re.match(r"HEDDLE_\w+  ", part)) or
                                     literal and part.startswith("  "))
        if verbatim and not literal:
            if out and out[-1] == ".Pp":
                out.pop()
            out.append(".Bd -literal -compact")
        if literal and not verbatim:
            out.append(".Ed")
            out.append(".Pp")
        literal = verbatim
        if verbatim:
            out.append(line(part))
        else:
            out += [line(s) for s in re.split(r"(?<=[.!?]) +", re.sub(r" +", " ", part.strip()))]
    if literal:
        out.append(".Ed")
    while out and out[-1] == ".Pp":
        out.pop()
    return out


def page_name(header):
    """heddle/la_eig.h: heddle_la_eig."""
    stem = re.sub(r"\.h$", "", header.name.split("/")[-1])
    return "heddle_api" if stem == "heddle" else "heddle_" + stem


def names(header):
    seen = []
    for e in header.entries:
        if e.name and e.kind in NAMED and e.name not in seen:
            seen.append(e.name)
    return seen


def page(header, date):
    own = page_name(header)
    title, _, rest = header.top.partition("\n")
    brief = title.split(" - ", 1)[-1].strip().rstrip(".:") or header.name
    out = ['.\\" SPDX-License-Identifier: BSD-3-Clause',
           '.\\" Made from include/' + header.name + " by scripts/reference.py.",
           ".Dd " + date, ".Dt " + own.upper() + " 3", ".Os", ".Sh NAME"]
    listed = [own] + [n for n in names(header) if n != own]
    out += [f".Nm {n} ," for n in listed[:-1]] + [".Nm " + listed[-1], ".Nd " + line(brief)]
    out += [".Sh SYNOPSIS", ".In " + header.name]
    if rest.strip():
        out += [".Sh DESCRIPTION"] + prose(rest.strip("\n"))
    else:
        out += [".Sh DESCRIPTION", "The declarations of this header."]
    for e in header.entries:
        heading = re.fullmatch(r"-+ (.*?) -+", e.comment)
        if heading:
            out.append(".Ss " + line(heading[1][:1].upper() + heading[1][1:]))
            continue
        if e.text:
            out += [".Bd -literal"] + [line(t) if t else "" for t in tidy(e.text)] + [".Ed"]
        if e.comment:
            out += [".Pp"] + prose(e.comment)
    out += [".Sh SEE ALSO", ".Xr heddle 1 ,", ".Xr heddle 7"]
    return "\n".join(squeeze(out)) + "\n"


def tidy(text):
    """Declarations without the macros that are for the compiler."""
    text = re.sub(r"\b(HEDDLE_API|HEDDLE_MUST_USE)\s+", "", text)
    if "{" not in text and not text.startswith("#"):  # a call: one indent is enough
        text = re.sub(r"\n\s+", "\n    ", text)
    return [t.rstrip() for t in text.split("\n")]


def squeeze(rows):
    """No paragraph where none can be: behind a heading, another one, or before a display."""
    out, literal = [], False
    for r in rows:
        if not literal and r == ".Pp" and (not out or out[-1].startswith((".Ss", ".Sh", ".Pp"))):
            continue
        if r.startswith((".Bd", ".Sh", ".Ss")) and not literal:
            while out and out[-1] == ".Pp":
                out.pop()
        literal = r.startswith(".Bd") or (literal and r != ".Ed")
        out.append(r)
    return out


def write(headers, folder, date):
    """All pages; returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    pages, n = {page_name(h): h for h in headers}, 0
    for own, h in pages.items():
        (folder / f"{own}.3").write_text(page(h, date))
        n += 1
        for name in names(h):
            if name not in pages:
                (folder / f"{name}.3").write_text(f".so man3/{own}.3\n")
                n += 1
    return n
