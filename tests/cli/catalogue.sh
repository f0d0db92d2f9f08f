# gexec ops, doctor and init.
. ./lib.sh

run 0 ops
err_is_empty
for op in gemm epilogue relu gelu_tanh softmax_cross_entropy mse sgd adamw; do
    out "^$op "
done
run 0 ops gemm
out '^  trans_a +true or false +false '
# Without CUDA there are none.
if grep -q ' covers ' "$work/out"; then
    out '^  direct_weight +covers epilogue.bwd \+ gemm$'
    [ "$(grep ' covers ' "$work/out" | sed 's/covers .*//' | awk '{ print length }' | sort -u | wc -l)" = 1 ] ||
        fail "$last: a name reaches into what the alternative covers"
fi
run 2 ops gem
err "no op 'gem'; did you mean gemm\?"
run 0 ops --json -
json "$work/out"
run 0 ops --markdown
out '^### `gemm`$'
awk '/<!-- ops:end -->/ { inside = 0 } inside { print } /<!-- ops:begin -->/ { inside = 1 }' \
    ../../graphs/README.md >"$work/page"
diff "$work/page" <(sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' "$work/out") ||
    fail "graphs/README.md does not hold what ops --markdown prints"
run 0 ops --markdown gemm
[ "$(grep -c '^### ' "$work/out")" = 1 ] || fail "one op was asked for"

run 0 doctor
out '^has +gexec +[0-9]'
[ "$(grep -E '^(has|lacks) ' "$work/out" | cut -c 27 | tr -d '\n ')" = '' ] ||
    fail "$last: a subject reaches into what is said of it"
run 0 doctor --json -
json "$work/out"

run 0 init "$work/spirals"
[ "$(ls "$work/spirals" | tr '\n' ' ')" = 'model.yaml split.npy x.npy y.npy ' ] ||
    fail "init wrote other files"
run 0 run "$work/spirals/model.yaml" --device cpu -q
out '^  held out .*accuracy (1|0\.9[5-9][0-9]*) '
cp -r "$work/spirals" "$work/before"
run 2 init "$work/spirals"
err 'exists; nothing was written'
rm "$work/spirals/model.yaml" "$work/before/model.yaml"
run 2 init "$work/spirals"
diff -r "$work/spirals" "$work/before" || fail "init wrote beside what was there"
run 2 init "$work/no/such/folder"
err "^gexec init: $work/no/such/folder: the folder $work/no/such/: No such file or directory$"
run 2 init "$digits"
err ': .*digits_mlp.yaml is no folder$'
run 2 init /proc/x
err '^gexec init: /proc/x: /proc/x cannot be written: '
mkdir "$work/here"
(cd "$work/here" && "$gexec" init -q >/dev/null) || fail "init without a folder"
[ -s "$work/here/model.yaml" ] || fail "init without a folder wrote no model"
finish
