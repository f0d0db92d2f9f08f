# Where there is no GPU, or it is hidden: the CPU when nobody asked for one, else status 3.
. ./lib.sh

for visible in '' -1 99; do
    export CUDA_VISIBLE_DEVICES=$visible
    run 0 run "$examples/inference.yaml"
    err '^gexec run: on the CPU: '
    [ "$(grep -c '^gexec run: ' "$work/err")" = 1 ] || fail "more than one line says so"
    run 0 run "$examples/inference.yaml" --device cpu
    ! grep -q 'on the CPU' "$work/err" || fail "says what was asked for"
    run 3 run "$examples/inference.yaml" --graph
    out_is_empty
    err '^gexec run: .'
    err '^  to do: '
    err '^  to do: leave out --graph '
    run 3 run "$examples/inference.yaml" --eager
    run 3 run "$examples/inference.yaml" --gpu 0
    run 3 run "$examples/inference.yaml" --device gpu
    run 3 run "$examples/inference.yaml" --nsys-window
    out_is_empty
    ! grep -q cudaProfiler "$work/err" || fail "$last: tries to open a window"
    run 3 compare "$examples/mnist_mlp.yaml" --json "$work/compare.json"
    out_is_empty
    err 'needs a GPU'
    err '^  to do: '
    [ ! -e "$work/compare.json" ] || fail "compare wrote a result without a GPU"
    run 0 check "$examples/inference.yaml"
    out 'the CPU alone'
    run 0 plan "$examples/inference.yaml"
    run 0 doctor
    out '^lacks +GPU'
    out 'to do: '
    ! grep -q ceilings "$work/out" || fail "speaks of ceilings where there is no GPU"
    for gpu in '' '--gpu 0' '--gpu 3'; do
        run 3 doctor --measure $gpu --json "$work/doctor.json"
        out_is_empty
        err '^gexec doctor: .'
        err '^  to do: see what this machine has and lacks without --measure$'
        ! grep -q '`gexec doctor`' "$work/err" || fail "$last: names the command that was given"
    done
    [ ! -e "$work/doctor.json" ] || fail "doctor wrote a result without a GPU"
done
# A model that is wrong is told first: it is wrong on every machine.
sed 's/op: softmax_cross_entropy,/op: softmax_cros_entropy,/' "$digits" >"$work/wrong.yaml"
cp "$examples"/digits_*.npy "$work"
export CUDA_VISIBLE_DEVICES=-1
for words in 'run --graph' 'run --eager' 'run --gpu 0' 'check --device gpu' 'plan --gpu 0' \
    compare profile 'sweep --set batch=8,16' 'compare --device cpu'; do
    set -- $words
    command=$1
    shift
    run 2 $command "$work/wrong.yaml" "$@"
    out_is_empty
    err "^$work/wrong.yaml:[0-9]+:[0-9]+: .*softmax_cross_entropy"
    ! grep -q GPU "$work/err" || fail "$last: speaks of a GPU"
    [ "$(grep -c 'wrong.yaml:' "$work/err")" = 1 ] || fail "$last: says it more than once"
done
# So it is on the CPU, before any remark.
for words in 'run' 'check' 'plan' 'run --device cpu' 'check --device cpu' 'plan --device cpu'; do
    set -- $words --force lt --lanes 2
    command=$1
    shift
    run 2 $command "$work/wrong.yaml" "$@"
    head -n 1 "$work/err" | grep -q "^$work/wrong.yaml:[0-9]*:[0-9]*: " || fail "$last: something else is told first"
    ! grep -q CPU "$work/err" || fail "$last: speaks of the CPU"
done
run 2 check "$digits" --in w1="$work/nowhere.npy"
[ "$(wc -l <"$work/err")" = 1 ] || fail "$last: speaks of more than the file"
run 0 check "$digits" --samples 0 --set hidden=8
[ "$(grep -c 'on the CPU' "$work/err")" = 1 ] || fail "$last: does not say once where it runs"
run 2 run "$digits" --graph --in w1="$work/nowhere.npy"
err 'nowhere.npy'
# Sizes that the model has are measured where there is a GPU, whatever the others are.
run 3 sweep "$digits" --set batch=0,8
err 'needs a GPU'
run 2 sweep "$digits" --set bach=1,8
err 'there is no dim "bach"; did you mean "batch"\?'
export CUDA_VISIBLE_DEVICES=99

[ -z "$(find "$work/cache" -name '*ceilings*' 2>/dev/null)" ] || fail "ceilings were kept without a GPU"
for command in compare profile 'sweep --set batch=8,16'; do
    run 3 $command "$examples/mnist_mlp.yaml" --device cpu
    err 'cpu: this command measures launches and needs a GPU$'
    err '^  to do: leave out --device cpu$'
done
# What is to be done can be done.
run 3 run "$examples/inference.yaml" --graph --gpu 0
err '^  to do: leave out --graph and --gpu '
run 3 check "$examples/inference.yaml" --device gpu --samples 0
err '^  to do: leave out --device gpu '
run 0 run "$examples/inference.yaml"
finish
