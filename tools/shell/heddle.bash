# SPDX-License-Identifier: BSD-3-Clause
# bash: what heddle(1) may be told. The tool itself says what fits, from its tables.
_heddle() {
    local word="${COMP_WORDS[COMP_CWORD]}" line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("$line")
    done < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null)
    if [ "${#COMPREPLY[@]}" -eq 0 ]; then
        compopt -o default 2>/dev/null
    fi
}
complete -F _heddle heddle
