# An interrupt stops a run between steps, which reports what it did.
. ./lib.sh

"$gexec" run "$examples/mnist_mlp.yaml" --device cpu --steps 10000000 \
    --json "$work/a.json" --out "$work/params" --loss-out "$work/loss.npy" \
    >"$work/out" 2>"$work/err" &
pid=$!
# The first line of progress says that steps are being done.
for _ in $(seq 200); do
    [ -s "$work/err" ] && break
    sleep 0.05
done
kill -INT $pid
status=0
wait $pid || status=$?
last='an interrupted run'
[ $status = 130 ] || fail "an interrupted run exits with $status"
out '^mnist-mlp: interrupted after [0-9]+ of 10000000 steps'
json "$work/a.json"
grep -q '"interrupted": true' "$work/a.json" || fail "the JSON does not say interrupted"
[ -s "$work/params/w1.npy" ] || fail "the parameters were not written"
finish
