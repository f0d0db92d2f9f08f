# Data that stream: the same run to the bit; figures of many rows; what is refused.
. ./lib.sh

# 23 steps an epoch, the last a short batch, and a short batch in the evaluation.
run 0 run "$digits" --device cpu --steps 60 --seed 3 --out "$work/whole" \
    --loss-out "$work/whole.npy" --json "$work/whole.json"
! grep -q 'data wait' "$work/out" || fail "$last: tells a data wait where nothing streams"
run 0 run "$digits" --device cpu --stream --steps 60 --seed 3 --out "$work/stream" \
    --loss-out "$work/stream.npy" --json "$work/stream.json"
out '^  data wait +[0-9.]+ [mun]?s a step$'
diff -r "$work/whole" "$work/stream" >&2 || fail "streaming changes the state"
same "$work/whole.npy" "$work/stream.npy"
for name in whole stream; do
    json "$work/$name.json"
    sed -n '/"epoch_means"/,/"outputs"/p; /"curves"/,$p' "$work/$name.json" >"$work/$name.figures"
done
same "$work/whole.figures" "$work/stream.figures"
grep -q '"streams": false' "$work/whole.json" || fail "the JSON does not say that nothing streams"
grep -q '"data_wait_per_step": null' "$work/whole.json" || fail "a wait was told that nobody measured"
grep -q '"streams": true' "$work/stream.json" || fail "the JSON does not say that the data stream"
grep -q '"data_wait_per_step": [0-9]' "$work/stream.json" || fail "no wait in the JSON"

# Stopped in the middle of an epoch and at the short batch; streaming in one part alone.
for steps in 10 22 31; do
    rest=$((60 - steps))
    run 0 run "$digits" --device cpu -q --stream --steps $steps --seed 3 --out "$work/part"
    run 0 run "$digits" --device cpu --stream --steps $rest --seed 3 --resume "$work/part" \
        --out "$work/part"
    ! grep -q -- '--resume' "$work/err" || fail "$last: something was missing"
    diff -r "$work/whole" "$work/part" >&2 || fail "$steps + $rest steps are not 60 steps"
done
run 0 run "$digits" --device cpu -q --steps 30 --seed 3 --out "$work/part"
run 0 run "$digits" --device cpu -q --stream --steps 30 --seed 3 --resume "$work/part" --out "$work/part"
diff -r "$work/whole" "$work/part" >&2 || fail "streaming does not go on where the data were resident"

# The model says it; check and plan know it; the expanded model streams as well.
cp "$examples"/digits_*.npy "$work"
sed 's/^  shuffle: true/&\n  stream: true/' "$digits" >"$work/stream.yaml"
run 0 run "$work/stream.yaml" --device cpu -q --steps 60 --seed 3 --loss-out "$work/said.npy"
same "$work/whole.npy" "$work/said.npy"
run 0 check "$work/stream.yaml" --device cpu -q --set hidden=8 --samples 2
out '^  cpu +loss .*ok$'
run 0 plan "$work/stream.yaml" --device cpu --stage layout
out '^  x +streams '
run 0 plan "$work/stream.yaml" --device cpu --yaml
cp "$work/out" "$work/expanded.yaml"
run 0 run "$work/expanded.yaml" --device cpu -q --steps 20 --seed 3 --loss-out "$work/a.npy"
run 0 run "$digits" --device cpu -q --steps 20 --seed 3 --loss-out "$work/b.npy"
same "$work/a.npy" "$work/b.npy"

# Figures of an epoch and of the held-out rows are those of all rows: 22 batches of 64 and one
# of 30. A perplexity is exp of the mean loss, not the mean of exp.
sed 's/^metrics: .*/metrics: {accuracy: {logits: logits, labels: y}, topk: {logits: logits, labels: y, k: 3}, perplexity: {loss: loss}}/' \
    "$digits" >"$work/metrics.yaml"
