# Saved state: a run that goes on from it does the same steps, to the bit.
. ./lib.sh

# digits has 23 steps an epoch, the last a short batch: saved within an epoch, at its end,
# and behind the short batch.
for steps in 10 23 31; do
    rest=$((40 - steps))
    run 0 run "$digits" --device cpu -q --steps 40 --seed 3 --evaluate never \
        --out "$work/whole" --loss-out "$work/whole.npy"
    run 0 run "$digits" --device cpu -q --steps $steps --seed 3 --evaluate never \
        --out "$work/part" --loss-out "$work/a.npy"
    run 0 run "$digits" --device cpu --steps $rest --seed 3 --evaluate never \
        --resume "$work/part" --out "$work/part" --loss-out "$work/b.npy"
    ! grep -q -- '--resume' "$work/err" || fail "$last: something was missing"
    diff -r "$work/whole" "$work/part" >&2 || fail "$steps + $rest steps are not 40 steps"
    tail -c $((8 * 40)) "$work/whole.npy" >"$work/expected"
    cat <(tail -c $((8 * steps)) "$work/a.npy") <(tail -c $((8 * rest)) "$work/b.npy") >"$work/found"
    same "$work/expected" "$work/found"
done
for name in w1 w1.m w1.v gexec.step gexec.sample gexec.epoch gexec.lr loss; do
    [ -s "$work/part/$name.npy" ] || fail "--out DIR did not write $name.npy"
done
[ ! -e "$work/part/gexec.log.npy" ] && [ ! -e "$work/part/data.x.npy" ] ||
    fail "--out DIR wrote the log or the data"

# The epoch under way counts as the first.
run 0 run "$digits" --device cpu -q --steps 10 --out "$work/ten"
run 0 run "$digits" --device cpu -q --epochs 2 --resume "$work/ten"
out '^digits-mlp: 36 steps, 2 epochs,'
run 0 run "$examples/mnist_mlp.yaml" --device cpu -q --set hidden=8 --steps 20 --out "$work/m"
run 0 run "$examples/mnist_mlp.yaml" --device cpu -q --set hidden=8 --steps 10 --out "$work/n"
run 0 run "$examples/mnist_mlp.yaml" --device cpu -q --set hidden=8 --steps 10 \
    --resume "$work/n" --out "$work/n"
diff -r "$work/m" "$work/n" >&2 || fail "10 + 10 steps are not 20 steps"

# In the middle of an accumulation, under a schedule and with groups: sums of gradients, the
# count, the rates and the momentum go on. 23 steps an epoch, so an update spans its end.
cp "$examples"/digits_*.npy "$work"
sed -e 's/^optimizer: .*/optimizer:\n  nesterov: {lr: 0.05}\n  schedule: {cosine: {steps: 12, warmup: 3}}\n  clip_norm: 0.5\n  accumulate: 5\n  groups: [{params: "b?", lr: 0.1, weight_decay: 0}]/' \
    -e 's/^outputs: .*/outputs: [loss, gexec.rate, gexec.rate.1]/' \
    -e 's/^metrics: {/&grad_norm: {}, /' "$digits" >"$work/training.yaml"
for steps in 1 8 24 25; do
    rest=$((40 - steps))
    run 0 run "$work/training.yaml" --device cpu -q --set hidden=16 --steps 40 --seed 3 --out "$work/all"
    run 0 run "$work/training.yaml" --device cpu -q --set hidden=16 --steps $steps --seed 3 --out "$work/split"
    run 0 run "$work/training.yaml" --device cpu --set hidden=16 --steps $rest --seed 3 \
        --resume "$work/split" --out "$work/split"
    ! grep -q -- '--resume' "$work/err" || fail "$last: something was missing"
    diff -r "$work/all" "$work/split" >&2 || fail "$steps + $rest steps with sums are not 40 steps"
done
for name in w1.sum w1.buf gexec.lr gexec.lr.1; do
    [ -s "$work/split/$name.npy" ] || fail "--out DIR did not write $name.npy"
