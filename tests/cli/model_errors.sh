# What is said of a model that is wrong: where, what was expected, and the nearest name.
. ./lib.sh

run 2 run nowhere.yaml --device cpu
out_is_empty
err 'nowhere.yaml'

cat >"$work/wrong.yaml" <<'END'
gexec: 1
name: wrong
dims: {batch: 4}
inputs:
  x: {shape: [batch, 3], init: normal}
params:
  w: {shape: [3, 2], init: he_normal}
ops:
  - {op: gem, name: a, a: x, b: w}
  - {op: relu, name: b, xx: x}
outputs: [b]
END
run 2 check "$work/wrong.yaml" --device cpu
out_is_empty
err "^$work/wrong.yaml:9:[0-9]+: .*gemm"
err "^$work/wrong.yaml:10:[0-9]+: "
err '^ *\^'

sed -i 's/op: gem,/op: gemm,/; s/xx: x/x: x/' "$work/wrong.yaml"
run 0 run "$work/wrong.yaml" --device cpu
run 2 run "$work/wrong.yaml" --device cpu --set bach=2
err 'bach.*batch'
run 2 run "$work/wrong.yaml" --device cpu --in y=f.npy
err '--in y: no input, parameter or state'
run 2 run "$work/wrong.yaml" --device cpu --in ww="$examples/digits_x.npy"
err 'did you mean w\?'
run 2 run "$work/wrong.yaml" --device cpu --in w="$examples/digits_x.npy"
err '\[3, 2\].*\[1797, 64\]'
run 2 run "$work/wrong.yaml" --device cpu --in w=nowhere.npy
err 'nowhere.npy'
run 2 run "$work/wrong.yaml" --device cpu --out nothing=f.npy
err 'nothing'
run 2 run "$work/wrong.yaml" --device cpu --epochs 2
err 'the model has no data'
run 2 run "$work/wrong.yaml" --device cpu --loss-out "$work/l.npy"
err 'logs no loss'
run 2 run "$digits" --device cpu -q --in x="$examples/digits_x.npy"
err "fed from the model's data"

# One mistake is told once, whatever else could not be made or counted for it.
only()
{
    local wanted=$1
    shift
    run 2 "$@"
    err "$wanted"
    [ "$(grep -c "\.yaml:" "$work/err")" = 1 ] || { fail "$last: more than one mistake"; cat "$work/err" >&2; }
}
cp "$examples"/digits_*.npy "$work"
sed -e 's/^optimizer: .*/optimizer: {adamw: {lr: 0.1}, schedule: {cosine: {steps: 9}}}/' \
    -e 's/^outputs: .*/outputs: [loss, gexec.rate, w1.m, w1.grad]/' "$digits" >"$work/rate.yaml"
run 0 run "$work/rate.yaml" --device cpu -q --steps 1
only 'set hiden=3: there is no dim "hiden"; did you mean "hidden"\?' \
    run "$work/rate.yaml" --device cpu --set hiden=3 --out w1.v="$work/v.npy"
sed 's/b: w2/b: w3/' "$work/rate.yaml" >"$work/w3.yaml"
only 'there is no tensor "w3"' run "$work/w3.yaml" --device cpu
sed 's/lr: /lrr: /' "$work/rate.yaml" >"$work/lrr.yaml"
only 'no setting "lrr"' run "$work/lrr.yaml" --device cpu
sed 's/gexec.rate/gexec.rat/' "$work/rate.yaml" >"$work/rat.yaml"
only 'there is no tensor "gexec.rat"; did you mean "gexec.rate"\?' run "$work/rat.yaml" --device cpu
sed 's/^  shuffle: .*/&\n  drop_last: true/' "$digits" >"$work/drop.yaml"
only 'digits_split.npy|drop_last leaves nothing: a batch is 4000' \
    run "$work/drop.yaml" --device cpu --set batch=4000
sed '/split:/d' "$work/drop.yaml" >"$work/drop_all.yaml"
only 'drop_last leaves nothing: a batch is 4000' \
    run "$work/drop_all.yaml" --device cpu --set batch=4000
for group in '{params: [], weight_decay: 0}' '{weight_decay: 0}' '{params: []}' '{params: [[w1]], weight_decay: 0}'; do
    sed "s/^optimizer: .*/optimizer: {adamw: {lr: 0.1}, groups: [$group]}/" "$digits" >"$work/group.yaml"
    only 'group|expected the name of a parameter' run "$work/group.yaml" --device cpu
done

sed 's/init: normal}/dtype: f32}/' "$work/wrong.yaml" >"$work/no_values.yaml"
run 2 run "$work/no_values.yaml" --device cpu
err "'x' has no values"
finish
