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

# By hand: x is 1 2 3 4 5 in training, 1 2 3 held out, and w is 1 for good. Batches of 2 have
# squares 1+4, 9+16 and 25, in all 55 and a mean of 11; held out 14.
npy() # npy FILE DESCR SHAPE BYTES
{
    printf '\223NUMPY\001\000\166\000' >"$1"
    printf '%-117s\n' "{'descr': '$2', 'fortran_order': False, 'shape': ($3,), }" >>"$1"
    printf "$4" >>"$1"
}
one='\000\000\200\077' two='\000\000\000\100' three='\000\000\100\100'
npy "$work/five.npy" '<f4' 8 "$one$two$three\\000\\000\\200\\100\\000\\000\\240\\100$one$two$three"
npy "$work/zero.npy" '<f4' 8 "$(printf '\\000\\000\\000\\000%.0s' 1 2 3 4 5 6 7 8)"
npy "$work/held.npy" '<i4' 8 "$(printf '\\00%d\\000\\000\\000' 0 0 0 0 0 1 1 1)"
cat >"$work/tiny.yaml" <<'END'
gexec: 1
dims: {batch: 2}
precision: f32
data: {x: five.npy, y: zero.npy, split: held.npy, epochs: 2}
inputs: {x: {shape: [batch]}, y: {shape: [batch]}}
params: {w: {shape: [1], init: {constant: 1}}}
ops:
  - {op: mul, name: wx, a: x, b: w}
  - {op: mse, name: loss, x: wx, target: y, reduction: sum}
  - {op: mse, name: mean, x: wx, target: y}
  - {op: scale, name: half, x: loss, factor: 0.5}
  - {op: add, name: both, a: loss, b: mean}
backward: loss
optimizer: {sgd: {lr: 0}}
outputs: [mean, half, both]
END
for batch in 2 3 5 8; do
    run 0 run "$work/tiny.yaml" --device cpu --set batch=$batch --json "$work/tiny.json"
    err '^epoch 1, step [0-9]: mean of the epoch  loss 55 \(sum\)  mean 11  half 27.5 \(sum\)  both [0-9.]* \(mean of steps\)$'
    err '^epoch 2, step [0-9]*: held out  loss 14 \(sum\)  mean 4.667  half 7 \(sum\)  both [0-9.]* \(mean of steps\)$'
    out '^  last epoch +loss 55 \(sum\)  mean 11  half 27.5 \(sum\)  both [0-9.]* \(mean of steps\)  \(5 rows\)$'
    out '^  held out +loss 14 \(sum\)  mean 4.66667  half 7 \(sum\)  both [0-9.]* \(mean of steps\)  \(3 rows\)$'
    # Batches of 2: 5 + 2.5, 25 + 12.5 and 25 + 25 make 95 in 3 steps; held out 5 + 2.5, 9 + 9.
    case $batch in
    2) both='31.6667 12.75' ;;
    3) both='40.0833 18.6667' ;; # 14 + 14/3 and 41 + 20.5
    *) both='66 18.6667' ;;
    esac
    out "^  last epoch .*  both ${both% *} "
    out "^  held out .*  both ${both#* } "
    grep -A 5 '"averages"' "$work/tiny.json" | tr -d ' \n' |
        grep -q '"averages":{"loss":"sum","mean":"mean","half":"sum","both":"mean_of_steps"}' ||
        fail "$last: the JSON has other averages"
    [ "$(grep -c '"loss": 55' "$work/tiny.json")" = 2 ] || fail "$last: the JSON has another sum"
    [ "$(grep -c '"loss": 14' "$work/tiny.json")" = 2 ] || fail "$last: the JSON has another sum held out"
done

