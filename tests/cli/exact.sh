# gexec run --exact keeps every tensor in double, and says and writes so.
. ./lib.sh

cat >"$work/m.yaml" <<'M'
gexec: 1
name: tenth
precision: bf16
inputs: {x: {shape: [2], init: {constant: 0.1}}}
params: {w: {shape: [2], init: {constant: 0.3}}}
ops:
  - {op: mul, name: y, a: x, b: w}
  - {op: sum, name: loss, x: y, dtype: f32}
backward: loss
optimizer: {adamw: {lr: 0.1}}
outputs: [y, loss]
M
# number FILE INDEX: the element at INDEX of the doubles behind a head of 128 bytes.
number()
{
    od -A n -t f8 -w8 -v -j 128 "$1" | awk -v i="$2" 'NR == i + 1 { printf "%.15g\n", $1 }'
}

mkdir "$work/a" "$work/b" "$work/c"
run 0 run "$work/m.yaml" --device cpu --exact --steps 1 --json "$work/j.json" --out "$work/a"
out ', on the CPU, bf16 kept in double, seed 1$'
json "$work/j.json"
grep -q '"exact": true' "$work/j.json" || fail "the JSON does not say that it is exact"
grep -q '"dtype": "f64"' "$work/j.json" || fail "outputs are not said to be f64"
grep -aq "'descr': '<f8'" "$work/a/y.npy" || fail "y.npy is not f8"
[ "$(number "$work/a/y.npy" 1)" = 0.03 ] || fail "y is $(number "$work/a/y.npy" 1), not 0.03"
run 0 run "$work/m.yaml" --device cpu --steps 1 -q --json "$work/j.json" --out y="$work/y.npy"
grep -q '"exact": false' "$work/j.json" || fail "the JSON says that bf16 is exact"
grep -aq "'descr': '<f4'" "$work/y.npy" || fail "without --exact y.npy is not f4"

# What it saves loses nothing: five steps are two, and three more from there.
run 0 run "$work/m.yaml" --device cpu --exact --steps 5 -q --out "$work/b"
run 0 run "$work/m.yaml" --device cpu --exact --steps 2 -q --out "$work/c"
run 0 run "$work/m.yaml" --device cpu --exact --steps 3 -q --resume "$work/c" --out "$work/c"
for name in w w.m w.v; do
    same "$work/b/$name.npy" "$work/c/$name.npy"
done

# Nor do masters, whose parameters are no copies of what f32 holds.
sed 's/optimizer:.*/optimizer: {adamw: {lr: 0.1}, master: f32, accumulate: 2}/' \
    "$work/m.yaml" >"$work/masters.yaml"
mkdir "$work/d" "$work/e"
run 0 run "$work/masters.yaml" --device cpu --exact --steps 5 -q --out "$work/d"
run 0 run "$work/masters.yaml" --device cpu --exact --steps 3 -q --out "$work/e"
run 0 run "$work/masters.yaml" --device cpu --exact --steps 2 -q --resume "$work/e" \
    --out "$work/e"
for name in w w.master w.m w.v w.sum; do
    same "$work/d/$name.npy" "$work/e/$name.npy"
done
same "$work/d/w.npy" "$work/d/w.master.npy"

for device in '' '--device auto' '--device gpu'; do
    run 2 run "$work/m.yaml" --exact $device
    err '--exact: only the CPU keeps doubles, so --device cpu is expected beside it$'
done
run 2 check "$work/m.yaml" --exact
err '--exact is no flag of this command'
finish
