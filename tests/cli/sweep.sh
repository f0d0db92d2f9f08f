# gexec sweep: what is said to a command line that is wrong, and without a GPU.
. ./lib.sh

run 2 sweep
err 'gexec sweep: expected MODEL'
run 2 sweep "$digits"
err 'expected sizes to go over: at least one --set DIM=A,B,\.\.\.'
run 2 sweep "$digits" --set batch=64
err 'at least one --set DIM=A,B'
run 2 sweep "$digits" --set batch
err '--set batch: expected DIM=EXPR'
for wrong in 1, ,1 1,,8 '1, ,8'; do
    run 2 sweep "$digits" --set "batch=$wrong"
    err '--set batch: a size is missing beside a comma'
done
run 2 sweep "$digits" --set batch=1,8,1
err '--set batch: 1 is in the list twice'
run 2 sweep "$digits" --set batch=1,2 --set batch=3,4
err '--set batch is given twice'
run 2 sweep "$digits" --set a=1,2 --set b=1,2 --set c=1,2 --set d=1,2 --set e=1,2 --set f=1,2 --set g=1,2
err 'more than 6 lists'
hundred=$(seq -s , 100)
run 2 sweep "$digits" --set "batch=$hundred" --set "hidden=$hundred"
err 'more than 4096 combinations of sizes'
run 2 sweep "$digits" --set batch=1,8 --pairs 2
err '--pairs 2: expected a whole number'
run 2 sweep "$digits" --set batch=1,8 --eager
err '--eager is no flag of this command'
run 2 compare "$digits" --svg x.svg
err '--svg is no flag of this command'
run 2 sweep "$digits" --set batch=1,8 --csv - --svg -
err 'standard output takes one result, not several'
run 2 sweep "$digits" --set batch=1,8 --svg "$work/none/sweep.svg"
err '--svg .*the folder .* No such file'
run 2 sweep "$digits" --set batch=1,8 --svg "$work/x" --csv "$work/x"
err 'are one file'
run 3 sweep "$digits" --set batch=1,8 --device cpu
err 'this command measures launches and needs a GPU'

# A list is a sweep's alone.
run 2 run "$digits" --device cpu --set batch=1,8
err 'set batch=1,8: "1,8": expected an integer, or an expression of integers and dims'

# No GPU: nothing is measured and nothing written.
if ! "$gexec" doctor | grep -q '^has *GPU'; then
    run 3 sweep "$digits" --set batch=1,8 --csv "$work/x.csv" --svg "$work/x.svg" --json "$work/x.json"
    out_is_empty
    err 'needs a GPU'
    err 'gexec doctor'
    ! ls "$work"/x.* >/dev/null 2>&1 || fail "$last: wrote a result"
    finish
fi

# With one: the sizes, a size that fails, every output.
run 2 sweep "$digits" --set batch=0,8 --set hidden=16,64 --pairs 3 --block 20 -q \
    --csv "$work/x.csv" --svg "$work/x.svg" --json "$work/x.json"
out 'failed; bits are equal at 2\.$'
out 'the batch of the data: 1 or more, not 0'
json "$work/x.json"
[ "$(wc -l <"$work/x.csv")" = 5 ] || fail "$last: expected a title and 4 rows"
grep -q 'Left out, not measured: batch=0, hidden=16 (failed);' "$work/x.svg" || fail "$last: a size is not told"
run 0 sweep "$digits" --set hidden=16,32 --pairs 3 --block 20 --csv - -q
[ "$(wc -l <"$work/out")" = 3 ] || fail "$last: expected a title and 2 rows alone"
run 2 sweep "$digits" --set bach=1,8 -q
err 'there is no dim "bach"; did you mean "batch"\?'
[ "$(grep -c 'no dim "bach"' "$work/err")" = 1 ] || fail "$last: says it more than once"
finish
