# SPDX-License-Identifier: BSD-3-Clause
# fish: what heddle(1) may be told. The tool itself says what fits, from its tables.
function __heddle_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] complete $words[2..-1] 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c heddle -f -a '(__heddle_complete)'
