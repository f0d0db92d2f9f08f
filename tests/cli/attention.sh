# Attention from products of a batch trains and checks, whatever the batch is.
. ./lib.sh

model=$root/tests/data/good/attention.yaml
for precision in f32 tf32 bf16 f16; do
    sed "s/^name: .*/&\nprecision: $precision/" "$model" >"$work/model.yaml"
    run 0 run "$work/model.yaml" --device cpu --steps 500
    loss=$(awk '/last step +loss/ { print $4 }' "$work/out")
    awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 0.1) }' ||
        fail "$precision: the loss after 500 steps is '$loss'"
    run 0 check "$work/model.yaml" --device cpu -q
done

# What gexec plan prints loads again to the same numbers.
run 0 plan "$model" --device cpu --yaml
cp "$work/out" "$work/expanded.yaml"
grep -q 'sum_batch: true' "$work/expanded.yaml" || fail "no sum over the batch is derived"
run 0 run "$model" --device cpu --steps 5 -q --out "$work/a"
run 0 run "$work/expanded.yaml" --device cpu --steps 5 -q --out "$work/b"
cmp "$work/a/y.npy" "$work/b/y.npy" || fail "the expanded model gives other numbers"

run 0 run "$model" --device cpu --steps 2 -q --set batch=1 --set seq=1

run 0 ops gemm
out '^  epilogue.order +list of scale, bias, residual, act '
finish
