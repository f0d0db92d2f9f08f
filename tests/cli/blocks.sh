# gexec run --blocks: one line of JSON for each line of input.
. ./lib.sh

printf '%s\n' 'time 3' 'losses 3' '' 'losses 4' 'time' 'time 0' 'time 2 x' 'frob' 'reset' \
    'losses 1' 'time 2' 'losses 2' 'quit' 'time 1' |
    "$gexec" run "$examples/mnist_mlp.yaml" --device cpu --set hidden=8 --blocks -q >"$work/out" ||
    fail "--blocks ends with $?"
last='gexec run --blocks'
awk -v lines=1 -f json.awk "$work/out" || fail "a line is no JSON"
[ "$(wc -l <"$work/out")" = 13 ] || fail "expected 13 answers, found $(wc -l <"$work/out")"
[ "$(grep -c '"error"' "$work/out")" = 7 ] || fail "expected 7 errors"
sed -n 1p "$work/out" | grep -q '"ready": true' || fail "the first line does not say ready"
sed -n 2p "$work/out" | grep -q '"steps": 3, "host_s": [0-9.e-]*, .*"device_s": null' ||
    fail "a block of three steps is not told"
# What a CPU has not, and no step has measured, is no 0.
sed -n 1p "$work/out" | grep -q '"launches_per_step": null, "graph_nodes": null' ||
    fail "the first line counts launches on the CPU"
# The state after reset is the first one: the same two losses.
first=$(sed -n 3p "$work/out" | sed 's/.*\[\([^,]*, [^,]*\),.*/\1/')
again=$(sed -n 13p "$work/out" | sed 's/.*\[\(.*\)\].*/\1/')
[ "$first" = "$again" ] || fail "after reset the losses are $again, first they were $first"

# A line without end is one line: one error, and its tail is no command.
{
    printf 'time 2\n%0300d time 1\nlosses 1\n' 0
    printf '%0255d\n' 0
    printf '\n \t\ntime\0 1\ntime 1\0\n\0\ntime 3'
} | "$gexec" run "$examples/mnist_mlp.yaml" --device cpu --set hidden=8 --blocks -q >"$work/out" ||
    fail "--blocks ends with $?"
awk -v lines=1 -f json.awk "$work/out" || fail "a line is no JSON"
sed 's/^{ *"\([a-z]*\)".*/\1/' "$work/out" | tr '\n' ' ' >"$work/kinds"
[ "$(cat "$work/kinds")" = 'ready steps error losses error error error error error error steps ' ] ||
    fail "long lines are answered with: $(cat "$work/kinds")"
[ "$(grep -c 'the line is too long' "$work/out")" = 1 ] || fail "no line is told to be too long"
[ "$(grep -c 'the line holds a byte 0' "$work/out")" = 3 ] || fail "no line is told to hold a byte 0"
finish