# By hand: a row of logits x and 0 costs log(1 + exp(x)) with label 1, log(1 + exp(-x)) with
# label 0. x is as above. In training the rows 1 and 2 are ignored, all of the first batch of
# two; 3 and 4 have label 1, and 5 has label 0: a mean of 7.073452 / 3. Held out 1 and 2 have
# label 1, and 3, the last batch of two, is ignored: 3.440190 / 2.
zero='\000\000\000\000' ignored='\234\377\377\377' first='\001\000\000\000'
npy "$work/pairs.npy" '<f4' '8, 2' "$one$zero$two$zero$three$zero\\000\\000\\200\\100$zero\\000\\000\\240\\100$zero$one$zero$two$zero$three$zero"
npy "$work/some.npy" '<i4' 8 "$ignored$ignored$first$first$zero$first$first$ignored"
cat >"$work/some.yaml" <<'END'
gexec: 1
dims: {batch: 2}
precision: f32
data: {x: pairs.npy, y: some.npy, split: held.npy, epochs: 2}
inputs: {x: {shape: [batch, 2]}, y: {shape: [batch], dtype: i32}}
params: {w: {shape: [2], init: {constant: 1}}}
ops:
  - {op: mul, name: xw, a: x, b: w}
  - {op: softmax_cross_entropy, name: loss, logits: xw, labels: y, ignore_index: -100}
  - {op: softmax_cross_entropy, name: all, logits: xw, labels: y, ignore_index: -100, reduction: sum}
  - {op: mul, name: ww, a: w, b: w}
  - {op: sum, name: penalty, x: ww}
  - {op: add, name: more, a: loss, b: penalty}
  - {op: mean, name: x2, x: xw}
  - {op: add, name: two, a: loss, b: x2}
metrics: {perplexity: {loss: loss}}
backward: loss
optimizer: {sgd: {lr: 0}}
outputs: [all, more, x2, two]
END
some() # some FLAG...: all figures but that of two means over different rows
{
    run 0 run "$work/some.yaml" --device cpu "$@"
    out '^  last epoch +loss 2\.35782  all 7\.07345 \(sum\)  more 4\.35782  x2 1\.5  two [0-9a-z.]+ \(mean of steps\)  perplexity 10\.5679  \(5 rows\)$'
    out '^  held out +loss 1\.72009  all 3\.44019 \(sum\)  more 3\.72009  x2 1  two [0-9a-z.]+ \(mean of steps\)  perplexity 5\.58506  \(3 rows\)$'
}
for batch in 1 2 3 4 5 8; do
    some --set batch=$batch
    ! grep -q 'not finite' "$work/err" || fail "$last: a batch without labels is taken for a mistake"
    some --set batch=$batch --stream -q
done
sed 's/epochs: 2/epochs: 3, shuffle: true/' "$work/some.yaml" >"$work/order.yaml"
mv "$work/order.yaml" "$work/some.yaml"
for batch in 1 2 3; do
    some --set batch=$batch -q
    some --set batch=$batch -q --stream
done
# What follows a part of such an epoch starts where the shuffle stands.
run 0 run "$work/some.yaml" --device cpu -q --steps 4 --out "$work/part"
some --set batch=2 -q --resume "$work/part" --epochs 2
# Labels that a slice made cannot be counted: that is said.
sed '/op: mul, name: xw/a\  - {op: slice, name: z, x: y, axis: 0, start: 0, stop: batch}' "$work/some.yaml" |
    sed '/name: loss/s/labels: y/labels: z/' >"$work/slice.yaml"
run 0 run "$work/slice.yaml" --device cpu -q
out '^  held out +loss nan \(mean of steps\)  all 3\.44019 \(sum\)'
# A metric has no ignore_index: which op it was, and what to do.
sed 's/^metrics: .*/metrics: {accuracy: {logits: xw, labels: y}}/' "$work/some.yaml" >"$work/accuracy.yaml"
for flag in '' --stream; do
    run 2 run "$work/accuracy.yaml" --device cpu -q $flag
    err "some\.npy: row 0: label -100 is not in \[0, 2\); 'accuracy' \(accuracy\) takes no ignore_index: leave it out, or give it labels of its own\$"
