# A model of ops that work element by element, reductions and softmax trains and checks.
. ./lib.sh

model=$root/tests/data/good/elementwise.yaml
for precision in f32 tf32 bf16 f16; do
    sed "s/^name: .*/&\nprecision: $precision/" "$model" >"$work/model.yaml"
    [ $precision != f16 ] || sed -i 's/^optimizer: {/&loss_scale: 4096, master: f32, /' "$work/model.yaml"
    run 0 run "$work/model.yaml" --device cpu --steps 300
    loss=$(awk '/last step +loss/ { print $4 }' "$work/out")
    awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 0.05) }' ||
        fail "$precision: the loss after 300 steps is '$loss'"
    # a start at which no row has two values so near its largest that rounding chooses
    run 0 check "$work/model.yaml" --device cpu -q --seed 2
done

# What gexec plan prints loads again to the same numbers, lists of integers too.
run 0 plan "$model" --device cpu --yaml
cp "$work/out" "$work/expanded.yaml"
grep -q 'shape\.0' "$work/expanded.yaml" || fail "no list stands in the expanded model"
run 0 run "$model" --device cpu --steps 5 -q --out "$work/a"
run 0 run "$work/expanded.yaml" --device cpu --steps 5 -q --out "$work/b"
cmp "$work/a/y.npy" "$work/b/y.npy" || fail "the expanded model gives other numbers"

run 0 run "$model" --device cpu --steps 2 -q --set batch=1 --set width=1

run 0 ops sum
out '^  axis +integers '
finish
