# gexec run on the CPU: results, files, what is repeatable, and how it ends.
. ./lib.sh

run 0 run "$digits" --device cpu --epochs 2 --json "$work/a.json" --loss-out "$work/a.npy"
out '^digits-mlp: 46 steps, 2 epochs, on the CPU'
out '^  held out +loss [0-9.]+ +accuracy 0\.[0-9]+ +\(359 rows\)$'
err '^epoch 1, step 23: held out'
err '^epoch 2/2 step 46/46 loss'
json "$work/a.json"
grep -q '"steps": 46' "$work/a.json" || fail "the JSON does not say 46 steps"

# One seed, one result; another seed, another.
run 0 run "$digits" --device cpu --epochs 2 -q --loss-out "$work/b.npy"
err_is_empty
same "$work/a.npy" "$work/b.npy"
run 0 run "$digits" --device cpu --epochs 2 -q --seed 2 --loss-out "$work/c.npy"
! cmp -s "$work/a.npy" "$work/c.npy" || fail "two seeds give the same losses"

# An epoch has 22 whole batches and one of 30 rows; --steps counts both and stops between.
run 0 run "$digits" --device cpu --steps 25 -q
out '^digits-mlp: 25 steps, 1 epoch,'
run 0 run "$digits" --device cpu --steps 23 -q --set batch=63 --evaluate never
out '^digits-mlp: 23 steps, 1 epoch,'
! grep -q 'held out' "$work/out" || fail "--evaluate never evaluates"
run 0 run "$digits" --device cpu --epochs 2 --evaluate end
[ "$(grep -c 'held out' "$work/err")" = 1 ] || fail "--evaluate end does not evaluate once"
# A batch that is larger than the data: one short batch an epoch.
run 0 run "$digits" --device cpu --epochs 2 -q --set batch=4096
out '^digits-mlp: 2 steps, 2 epochs,'

# Held-out figures are means over rows, whatever the batches are: nothing is learnt here,
# so all batch sizes must tell the same. The last batches have 39, 2 and 359 rows.
cp "$examples"/*.npy "$work"
sed 's/constant: 0.2/constant: 0/' "$examples/handwritten_backward.yaml" >"$work/still.yaml"
for batch in 64 7 1000; do
    run 0 run "$work/still.yaml" --device cpu --steps 1 -q --set batch=$batch
    sed -n 's/^  held out .*loss \([0-9.]\{6\}\).*accuracy \([0-9.]\{5\}\).*/\1 \2/p' "$work/out"
done | sort -u >"$work/held"
[ "$(wc -l <"$work/held")" = 1 ] || fail "batches of evaluation change its result: $(cat "$work/held")"

run 0 run "$digits" --device cpu --steps 1 -q --json -
json "$work/out"

# Parameters go out and come in again, to the same bits.
mkdir "$work/first" "$work/second"
run 0 run "$digits" --device cpu --steps 30 -q --out "$work/first"
for name in w1 b1 w2 b2 loss; do
    [ -s "$work/first/$name.npy" ] || fail "--out did not write $name.npy"
done
run 0 run "$examples/inference.yaml" --device cpu -q --out "$work/first" --out y="$work/y.npy"
out '^  y f32 \[8, 16\]  mean'
run 0 run "$examples/inference.yaml" --device cpu -q --seed 7 --in w1="$work/first/w1.npy" \
    --in w2="$work/first/w2.npy" --out w1="$work/second/w1.npy" --out y="$work/y7.npy"
same "$work/first/w1.npy" "$work/second/w1.npy"
! cmp -s "$work/y.npy" "$work/y7.npy" || fail "another input gives the same output"
# A tensor that is no output of the model is kept when --out names it.
run 0 run "$examples/inference.yaml" --device cpu -q --out h="$work/h.npy"
[ -s "$work/h.npy" ] || fail "--out h=... wrote nothing"

run 0 run "$examples/mnist_mlp.yaml" --device cpu --steps 3 --set hidden=8
out '^mnist-mlp: 3 steps, on the CPU'
run 0 run "$examples/inference.yaml" --device cpu -q --lanes 2
run 0 run "$examples/inference.yaml" --device cpu --lanes 2
err 'change nothing on the CPU'

# What cannot be written: status 4, and nothing left of it.
mkdir "$work/empty"
run 4 run "$examples/inference.yaml" --device cpu -q --json "$work/nowhere/a.json"
err 'nowhere/a.json: No such file or directory'
run 4 run "$examples/inference.yaml" --device cpu -q --out y="$work/nowhere/y.npy"
if [ -w /dev/full ]; then
    status=0
    "$gexec" run "$examples/inference.yaml" --device cpu -q >/dev/full 2>"$work/err" || status=$?
    [ $status = 4 ] || fail "a full standard output gives status $status"
    run 4 run "$examples/inference.yaml" --device cpu -q --json /dev/full
    [ -c /dev/full ] || fail "/dev/full was replaced"
fi
(ulimit -f 1; trap '' XFSZ
 "$gexec" run "$digits" --device cpu -q --epochs 3 --json "$work/empty/a.json" >/dev/null 2>&1) &&
    fail "a file that could not be written whole gives status 0"
(ulimit -f 1; trap '' XFSZ
 "$gexec" run "$digits" --device cpu -q --epochs 1 --out w1="$work/empty/w1.npy" >/dev/null 2>&1) &&
    fail "a tensor that could not be written whole gives status 0"
last='a run without room for its files'
nothing_left "$work/empty"
finish