done
sed 's/, ignore_index: -100}/}/' "$work/some.yaml" >"$work/plain.yaml"
run 2 run "$work/plain.yaml" --device cpu -q
err "label -100 is not in \[0, 2\); 'loss' \(softmax_cross_entropy\) is given no ignore_index\$"

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
for flag in '--lanes 2' '--order data-first'; do
    run 0 run "$examples/inference.yaml" --device cpu $flag
    err "^gexec run: ${flag% *} changes nothing on the CPU\$"
done
run 2 run "$examples/inference.yaml" --device cpu --order data
err 'did you mean data-first\?'

cat >"$work/nan.yaml" <<'EOF2'
gexec: 1
inputs: {x: {shape: [], init: {constant: 1.0e38}}}
ops:
  - {op: scale, name: inf, x: x, factor: 1.0e10}
  - {op: sub, name: none, a: inf, b: inf}
outputs: [none]
EOF2
run 0 run "$work/nan.yaml" --device cpu -q
out '^  none f32 \[\]  nan$'

# What cannot be written is found before the first step: status 2, and nothing is done.
for arguments in "--json $work/nowhere/f" "--loss-out $work/nowhere/f" \
    "--out w1=$work/nowhere/f" "--out $work/nowhere/f" "--plan $work/nowhere/f"; do
    run 2 run "$digits" --device cpu $arguments
    out_is_empty
    err "^gexec run: $arguments: the folder $work/nowhere/?: No such file or directory\$"
    [ "$(wc -l <"$work/err")" = 2 ] || fail "$last: steps were done"
done
# A name that a file may have and its first, unfinished form may not; a folder that takes none.
long=$work/$(printf 'x%.0s' $(seq 250))
for path in "$long" "${long}xxxxxxx" /proc/x; do
    for arguments in "--json $path" "--loss-out $path" "--out w1=$path" "--plan $path" "--out $path"; do
        [ "$arguments" = "--out $long" ] && continue # a folder has its name at once
        run 2 run "$digits" --device cpu $arguments
        out_is_empty
        err "^gexec run: $arguments: $path cannot be written: [A-Z]"
        [ "$(wc -l <"$work/err")" = 2 ] || fail "$last: steps were done"
    done
done
run 2 run "$digits" --device cpu --out /proc
err '^gexec run: --out /proc: /proc cannot be written: '
# Looking leaves nothing behind, and what stands there already stays when the run fails.
mkdir "$work/probed"
run 2 run "$work/nowhere.yaml" --device cpu --json "$work/probed/a" --out "$work/probed" --loss-out "$work/probed/l"
nothing_left "$work/probed"
run 2 run "$work/nowhere.yaml" --device cpu --out "$work/probed/folder"
nothing_left "$work/probed"
echo kept >"$work/probed/a"
echo kept >"$work/probed/a.part"
run 2 run "$work/nowhere.yaml" --device cpu --json "$work/probed/a"
run 0 run "$digits" --device cpu -q --steps 1 --json "$work/probed/b"
[ "$(cat "$work/probed/a" "$work/probed/a.part" | tr -d '\n')" = keptkept ] || fail "$last: a file is lost"
echo kept >"$work/probed/b.part"
run 0 run "$digits" --device cpu -q --steps 1 --json "$work/probed/b"
[ "$(cat "$work/probed/b.part")" = kept ] || fail "$last: another file is lost"
run 2 run "$digits" --device cpu --json "$work"
err ': this is a folder; expected a file$'
run 2 run "$digits" --device cpu --out "$work/first/w1.npy"
err 'w1.npy is no folder$'
run 2 check "$digits" --device cpu --json "$work/nowhere/a.json"
err '^gexec check: --json '
run 2 run "$examples/inference.yaml" --device cpu --out y="$work/a.npy" --out w1="$work/a.npy"
err '^gexec run: --out y=.*a.npy and --out w1=.*a.npy are one file$'
run 2 run "$examples/inference.yaml" --device cpu --out y="$work/a.npy" --json "$work/./a.npy"
err 'are one file$'
for flag in --json --loss-out; do
    cp "$examples/inference.yaml" "$work/model.yaml"
    run 2 run "$work/model.yaml" --device cpu "$flag" "$work/model.yaml"
    err "^gexec run: $flag .*model.yaml would replace a file that the command reads\$"
    same "$work/model.yaml" "$examples/inference.yaml"
