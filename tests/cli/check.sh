# gexec check: it passes what is right and fails what is wrong.
. ./lib.sh

run 0 check "$digits" --device cpu --set hidden=16
err_is_empty
out '^All [0-9]+ comparisons are within tolerance'
out '^  w1 .* ok$'
run 0 check "$examples/wide.yaml" --device cpu --set batch=8 --set width=16 --samples 2
run 0 check "$examples/deep_narrow.yaml" --device cpu -q --set batch=4 --set width=8 --json -
json "$work/out"
run 0 check "$examples/inference.yaml" --device cpu
out '^No gradient is derived'
run 0 check "$digits" --device cpu --set hidden=8 --samples 0
out '^No gradient is held against differences: --samples 0$'
! grep -q 'No gradient is derived' "$work/out" || fail "gradients are derived"
run 0 check --help
out '^when something is out of tolerance. What is allowed'

# A backward pass that forgets the activation is found by the differences.
cp "$examples"/*.npy "$work"
cp "$examples/handwritten_backward.yaml" "$work/right.yaml"
sed 's/, y: h, act: relu, dx/, dx/' "$work/right.yaml" >"$work/wrong.yaml"
! cmp -s "$work/right.yaml" "$work/wrong.yaml" || fail "the model was not changed"
run 0 check "$work/right.yaml" --device cpu -q --set hidden=16
run 1 check "$work/wrong.yaml" --device cpu -q --set hidden=16 --json "$work/wrong.json"
out '^FAILED: [0-9]+ of [0-9]+ comparisons'
out '^  b1 .*FAILED$'
json "$work/wrong.json"
grep -q '"passed": false' "$work/wrong.json" || fail "the JSON does not say that it failed"

# So is a gradient whose name is misspelt, which leaves its parameter as it is.
sed -e 's/dbias: b1.grad/dbias: b1.grd/' -e '/name: b1_update/d' "$work/right.yaml" >"$work/left.yaml"
run 1 check "$work/left.yaml" --device cpu -q --set hidden=16 --json "$work/left.json"
out '^  b1 .*FAILED$'
out '^  b1: no optimizer op updates it; the loss depends on it'
grep -A 1 '"parameter": "b1"' "$work/left.json" | grep -q '"updated": false' || fail "the JSON does not tell"
sed 's/b1: {shape: \[hidden\]}/b1: {shape: [hidden], trainable: false}/' "$work/left.yaml" >"$work/frozen.yaml"
run 0 check "$work/frozen.yaml" --device cpu -q --set hidden=16
# One that the loss does not depend on passes, and one under another name is not held back.
sed -e 's/^  b2: .*/&\n  spare: {shape: [3]}/' "$work/right.yaml" >"$work/spare.yaml"
run 0 check "$work/spare.yaml" --device cpu -q --set hidden=16
sed 's/b1\.grad/b1.slope/' "$work/right.yaml" >"$work/other.yaml"
run 0 check "$work/other.yaml" --device cpu -q --set hidden=16
out '^  b1: there is no b1.grad, so its gradient is not checked$'

# The gradient of a key's bias is 0 but for rounding, and moves it under adamw.
cat >"$work/key_bias.yaml" <<'END'
gexec: 1
name: key-bias
inputs:
  x: {shape: [2, 5, 8], init: {normal: {std: 1}}}
  t: {shape: [2, 5, 8], init: {normal: {std: 1}}}
params:
  wq: {shape: [8, 8], init: xavier_normal}
  wk: {shape: [8, 8], init: xavier_normal}
  bk: {shape: [8], init: {normal: {std: 0.1}}}
ops:
  - {op: gemm, name: q, a: x, b: wq}
  - {op: gemm, name: k, a: x, b: wk, epilogue: {bias: bk}}
  - {op: gemm, name: s, a: q, b: k, trans_b: true}
  - {op: softmax, name: p, x: s}
  - {op: gemm, name: o, a: p, b: x}
  - {op: mse, name: loss, x: o, target: t}
backward: loss
optimizer: {adamw: {lr: 1.0e-3}}
outputs: [loss]
END
run 0 check "$work/key_bias.yaml" --device cpu --json "$work/key_bias.json"
out '^  cpu +bk\.grad .* ok, rounding$'
out '^  cpu +wk\.grad .* ok$'
out '^  rounding: terms cancel'
json "$work/key_bias.json"
grep -A 10 '"tensor": "bk.grad"' "$work/key_bias.json" | grep -q '"by_rounding": true' ||
    fail "the JSON does not tell what rounding decided"
for precision in f16 bf16 tf32; do
    sed "s/^name:/precision: $precision\nname:/" "$work/key_bias.yaml" >"$work/narrow.yaml"
    run 0 check "$work/narrow.yaml" --device cpu -q
done

# Where the loss bends there is no derivative to hold a gradient against.
cat >"$work/bend.yaml" <<'END'
gexec: 1
name: bend
params:
  w: {shape: [5]}
  v: {shape: [5], init: ones}
ops:
  - {op: relu, name: h, x: w}
  - {op: add, name: y, a: h, b: v}
  - {op: mean, name: loss, x: y}
backward: loss
optimizer: {sgd: {lr: 0.1}}
outputs: [loss]
END
run 0 check "$work/bend.yaml" --device cpu --json "$work/bend.json"
out '^All [0-9]+ comparisons are within tolerance; n/a for 1 more, told below \('
out '^  w +0  n/a +n/a +n/a  n/a$'
out '^  w: 4 of 4 elements left out: the loss bends there'
out '^  v +4 .*ok$'
json "$work/bend.json"
grep -A 9 '"parameter": "w"' "$work/bend.json" | grep -q '"bends": 4' || fail "the JSON does not count bends"
grep -A 9 '"parameter": "w"' "$work/bend.json" | grep -q '"ok": null' || fail "the JSON judges what is n/a"

# NaN passes nothing.
cat >"$work/nan.yaml" <<'END'
gexec: 1
name: nan
inputs:
  x: {shape: [2, 3], init: {constant: 1.0e+38}}
params:
  w: {shape: [3, 2], init: {constant: 1.0e+38}}
ops:
  - {op: gemm, name: h, a: x, b: w}
  - {op: sub, name: y, a: h, b: h}
outputs: [h, y]
END
run 1 check "$work/nan.yaml" --device cpu
! grep -qe -nan "$work/out" || fail "$last tells the sign of a NaN"
finish
