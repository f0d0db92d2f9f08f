# The digits model learns: median held-out accuracy over five seeds.
. ./lib.sh

for seed in 1 2 3 4 5; do
    run 0 run "$digits" --device cpu -q --seed $seed
    sed -n 's/^  held out .*accuracy \([0-9.]*\) .*/\1/p' "$work/out"
done | sort -n >"$work/accuracies"
median=$(sed -n 3p "$work/accuracies")
echo "median held-out accuracy $median of" $(cat "$work/accuracies")
awk -v median="$median" 'BEGIN { exit !(median >= 0.97) }' || fail "the median is $median"
run 0 run "$examples/handwritten_backward.yaml" --device cpu -q
out '^  held out .*accuracy 0\.9'
finish
