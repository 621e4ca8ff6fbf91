#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# heddle run --generate: a decoder that continues what repeats in its prompt.
# shellcheck source=tests/integration/cli/lib.sh
. "$2/tests/integration/cli/lib.sh"
echo_onnx=$root/examples/networks/echo.onnx
flowers=$root/examples/networks/flowers.onnx

# tokens WANT ARGS: the first line of what is printed.
tokens() {
    want=$1
    shift
    ok run "$echo_onnx" "$@"
    [ "$(head -n 1 out)" = "$want" ] || wrong "run $*: not the tokens $want"
}

tokens '3 9 5 7 3 9' --generate 6 --prompt-ids 7,3,9,5,7
tokens '3 9 5 7 3 9' --generate 6 --prompt-ids 7,3,9,5,7 --greedy
tokens '3 9 5' --generate 6 --prompt-ids 7,3,9,5,7 --eos 5
# The scores are far apart, so a drawn token is the same.
tokens '3 9 5 7 3 9' --generate 6 --prompt-ids 7,3,9,5,7 --temperature 0.5 --top-k 3 --top-p 0.9
grep -q 'keys and values: in place' out || wrong 'keys and values are not in place'
python3 - "$root" <<'PY' || wrong 'no prompt can be written'
import struct
head = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 5), }"
head += " " * (117 - len(head)) + "\n"
with open("prompt.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
            struct.pack("<5q", 7, 3, 9, 5, 7))
PY
tokens '3 9 5 7' --generate 4 --input prompt.npy
tokens '3 9 5 7' --generate 4 --input input_ids=prompt.npy
ok run "$echo_onnx" --generate 4 --prompt-ids 7,3,9,5,7 --json --logits logits.npy
python3 - <<'PY' || wrong 'the JSON of run --generate'
import json
import os
j = json.load(open("out"))
assert j["tokens"] == [3, 9, 5, 7] and j["end"] == "count" and j["prompt_tokens"] == 5, j
assert j["decode_tokens"] == 3 and j["prefill_ms"] > 0 and j["decode_tokens_per_s"] > 0, j
assert j["past"] == "in place", j
assert os.path.getsize("logits.npy") == 128 + 16 * 4
PY
# The same seed gives the same tokens, another one others.
for seed in 1 1 2; do
    ok run "$echo_onnx" --generate 30 --prompt-ids 1,2,3 --temperature 9 --seed $seed
    head -n 1 out >>drawn
done
[ "$(sed -n 1p drawn)" = "$(sed -n 2p drawn)" ] || wrong 'the same seed gives other tokens'
[ "$(sed -n 1p drawn)" != "$(sed -n 3p drawn)" ] || wrong 'another seed gives the same tokens'

fails 2 'which prompt' run "$echo_onnx" --generate 4
fails 2 'two prompts' run "$echo_onnx" --generate 4 --prompt-ids 1 --input prompt.npy
fails 2 'no list of tokens' run "$echo_onnx" --generate 4 --prompt-ids 1,,2
fails 2 'no number for --temperature' run "$echo_onnx" --generate 4 --prompt-ids 1 --temperature x
fails 2 'from 0 to 1' run "$echo_onnx" --generate 4 --prompt-ids 1 --top-p 2
for eos in 1.5 -3 1e300; do
    fails 2 "'$eos' is no token" run "$echo_onnx" --generate 4 --prompt-ids 1 --eos "$eos"
done
fails 2 'go with --generate' run "$echo_onnx" --prompt-ids 1,2
fails 2 'highest score' run "$echo_onnx" --generate 4 --prompt-ids 1 --greedy --top-k 2
fails 1 'token 16 of the prompt' run "$echo_onnx" --generate 4 --prompt-ids 1,16
fails 1 "no input 'input_ids'" run "$flowers" --generate 4 --prompt-ids 1
fails 1 'none.npy' run "$echo_onnx" --generate 4 --input none.npy
# The network has 64 places.
"$heddle" run "$echo_onnx" --generate 80 --prompt-ids 1,2,1 >out 2>err && wrong 'beyond the places'
grep -q 'Gather' err || wrong 'no sentence on the places'
finish
