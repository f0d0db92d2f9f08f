# An interrupt stops a run between steps, which reports what it did.
. ./lib.sh

# Until the program, $pid, catches SIGINT, which is bit 1 of the mask.
await_handler()
{
    for _ in $(seq 200); do
        mask=$(sed -n 's/^SigCgt:.*\(.\)$/\1/p' /proc/$pid/status 2>/dev/null)
        [ $((0x${mask:-0} & 2)) = 2 ] && return
        sleep 0.02
    done
}

interrupt()
{
    kill -INT $pid
    status=0
    wait $pid || status=$?
}

"$gexec" run "$examples/mnist_mlp.yaml" --device cpu --steps 10000000 \
    --json "$work/a.json" --out "$work/params" --loss-out "$work/loss.npy" \
    >"$work/out" 2>"$work/err" &
pid=$!
# The first line of progress says that steps are being done.
for _ in $(seq 200); do
    [ -s "$work/err" ] && break
    sleep 0.05
done
interrupt
last='an interrupted run'
[ $status = 130 ] || fail "an interrupted run exits with $status"
out '^mnist-mlp: interrupted after [0-9]+ of 10000000 steps'
json "$work/a.json"
grep -q '"interrupted": true' "$work/a.json" || fail "the JSON does not say interrupted"
[ -s "$work/params/w1.npy" ] || fail "the parameters were not written"

# So it is while a large state is made.
cat >"$work/large.yaml" <<'END'
gexec: 1
precision: f32
params: {w: {shape: [8000000], init: normal}}
ops: [{op: sum, name: loss, x: w}]
backward: loss
optimizer: {sgd: {lr: 0.1}}
outputs: [loss]
END
"$gexec" run "$work/large.yaml" --device cpu --steps 8 --json "$work/l.json" >"$work/out" 2>"$work/err" &
pid=$!
await_handler
interrupt
last='a run interrupted before its steps'
[ $status = 130 ] || fail "$last exits with $status"
out 'interrupted after [0-9]+ of 8 steps'
json "$work/l.json"
grep -q '"interrupted": true' "$work/l.json" || fail "$last: the JSON does not say interrupted"

# No file of its own comes to stand where a standard stream was closed.
"$gexec" run "$digits" --device cpu --epochs 1000000 -q <&- >&- 2>&- &
pid=$!
last='a run without standard streams'
await_handler
for fd in 0 1 2; do
    [ "$(readlink /proc/$pid/fd/$fd)" = /dev/null ] || fail "$last: $fd is '$(readlink /proc/$pid/fd/$fd)'"
done
interrupt
[ $status = 130 ] || fail "$last ends with $status"
run 0 ops gemm
"$gexec" ops gemm >&- 2>"$work/err" && fail 'a result that is lost gives status 0'
err 'standard output could not be written'

# An interrupted check claims nothing.
"$gexec" check "$examples/mnist_mlp.yaml" --device cpu --samples 1000000 --json "$work/b.json" \
    >"$work/out" 2>"$work/err" &
pid=$!
await_handler
sleep 0.3
interrupt
last='an interrupted check'
[ $status = 130 ] || fail "an interrupted check exits with $status"
out '^Interrupted after [0-9]+ of [0-9]+ comparisons; 0 out of tolerance'
! grep -qE 'All .* within|No gradient is derived' "$work/out" || fail "it claims success"
! grep -qE '^  [a-z0-9]+ +0 .*ok$' "$work/out" || fail "a parameter without a difference is ok"
json "$work/b.json"
grep -q '"passed": null' "$work/b.json" || fail "the JSON claims a verdict"
grep -q '"interrupted": true' "$work/b.json" || fail "the JSON does not say interrupted"
finish