done

# Sums of another number of steps: refused where they would be added to, told where they
# are dropped, nothing said where an update ended with them.
sed 's/accumulate: 5/accumulate: 3/' "$work/training.yaml" >"$work/three.yaml"
sed '/accumulate: 5/d' "$work/training.yaml" >"$work/none.yaml"
for steps in 5 6 9 10; do
    run 0 run "$work/training.yaml" --device cpu -q --set hidden=16 --steps $steps --out "$work/five.$steps"
done
run 2 run "$work/three.yaml" --device cpu --set hidden=16 --steps 1 --resume "$work/five.10"
err '--resume .*: w1.sum.npy and 3 more: of accumulate: 5, and behind step 10 the model.s accumulate: 3 would add to it: expected a step that it divides$'
run 2 run "$work/three.yaml" --device cpu --set hidden=16 --steps 1 --resume "$work/five.5"
run 0 run "$work/three.yaml" --device cpu --set hidden=16 --steps 1 --resume "$work/five.9"
err '--resume .*: w1.sum.npy and 3 more: gathered gradients are dropped, since its accumulate is another$'
for steps in 6 9; do
    run 0 run "$work/none.yaml" --device cpu --set hidden=16 --steps 1 --resume "$work/five.$steps"
    err '--resume .*: w1.sum.npy and 3 more: gathered gradients are dropped, since the model has no accumulate$'
done
run 0 run "$work/none.yaml" --device cpu --set hidden=16 --steps 1 --resume "$work/five.10"
! grep -q -- '--resume' "$work/err" || fail "$last: nothing is dropped, and yet it is said"
run 2 run "$work/training.yaml" --device cpu --set hidden=16 --steps 1 --out "$work/five.10" \
    --json "$work/five.10/gexec.accumulate.npy"
err 'writes gexec.accumulate.npy, the file of --json'
rm "$work/five.10/gexec.accumulate.npy"
run 0 run "$work/none.yaml" --device cpu --set hidden=16 --steps 1 --resume "$work/five.10"
err 'gathered gradients are dropped'

# In f16, with masters and a scale that overflows at first and grows later.
sed -e 's/^precision: .*/precision: f16/' \
    -e 's/^optimizer: .*/optimizer:\n  adamw: {lr: 1.0e-3}\n  master: f32\n  moments: f32\n  accumulate: 2\n  loss_scale: {dynamic: {initial: 4194304, growth_interval: 8}}/' \
    -e 's/^metrics: {/&loss_scale: {}, skipped: {}, /' "$digits" >"$work/half.yaml"
run 0 run "$work/half.yaml" --device cpu -q --set hidden=16 --steps 60 --seed 3 --out "$work/all16"
out '^  loss scale  [0-9.e+]+; [1-9][0-9]* updates? skipped$'
out '^  last step .*loss_scale [0-9.e+]+  skipped [1-9]'
for steps in 1 5 30; do
    rest=$((60 - steps))
    run 0 run "$work/half.yaml" --device cpu -q --set hidden=16 --steps $steps --seed 3 --out "$work/split16"
    run 0 run "$work/half.yaml" --device cpu --set hidden=16 --steps $rest --seed 3 \
        --resume "$work/split16" --out "$work/split16" --json "$work/run.json"
    ! grep -q -- '--resume' "$work/err" || fail "$last: something was missing"
    json "$work/run.json"
    diff -r "$work/all16" "$work/split16" >&2 || fail "$steps + $rest steps in f16 are not 60 steps"
done
for name in w1.master w1.m gexec.scale gexec.skipped gexec.growth_tracker; do
    [ -s "$work/split16/$name.npy" ] || fail "--out DIR did not write $name.npy"
done
grep -q '"skipped": [1-9]' "$work/run.json" || fail "the JSON does not tell of skipped updates"
sed -e 's/4194304/1024/' "$work/half.yaml" >"$work/small.yaml"
run 0 check "$work/small.yaml" --device cpu -q --set hidden=8 --samples 2
out '^  cpu +w1.master .*ok$'

