# Progress on a terminal: one line, drawn again in place.
. ./lib.sh

script -qec true /dev/null </dev/null >/dev/null 2>&1 ||
    { echo "skipped: there is no program 'script', or no pseudo-terminal" >&2; exit 77; }
last='a run on a terminal'
TERM=xterm script -qec "stty cols 100; $gexec run $examples/mnist_mlp.yaml --device cpu --steps 40" \
    /dev/null </dev/null >"$work/out" || fail "it ends with $?"
tr '\r' '\n' <"$work/out" >"$work/lines"
grep -qE '^step 40/40 \[=+\] loss [0-9.e-]+ [0-9.]+ steps/s 00:00 left' "$work/lines" ||
    { fail "no full bar"; cat -v "$work/lines" >&2; }
grep -q 'mnist-mlp: 40 steps' "$work/lines" || fail "no result"
awk '{ gsub(/\033\[K/, "") } length($0) > 100 { exit 1 }' "$work/lines" ||
    fail "a line is wider than the terminal"
TERM=dumb script -qec "$gexec run $examples/inference.yaml --device cpu" /dev/null </dev/null \
    >"$work/out"
! grep -q "$(printf '\033')" "$work/out" || fail "a dumb terminal gets escape sequences"
finish
