# gexec profile where there is no GPU, and what is said to flags that are wrong.
. ./lib.sh

mkdir "$work/tmp"
export TMPDIR=$work/tmp
for visible in '' 99; do
    export CUDA_VISIBLE_DEVICES=$visible
    run 3 profile "$examples/mnist_mlp.yaml" --json "$work/p.json" --csv "$work/p.csv" \
        --chrome "$work/p.trace" --html "$work/p.html"
    out_is_empty
    err '^gexec profile: .*needs a GPU'
    err '^  to do: see what this machine has and lacks'
done
run 3 profile "$examples/mnist_mlp.yaml" --device cpu
err 'needs a GPU'
for file in p.json p.csv p.trace p.html; do
    [ ! -e "$work/$file" ] || fail "profile wrote $file without a GPU"
done

# Flags.
run 2 profile
err 'expected MODEL'
for flag in --wait --warmup --active --repeat --top; do
    run 2 profile "$digits" $flag
    err "$flag: expected N"
    run 2 profile "$digits" $flag x
    err "$flag x: expected a whole number"
done
for flag in --active --repeat; do
    run 2 profile "$digits" $flag 0
    err "$flag 0: expected a whole number from 1"
done
run 2 profile "$digits" --active 1000000 --repeat 2
err 'at most 1000000 steps can be traced'
run 2 profile "$digits" --json - --html -
out_is_empty
err 'standard output takes one result, not several'
run 2 profile "$digits" --csv "$work/one" --html "$work/one"
err 'are one file'
run 2 profile "$digits" --chrome "$work/no/such/folder/trace.json"
err 'the folder .* No such file'
run 2 profile "$digits" --graph
err '--graph is no flag of this command'
run 2 profile "$digits" --steps 3
err '--steps is no flag of this command'
run 2 run "$digits" --active 3
err '--active is no flag of this command'

# The way in that the program keeps for itself is no command.
run 2 --traced-pass
err 'is for the program itself'
! "$gexec" --help | grep -q traced-pass || fail "--help tells of it"
run 4 --traced-pass eager "$work/none" 0 profile "$digits"
out_is_empty
err 'No such file'

# Alone it does what it is told, and says in its folder what came of it.
mkdir "$work/pass"
run 0 --traced-pass neither "$work/pass" 0 profile "$digits"
out_is_empty
[ -s "$work/pass/result" ] || fail "no result is left"
nothing_left "$TMPDIR"
finish