# The expanded model is the same, and check passes: the step that it takes is an update.
run 0 plan "$work/training.yaml" --device cpu --set hidden=8 --yaml
cp "$work/out" "$work/expanded.yaml"
run 0 check "$work/training.yaml" --device cpu -q --set hidden=8 --samples 2
out '^  cpu +w1.buf .*ok$'
run 0 check "$work/expanded.yaml" --device cpu -q --samples 1

# What is missing or does not fit.
run 2 run "$digits" --device cpu --resume "$work/nowhere"
out_is_empty
err '--resume .*nowhere: No such file or directory$'
run 2 run "$digits" --device cpu --resume "$digits"
err 'this is no folder$'
rm "$work/ten/w1.m.npy"
run 2 run "$digits" --device cpu --steps 1 --resume "$work/ten"
out_is_empty
err "--resume $work/ten: there is no w1.m.npy; with --new-state what has no file starts anew$"
run 0 run "$digits" --device cpu --steps 1 --resume "$work/ten" --new-state
err "--resume $work/ten: there is no w1.m.npy: starts anew$"
rm "$work"/ten/*.v.npy "$work"/ten/gexec.step.npy
run 2 run "$digits" --device cpu --steps 1 --resume "$work/ten"
for name in w1.m w1.v b1.v w2.v b2.v gexec.step; do
    err "there is no .*$name.npy"
done
# The moments start at 0: as a run from these parameters and the counters that are there.
run 0 run "$digits" --device cpu -q --steps 1 --resume "$work/ten" --new-state --out "$work/anew"
run 0 run "$digits" --device cpu -q --steps 1 --out "$work/anew.ref" $(for name in w1 b1 w2 b2 w2.m \
    b1.m b2.m gexec.lr gexec.sample gexec.epoch; do echo --in $name="$work/ten/$name.npy"; done)
for name in w1 w2 w1.m w2.v gexec.step gexec.sample; do
    same "$work/anew/$name.npy" "$work/anew.ref/$name.npy"
done
rm "$work/ten/w2.npy" "$work/ten/b2.npy"
for flag in '' --new-state; do
    run 2 run "$digits" --device cpu --resume "$work/ten" $flag
    err "there is no w2.npy, b2.npy: parameters of the model$"
done
run 2 run "$digits" --device cpu --new-state
err '--new-state goes with --resume DIR'
# More than a message has room for.
cat >"$work/many.yaml" <<'END'
gexec: 1
dims: {n: 4}
inputs: {x: {shape: [n, n], init: normal}}
params:
  a_name_of_some_length: {shape: [n, n], init: normal}
  another_long_name_here: {shape: [n, n], init: normal}
  the_third_name_is_longer_than_those: {shape: [n, n], init: normal}
  a_fourth: {shape: [n, n], init: normal}
  a_fifth: {shape: [n, n], init: normal}
  a_sixth_of_middling_length: {shape: [n, n], init: normal}
ops:
  - {op: gemm, name: h1, a: x, b: a_name_of_some_length}
  - {op: gemm, name: h2, a: h1, b: another_long_name_here}
  - {op: gemm, name: h3, a: h2, b: the_third_name_is_longer_than_those}
  - {op: gemm, name: h4, a: h3, b: a_fourth}
  - {op: gemm, name: h5, a: h4, b: a_fifth}
  - {op: gemm, name: h6, a: h5, b: a_sixth_of_middling_length}
outputs: [h6]
END
mkdir "$work/nothing"
run 2 run "$work/many.yaml" --device cpu --resume "$work/nothing"
err 'there is no a_name_of_some_length.npy, another_long_name_here.npy, .*, a_sixth_of_middling_length.npy: parameters of the model$'
long=$(printf 'n%.0s' $(seq 120))
sed -i "s/a_f[a-z]*th/&_$long/" "$work/many.yaml"
run 2 run "$work/many.yaml" --device cpu --resume "$work/nothing"
err "there is no a_name_of_some_length.npy, another_long_name_here.npy, the_third_[a-z_]*.npy, a_fourth_$long.npy and 2 more: parameters of the model$"
# A name and a path are told whole, however long they are.
cat >"$work/long.yaml" <<END
gexec: 1
inputs: {x: {shape: [4], init: normal}}
params: {$long: {shape: [4], init: normal}}
ops: [{op: mul, name: y, a: x, b: $long}]
outputs: [y]
END
folder=$work/$(printf 'd%.0s' $(seq 200))/$(printf 'e%.0s' $(seq 200))
run 2 run "$work/long.yaml" --device cpu --resume "$folder"
err "^gexec run: --resume $folder: No such file or directory$"
mkdir -p "$folder"
run 2 run "$work/long.yaml" --device cpu --resume "$folder"
err "^gexec run: --resume $folder: there is no $long.npy: a parameter of the model$"
# What is wrong with a file: which, of which tensor, and what was expected.
run 2 run "$digits" --device cpu --resume "$work/m"
out_is_empty
err "^gexec run: $work/m/w1.npy: 'w1': expected shape \[64, 256\], found \[784, 8\]$"
run 2 run "$digits" --device cpu --in w1="$work/m/w1.npy"
out_is_empty
err "^gexec run: $work/m/w1.npy: 'w1': expected shape \[64, 256\], found \[784, 8\]$"

# Counters of gexec's own: what they cannot be is refused at once.
counter()
{
    printf '\223NUMPY\001\000\166\000' >"$work/counter.npy"
    printf '%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }" >>"$work/counter.npy"
    printf "$1" >>"$work/counter.npy"
}
counter '\377\377\377\377'
for name in gexec.step gexec.sample gexec.epoch; do
    run 2 run "$digits" --device cpu --steps 1 --in $name="$work/counter.npy"
    err "$name is a counter: expected 0 or more, found -1"
done
counter '\377\377\000\000'
run 2 run "$digits" --device cpu --steps 1 --in gexec.sample="$work/counter.npy"
err 'gexec.sample is 65535: expected a training row, 0 to 1437'
# The count of steps ends at 2^31 - 1: what would go past it is refused before it starts.
counter '\375\377\377\177'
for flags in '--steps 3' '--epochs 1' '--steps 2147483648'; do
    run 2 run "$digits" --device cpu $flags --in gexec.step="$work/counter.npy" --out "$work/past"
    out_is_empty
    err '^gexec run: gexec.step is 2147483645, and (3|23|2147483648) steps more would take it past 2147483647, the largest number that it holds$'
    [ ! -e "$work/past" ] || fail "$last: made a folder"
done
run 0 run "$digits" --device cpu -q --steps 2 --in gexec.step="$work/counter.npy" --out "$work/last"
run 2 run "$digits" --device cpu --steps 1 --resume "$work/last"
err '^gexec run: gexec.step is 2147483647, and 1 step more '
run 2 run "$digits" --device cpu --steps 3000000000
err '^gexec run: gexec.step is 0, and 3000000000 steps more '
counter '\005\000\000\000'
run 0 run "$digits" --device cpu -q --steps 1 --in gexec.step="$work/counter.npy"

# A tensor that finds no room where an older one stands leaves the folder of one run.
run 0 run "$digits" --device cpu -q --steps 3 --out "$work/kept"
cp -r "$work/kept" "$work/before"
(ulimit -f 20
 "$gexec" run "$digits" --device cpu -q --steps 3 --resume "$work/kept" --out "$work/kept" \
     >"$work/out" 2>"$work/err")
status=$?
last='a run that finds no room in the folder that it goes on from'
[ $status = 4 ] || fail "$last ends with $status"
err '^gexec run: the folder keeps what it had: .*/kept/[a-z0-9.]+\.npy: File too large$'
out '^digits-mlp: 3 steps'
diff -r "$work/before" "$work/kept" >&2 || fail "$last mixes two runs"
finish
