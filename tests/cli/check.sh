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

# NaN passes nothing.
cat >"$work/nan.yaml" <<'END'
gexec: 1
name: nan
inputs:
  x: {shape: [2, 3], init: {constant: 1.0e+38}}
params:
  w: {shape: [3, 2], init: {constant: 1.0e+38}}
ops:
  - {op: gemm, name: y, a: x, b: w}
outputs: [y]
END
run 1 check "$work/nan.yaml" --device cpu
finish
