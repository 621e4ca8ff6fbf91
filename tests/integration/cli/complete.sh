#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle complete, and the completions of shells: every command, verb and option that help
# names is offered, and what is offered is understood.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"

# offers LIST WORDS...: exactly these words, one per line.
offers() {
    want=$1
    shift
    ok complete "$@"
    [ "$(tr '\n' ' ' <out)" = "$want" ] || wrong "complete $*: not '$want'"
}
offers 'trace ' tra
offers 'demo ' dem
offers 'view ' trace vi
offers 'trace ' help tra
offers '--title ' trace view x.log --ti
offers 'lookahead ' bench tasks --sched look
offers '' demo --log ''
offers '' nonsense --x
offers '' complete --x
ok complete ''
for c in info demo bench hpl trace model sim plan energy serve calibrate version; do
    grep -qx "$c" out || wrong "$c is not offered"
done
ok complete
grep -qx demo out || wrong 'nothing without words'

# Every option of help is in a table, and every option of a table is in help.
python3 - "$heddle" <<'END' >out 2>err || wrong 'options of help and of the tables differ'
import re
import subprocess
import sys


def run(*args):
    r = subprocess.run([sys.argv[1], *args], capture_output=True, text=True)
    return r.stdout


bad = []
commands = [w for w in run("complete", "").split() if not w.startswith("-") and w != "help"]
nwords = 0
for c in commands:
    for words in [[c]] + [[c, v] for v in run("complete", c, "").split()]:
        if c == "complete":
            continue
        text = run(*words, "--help")
        offered = set(run("complete", *words, "-").split()) - {"--help", "--json"}
        named = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", text))
        nwords += len(offered)
        # --child: how a benchmark calls itself.
        for o in sorted(offered - named - {"--output", "--child"}):
            bad.append(f"{' '.join(words)}: help does not name {o}")
        if c in ("plan", "bench") and len(words) == 1:
            continue  # its help has the options of its verbs as well
        for line in text.splitlines():
            m = re.match(r"  (--?[a-z][a-z-]*)\b", line)
            # --machine may be given several times to benchmarks: no table can say that.
            if m and m[1] not in offered | {"--help", "--json"} and \
                    (c, m[1]) != ("bench", "--machine"):
                bad.append(f"{' '.join(words)}: {m[1]} is in no table")
print("\n".join(bad), nwords)
sys.exit(bool(bad) or nwords < 150)
END

# The shells themselves, as far as they are here.
PATH=$(dirname "$heddle"):$PATH
export PATH
bash -c '. "$root/tools/shell/heddle.bash"
COMP_WORDS=(heddle trace v); COMP_CWORD=2; _heddle; echo "${COMPREPLY[*]}"
COMP_WORDS=(heddle hpl --devi); COMP_CWORD=2; _heddle; echo "${COMPREPLY[*]}"
COMP_WORDS=(heddle trace view ""); COMP_CWORD=3; _heddle; echo "${#COMPREPLY[@]}"' >out 2>err
[ "$(tr '\n' '|' <out)" = 'view|--devices --device-memory|0|' ] || wrong 'bash'
if command -v zsh >/dev/null; then
    zsh -n "$root/tools/shell/_heddle" 2>err || wrong 'zsh does not read its file'
fi
if command -v fish >/dev/null; then
    fish -c "source $root/tools/shell/heddle.fish; complete -C'heddle trace vi'" >out 2>err
    has '^view'
fi
finish