done
run 0 run "$examples/inference.yaml" --device cpu -q --out w1="$work/w1.npy"
run 2 run "$examples/inference.yaml" --device cpu --in w1="$work/w1.npy" --json "$work/w1.npy"
err 'would replace a file that the command reads'
run 0 run "$examples/inference.yaml" --device cpu -q --in w1="$work/w1.npy" --out w1="$work/w1.npy"
run 0 ops relu --json "$work/relu"
(cd "$work" && "$gexec" ops relu --json relu >"$work/out" 2>"$work/err") ||
    fail 'the name of an op is taken for a file'

# What fails only then: status 4, everything else is delivered, and nothing is left of it.
mkdir "$work/empty" "$work/late"
(ulimit -f 64; trap '' XFSZ
 "$gexec" run "$digits" --device cpu -q --epochs 1 --out w1="$work/empty/w1.npy" \
     --out b1="$work/late/b1.npy" --out "$work/late/all" --loss-out "$work/late/loss.npy" \
     --json "$work/late/a.json" >"$work/out" 2>"$work/err")
status=$?
last='a run whose parameters have no room'
[ $status = 4 ] || fail "$last ends with $status"
out '^digits-mlp: 23 steps'
[ "$(grep -c '^gexec run: .*w1.npy' "$work/err")" = 2 ] || fail "$last does not name both"
json "$work/late/a.json"
[ -s "$work/late/all/b2.npy" ] && [ ! -e "$work/late/all/w1.npy" ] ||
    fail "$last writes a folder otherwise"
[ -s "$work/late/b1.npy" ] && [ -s "$work/late/loss.npy" ] || fail "$last drops the others"
nothing_left "$work/empty"
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

# A loss that is no number is told once, and stands in the result.
sed 's/constant: 0.2/constant: 1.0e+30/' "$examples/handwritten_backward.yaml" >"$work/wild.yaml"
run 0 run "$work/wild.yaml" --device cpu --steps 60 --evaluate never --json "$work/wild.json"
[ "$(grep -c '^gexec run: the loss is not finite from step [0-9]* on$' "$work/err")" = 1 ] ||
    fail "a loss that is not finite is not told once"
! grep -qe -nan "$work/out" "$work/err" || fail "$last tells the sign of a NaN"
out '^  the loss is not finite from step [0-9]+ on$'
grep -q '"evaluation": null' "$work/wild.json" || fail "a run that evaluates nothing has a time of it"
grep -q '"loss_not_finite_from": [1-9]' "$work/wild.json" || fail "the JSON tells no such step"
run 0 run "$digits" --device cpu --steps 2 -q --json -
grep -q '"loss_not_finite_from": null' "$work/out" || fail "a finite loss is told as another"
grep -A 1 '"shape"' "$work/out" | tr -d ' \n' | grep -q '"shape":\[' || fail "a shape is no array"

# A batch of more rows than there are is no matter of launches, where one has one step.
run 0 run "$digits" --device cpu --steps 1 --set batch=5000
! grep -q 'steps at a time' "$work/err" || fail "$last: a remark on launches of one step"

# A parameter that nothing updates is named, once and not under -q; a frozen one is not.
sed '/name: b1_update/d' "$examples/handwritten_backward.yaml" >"$work/left.yaml"
run 0 run "$work/left.yaml" --device cpu --steps 2
[ "$(grep -c '^gexec run: no optimizer op updates b1$' "$work/err")" = 1 ] || fail "b1 is not named"
run 0 run "$work/left.yaml" --device cpu --steps 2 -q
err_is_empty
sed -i 's/b1: {shape: \[hidden\]}/b1: {shape: [hidden], trainable: false}/' "$work/left.yaml"
run 0 run "$work/left.yaml" --device cpu --steps 2
! grep -q 'no optimizer op' "$work/err" || fail "a frozen parameter is named"
finish
