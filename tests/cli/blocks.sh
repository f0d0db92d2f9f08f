# gexec run --blocks: one line of JSON for each line of input.
. ./lib.sh

printf '%s\n' 'time 3' 'losses 3' '' 'losses 4' 'time' 'time 0' 'time 2 x' 'frob' 'reset' \
    'losses 1' 'time 2' 'losses 2' 'quit' 'time 1' |
    "$gexec" run "$examples/mnist_mlp.yaml" --device cpu --set hidden=8 --blocks -q >"$work/out" ||
    fail "--blocks ends with $?"
last='gexec run --blocks'
awk -v lines=1 -f json.awk "$work/out" || fail "a line is no JSON"
[ "$(wc -l <"$work/out")" = 12 ] || fail "expected 12 answers, found $(wc -l <"$work/out")"
[ "$(grep -c '"error"' "$work/out")" = 6 ] || fail "expected 6 errors"
sed -n 1p "$work/out" | grep -q '"ready": true' || fail "the first line does not say ready"
sed -n 2p "$work/out" | grep -q '"steps": 3, "host_s": [0-9.e-]*, .*"device_s": null' ||
    fail "a block of three steps is not told"
# The state after reset is the first one: the same two losses.
first=$(sed -n 3p "$work/out" | sed 's/.*\[\([^,]*, [^,]*\),.*/\1/')
again=$(sed -n 12p "$work/out" | sed 's/.*\[\(.*\)\].*/\1/')
[ "$first" = "$again" ] || fail "after reset the losses are $again, first they were $first"

# A line without end is one line: one error, and its tail is no command.
{
    printf 'time 2\n%0300d time 1\nlosses 1\n' 0
    printf '%0255d\n' 0
    printf 'time 1\0\ntime 3'
} | "$gexec" run "$examples/mnist_mlp.yaml" --device cpu --set hidden=8 --blocks -q >"$work/out" ||
    fail "--blocks ends with $?"
awk -v lines=1 -f json.awk "$work/out" || fail "a line is no JSON"
sed 's/^{ *"\([a-z]*\)".*/\1/' "$work/out" | tr '\n' ' ' >"$work/kinds"
[ "$(cat "$work/kinds")" = 'ready steps error losses error steps steps ' ] ||
    fail "long lines are answered with: $(cat "$work/kinds")"
[ "$(grep -c 'the line is too long' "$work/out")" = 1 ] || fail "no line is told to be too long"
finish