run 0 run "$work/metrics.yaml" --device cpu --epochs 2 --json "$work/metrics.json"
err '^epoch 1, step 23: mean of the epoch  loss [0-9.]+  accuracy [0-9.]+  topk [0-9.]+  perplexity [0-9.]+$'
err '^epoch 2, step 46: held out  loss [0-9.]+  accuracy [0-9.]+  topk [0-9.]+  perplexity [0-9.]+$'
out '^  last epoch  loss .*  perplexity [0-9.]+  \(1438 rows\)$'
json "$work/metrics.json"
awk '
    /"epoch_means"/ { part = "mean" }
    /"held_out"/ { part = "held" }
    /"outputs"/ { part = "" }
    /"curves"/ { part = "curve" }
    part != "" && match($0, /"[a-z]+": /) {
        name = substr($0, RSTART + 1, RLENGTH - 4)
        rest = substr($0, RSTART + RLENGTH)
        if (part == "curve") { curve[name] = rest; last = name }
        else figure[part, name, ++n[part, name]] = rest + 0
        next
    }
    part == "curve" { curve[last] = curve[last] $0 }
    function near(a, b) { return (a - b) ^ 2 <= 1e-12 * (1 + b ^ 2) }
    function mean_of(name, epoch, logs,    values, i, sum, value) {
        gsub(/[][ \n]/, "", curve[name])
        split(curve[name], values, ",")
        for (i = 1; i <= 23; i++) {
            value = values[23 * (epoch - 1) + i] + 0
            sum += (logs ? log(value) : value) * (i < 23 ? 64 : 30)
        }
        return logs ? exp(sum / 1438) : sum / 1438
    }
    END {
        for (epoch = 1; epoch <= 2; epoch++) {
            good += near(figure["mean", "loss", epoch], mean_of("loss", epoch, 0))
            good += near(figure["mean", "accuracy", epoch], mean_of("accuracy", epoch, 0))
            good += near(figure["mean", "topk", epoch], mean_of("topk", epoch, 0))
            good += near(figure["mean", "perplexity", epoch], mean_of("perplexity", epoch, 1))
            good += near(figure["held", "perplexity", epoch], exp(figure["held", "loss", epoch]))
            good += figure["held", "topk", epoch] > figure["held", "accuracy", epoch]
            good += figure["held", "rows", epoch] == 359
        }
        if (good != 14) { print good " of 14 figures are right" > "/dev/stderr"; exit 1 }
    }' "$work/metrics.json" || fail "$last: figures of many rows"
run 0 run "$work/metrics.yaml" --device cpu -q --steps 10 --out "$work/ten"
run 0 run "$work/metrics.yaml" --device cpu --steps 20 --resume "$work/ten" --json "$work/metrics.json"
! grep -q 'mean of the epoch' "$work/err" || fail "$last: the mean of an epoch that was not seen whole"

# What does not fit streams, and says so. The file is full of holes.
cat >"$work/big.yaml" <<'MODEL'
gexec: 1
name: big
precision: f32
dims: {batch: 4}
data: {x: big.npy, shuffle: true}
inputs: {x: {shape: [batch, 64]}}
params: {w: {shape: [64, 1], init: he_normal}}
ops:
  - {op: gemm, name: fc, a: x, b: w, out: y}
  - {op: mean, name: loss, x: y}
backward: loss
optimizer: {sgd: {lr: 0.1}}
MODEL
{
    printf '\223NUMPY\001\000\166\000'
    printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (2147483647, 64), }"
} >"$work/big.npy"
if truncate -s $((128 + 2147483647 * 64)) "$work/big.npy" 2>"$work/err"; then
    run 0 run "$work/big.yaml" --device cpu --steps 5
    err '^gexec run: the data set does not fit on the host beside the model: it streams from host memory$'
    out '^  data wait '
    sed -i 's/shuffle: true/&, stream: false/' "$work/big.yaml"
    run 4 run "$work/big.yaml" --device cpu --steps 5
    err 'are free on the host'
fi
rm -f "$work/big.npy"

# What is refused.
run 2 run "$examples/wide.yaml" --device cpu --stream
err '^gexec run: --stream: the model has no data$'
sed 's/^  shuffle: true/&\n  stream: sometimes/' "$digits" >"$work/bad.yaml"
run 2 run "$work/bad.yaml" --device cpu
err 'stream is true, false or auto'
run 0 plan "$digits" --device cpu --yaml
cp "$work/out" "$work/resident.yaml"
run 2 run "$work/resident.yaml" --device cpu --stream
err 'an expanded model is written out to gather its data on the device'
sed 's/\[hidden, 10\]/[hidden, 9]/; s/shape: \[10\]/shape: [9]/' \
    "$work/stream.yaml" >"$work/nine.yaml"
run 2 run "$work/nine.yaml" --device cpu --steps 1
err 'digits_y.npy: row [0-9]+: label 9 is not in \[0, 9\)'
finish
