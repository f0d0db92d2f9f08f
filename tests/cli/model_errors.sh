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

sed 's/init: normal}/dtype: f32}/' "$work/wrong.yaml" >"$work/no_values.yaml"
run 2 run "$work/no_values.yaml" --device cpu
err "'x' has no values"
finish
