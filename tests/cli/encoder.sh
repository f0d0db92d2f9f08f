# An encoder in YAML alone learns its copy task, in each precision.
. ./lib.sh

examples=$root/graphs/examples
cp "$examples"/copy_*.npy "$work"
for precision in f32 tf32 bf16 f16; do
    sed "s/^precision: .*/precision: $precision/" "$examples/encoder_copy.yaml" >"$work/model.yaml"
    run 0 run "$work/model.yaml" --device cpu -q
    loss=$(awk '/held out +loss/ { print $4 }' "$work/out")
    awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 0.05) }' ||
        fail "$precision: the held-out loss is '$loss'"
done

# A scale that overflows at first comes down, and the steps that it costs are counted.
sed -e 's/^precision: .*/precision: f16/' \
    -e 's/^optimizer: {/&master: f32, loss_scale: {dynamic: {initial: 1.0e+9}}, /' \
    "$examples/encoder_copy.yaml" >"$work/model.yaml"
run 0 run "$work/model.yaml" --device cpu -q --steps 60
out '^  loss scale  [0-9]+; [1-9][0-9]* updates skipped$'
loss=$(awk '/last step +loss/ { print $4 }' "$work/out")
awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 2.5) }' ||
    fail "under a dynamic scale the loss after 60 steps is '$loss'"
run 0 check "$examples/encoder_copy.yaml" --device cpu --set batch=4 -q
finish
