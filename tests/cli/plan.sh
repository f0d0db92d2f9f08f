# gexec plan: the stages, and the forms that other programs read.
. ./lib.sh

run 0 plan "$digits" --device cpu
for stage in document graph selection layout program; do
    out "^$stage  "
done
for stage in document graph selection layout program; do
    run 0 plan "$digits" --device cpu --stage $stage
    out "^$stage  "
    [ "$(grep -cE '^(document|graph|selection|layout|program)  ' "$work/out")" = 1 ] ||
        fail "--stage $stage prints another stage too"
done
run 0 plan "$digits" --device cpu --stage layout
out '^layout  order derived, 1 lane, '
run 0 plan "$digits" --stage document
out '^ +[0-9]+ \|   w1: .*<- parameter f32 \[64, 256\]$'
run 2 plan "$digits" --stage grapf
err 'did you mean graph\?'
run 0 plan "$digits" --device cpu -q --json -
json "$work/out"
out '"order": ?"derived"'
run 0 plan "$digits" --dot
err_is_empty
out '^digraph'
run 2 plan "$digits" --dot --yaml
err 'exclude each other'

# The expanded model loads again, to the same graph and the same steps.
for name in digits_mlp handwritten_backward deep_narrow inference; do
    mkdir -p "$work/$name"
    cp "$examples"/*.npy "$work/$name"
    run 0 plan "$examples/$name.yaml" --yaml
    cp "$work/out" "$work/$name/expanded.yaml"
    run 0 plan "$work/$name/expanded.yaml" --yaml
    same "$work/out" "$work/$name/expanded.yaml"
done
run 0 run "$digits" --device cpu -q --steps 20 --loss-out "$work/a.npy" --evaluate never
run 0 run "$work/digits_mlp/expanded.yaml" --device cpu --steps 20 --loss-out "$work/b.npy"
same "$work/a.npy" "$work/b.npy"
err 'an expanded model has one program'

# What edges gain cannot be measured on the CPU, and is said so, with the status of a lack.
run 3 plan "$digits" --device cpu --pdl-report
out '^edges  n/a: programmatic edges join kernels on a GPU'
[ "$(wc -l <"$work/out")" = 1 ] || fail "--pdl-report prints stages too"
run 3 plan "$digits" --device cpu --pdl-report -q --json -
json "$work/out"
out '"measured": ?false'
run 2 plan "$digits" --pdl-report --stage layout
err 'does not go with'
finish
