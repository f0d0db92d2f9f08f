# Where results go: into a folder that --out makes, and never two of them into one file.
. ./lib.sh

inference=$examples/inference.yaml
mkdir "$work/in"
cd "$work/in" || exit 1
cp "$examples"/digits_* .
model=digits_mlp.yaml
json_awk=$root/tests/cli/json.awk

# A result may lie in a folder that --out makes, whatever the order and the spelling.
for json in new/r.json ./new/r.json new/../new/r.json "$work/in/new/r.json"; do
    run 0 run "$model" --device cpu -q --steps 1 --json "$json" --out new
    awk -f "$json_awk" new/r.json || fail "$last: no JSON in the folder"
    [ -s new/w1.npy ] || fail "$last: no tensors"
    rm -r new
done
run 0 run "$model" --device cpu -q --steps 1 --out w1=a/b/w.npy --out a/b --out ./a/ \
    --loss-out a/b/../l.npy --plan a/p
for file in a/b/w.npy a/b/w1.npy a/w1.npy a/l.npy a/p; do
    [ -s $file ] || fail "$last: no $file"
done
rm -r a
# Nothing is left of one that fails, at the start, with the model, or behind the steps.
run 2 run "$model" --device cpu --out new --json new/r.json --set batch=x
run 2 run nowhere.yaml --device cpu --out new --json new/r.json
run 2 run "$model" --device cpu --out new --json new/nowhere/r.json
err '^gexec run: --json new/nowhere/r.json: the folder new/nowhere/: No such file or directory$'
run 2 run "$model" --device cpu --out new --json new/w1.npy
run 2 run "$model" --device cpu --out new --resume new
run 2 run "$model" --device cpu --out new/deep --json new/deep/r.json
err '^gexec run: --out new/deep: the folder new/: No such file or directory$'
[ ! -e new ] || fail "a folder is left of a run that failed"
(ulimit -f 0; trap '' XFSZ
 "$gexec" run "$model" --device cpu -q --steps 1 --out new --json new/r.json >/dev/null 2>&1) &&
    fail "a folder without room gives status 0"
[ ! -e new ] || fail "a folder is left in which nothing was written"
# One that was there stays.
mkdir new
run 2 run nowhere.yaml --device cpu --out new --json new/r.json
[ -d new ] || fail "$last: a folder is gone"

# One file for two results: by another spelling, a link, or a link to what is not there.
: >real
ln -s real link
ln -s nothing dangling
ln -s new linked
one()
{
    local flags=$1
    shift
    run 2 "$@"
    out_is_empty
    err "^gexec $1: $flags are one file\$"
}
one '--loss-out x and --json ./x' run "$model" --device cpu --loss-out x --json ./x
one '--loss-out new/x and --json linked/x' run "$model" --device cpu --loss-out new/x --json linked/x
one '--loss-out real and --json link' run "$model" --device cpu --loss-out real --json link
one '--loss-out nothing and --json dangling' run "$model" --device cpu --loss-out nothing --json dangling
one '--out w1=x and --out w2=x' run "$model" --device cpu --out w1=x --out w2=x
one '--out new and --out linked/' run "$model" --device cpu --out new --out linked/
one '--out w1=x and --plan x' run "$model" --device cpu --plan x --out w1=x
one '--plan x and --json x' run "$model" --device cpu --plan x --json x
one '--plan x and --json x' check "$model" --device cpu --plan x --json x
one '--plan x and --json x' plan "$model" --device cpu --plan x --json x
one '--plan x and --json x' compare "$model" --plan x --json x
one '--json x and --csv x' sweep "$model" --set batch=1,2 --json x --csv x
one '--csv x and --svg ./x' sweep "$model" --set batch=1,2 --csv x --svg ./x
one '--json x and --html x' profile "$model" --json x --html x
one '--chrome x and --html x' profile "$model" --html x --chrome x
one '--csv x and --chrome x' nsys real --csv x --chrome x
run 2 run "$model" --device cpu --plan x --json x.eval
err "--plan x and --json x.eval: --plan has a file of each program's"
run 2 sweep "$model" --set batch=1,2 --plan x --json x.batch=1
err "--plan x and --json x.batch=1: .* of each size's"
# Another file: a name that only looks like it, and what takes any number of results.
run 0 run "$model" --device cpu -q --steps 1 --loss-out new/x --json x --plan x.p --out w1=x.p.npy
run 0 run "$model" --device cpu -q --steps 1 --loss-out /dev/null --json /dev/null

# Results go where links lead, one that leads to nothing too, and files keep their mode.
mkdir there
for name in json.json page.html trace.json losses.npy plan.yaml w.npy; do
    ln -s there/$name link.$name
done
: >there/json.json
chmod 600 there/json.json
run 0 run "$model" --device cpu -q --steps 1 --json link.json.json --loss-out link.losses.npy \
    --plan link.plan.yaml --out w1=link.w.npy
awk -f "$json_awk" there/json.json || fail "$last: no JSON where the link leads"
[ "$(stat -c %a there/json.json)" = 600 ] || fail "$last: the mode of a result is another"
for name in json.json losses.npy plan.yaml w.npy; do
    [ -L link.$name ] || fail "$last: link.$name was replaced"
    [ -s there/$name ] || fail "$last: no $name where its link leads"
done
run 0 run "$model" --device cpu -q --steps 1 --out state
mv state/w1.npy there/w1.npy
ln -s ../there/w1.npy state/w1.npy
chmod 600 state/w2.npy
cp there/w1.npy older.npy
run 0 run "$model" --device cpu -q --steps 1 --seed 7 --out state
[ -L state/w1.npy ] || fail "$last: a link in the folder was replaced"
! cmp -s older.npy there/w1.npy || fail "$last: the tensor is not where its link leads"
[ "$(stat -c %a state/w2.npy)" = 600 ] || fail "$last: the mode of a tensor is another"
run 0 run "$model" --device cpu -q --steps 1 --seed 7 --out second
for file in second/*.npy; do
    cmp -s $file state/${file#second/} || fail "$last: state/${file#second/} is another"
done
rm -r second
# A result for the file that standard output goes to stands in it with the rest.
ln -s /proc/self/fd/1 own
"$gexec" run "$model" --device cpu --steps 1 --json own >both 2>"$work/err" ||
    fail "--json of its own output to a file ends with $?"
sed -n '/^{/,/^}/p' both | awk -f "$json_awk" || fail "no JSON in the file of standard output"
[ "$(sed '/^{/,/^}/d' both | wc -l)" -gt 1 ] || fail "the report is lost from standard output"
# A pipe as a plan is no file to read, and is not waited for.
mkfifo pipe
timeout 60 "$gexec" run "$model" --device cpu --steps 1 --plan pipe >"$work/out" 2>"$work/err"
[ $? = 2 ] || fail "a pipe is taken as a plan, or waited for"
err 'pipe: not a file$'
[ -p pipe ] || fail "the pipe was replaced"

# Standard output takes text; tensors, plans and folders have no place there.
for flags in '--out w1=-' '--loss-out -' '--plan -' '--out -'; do
    run 2 run "$model" --device cpu -q --steps 1 $flags
    out_is_empty
    case $flags in '--out -') kind=folder ;; *) kind=file ;; esac
    err "^gexec run: $flags: this does not go to standard output; a $kind of that name is \./-\$"
    [ ! -e ./- ] || fail "$last: a $kind '-' is made"
done
run 2 init -
err '^gexec init: -: this does not go to standard output'
run 0 run "$model" --device cpu -q --steps 1 --out w1=./-
[ -s ./- ] || fail "$last: no file"
rm ./-

# What --out DIR writes by itself.
for name in w1 w1.m gexec.step loss; do
    run 2 run "$model" --device cpu --out new --json linked/$name.npy
    out_is_empty
    err "^gexec run: --out new writes $name.npy, the file of --json linked/$name.npy\$"
done
run 2 run "$model" --device cpu --out fresh --out w1=fresh/w2.npy
err '^gexec run: --out fresh writes w2.npy, the file of --out w1=fresh/w2.npy$'
run 2 run "$model" --device cpu --out new --plan new/w1.npy
err 'the file of --plan new/w1.npy$'
run 0 run "$model" --device cpu -q --steps 1 --out new --json new/h.npy --loss-out new/losses.npy
run 0 run "$model" --device cpu -q --steps 1 --out new --plan new/plan.yaml

# A folder in the place of one of them is found before the steps, and nothing is touched.
mkdir -p blocked/w1.npy
run 2 run "$model" --device cpu --steps 1 --out blocked
out_is_empty
err '^gexec run: --out blocked: blocked/w1.npy is a folder; expected a file$'
rmdir blocked/w1.npy
nothing_left blocked
mkdir blocked/plan.yaml blocked/h.npy
run 0 run "$model" --device cpu -q --steps 1 --out blocked

# Processes that write to one folder do so one after another, and none reads meanwhile.
# blocked_on PID: waits until the process waits for a lock; false where it ends without.
blocked_on()
{
    while ! grep -qE -- "-> FLOCK .* $1 " /proc/locks; do
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.05
    done
}
run 0 run "$model" --device cpu -q --steps 1 --seed 1 --out shared
cp -r shared first
run 0 run "$model" --device cpu -q --steps 1 --seed 2 --out second
run 0 run "$model" --device cpu -q --steps 1 --seed 3 --resume shared --out third
if [ -r /proc/locks ]; then
    exec 9<shared
    flock 9
    "$gexec" run "$model" --device cpu -q --steps 1 --seed 2 --out shared >"$work/out" 2>"$work/err" 9<&- &
    writer=$!
    blocked_on $writer || fail "a folder is written to that another process writes to"
    diff -r first shared >&2 || fail "files changed while another process wrote"
    exec 9<&-
    wait $writer || fail "a run that waited for the folder ends with $?"
    diff -r second shared >&2 || fail "a run that waited left other files than it should"
    # Not while it is read, and not read while it is written to.
    exec 9<first
    flock 9
    "$gexec" run "$model" --device cpu -q --steps 1 --seed 3 --resume first --out fourth >"$work/out" 2>&1 9<&- &
    reader=$!
    blocked_on $reader || fail "a folder is read that another process writes to"
    # A lock does not outlive its process.
    exec 9<&-
    wait $reader || fail "a run that waited to read ends with $?"
    diff -r third fourth >&2 || fail "a run that waited read other files than it should"
fi

# Several that start together, the folder not there yet: it is of one of them.
for turn in 1 2 3; do
    rm -rf shared
    pids=
    for seed in 1 1 2 2; do
        "$gexec" run "$model" --device cpu -q --steps 1 --seed $seed --out shared >/dev/null &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait $pid || fail "one of several runs that make a folder ends with $?"
    done
    diff -r first shared >/dev/null || diff -r second shared >&2 || fail "a folder is of two runs"
done

# What the model and --resume read.
for flag in --json --loss-out '--out w1=' '--out x='; do
    for file in digits_x.npy digits_split.npy; do
        cp $file kept.npy
        case $flag in *=) run 2 run "$model" --device cpu $flag$file ;; *) run 2 run "$model" --device cpu $flag $file ;; esac
        err "would replace \./$file, which the command reads\$"
        same $file kept.npy
    done
done
run 2 check "$model" --device cpu --json digits_y.npy
err '^gexec check: --json digits_y.npy would replace \./digits_y.npy, which the command reads$'
sed 's/digits_y.npy/h.npy/; s/^outputs: .*/outputs: [loss, h]/' "$model" >same_name.yaml
cp digits_y.npy h.npy
run 2 run same_name.yaml --device cpu --out .
err '^gexec run: --out \. would replace \./h.npy, which the command reads$'
run 2 run "$model" --device cpu --resume new --json new/w1.npy
err '^gexec run: --json new/w1.npy would replace a file of --resume, which the command reads$'
run 0 run "$model" --device cpu -q --steps 1 --resume new --out new --json new/r.json
# A parameter may go back to the file that it starts from; nothing else may go there.
sed 's/init: he_normal/init: {file: new\/w1.npy}/' "$model" >from_file.yaml
sed -i '/w2:/s/{file: [^}]*}/he_normal/' from_file.yaml
run 0 run from_file.yaml --device cpu -q --steps 1 --out new --out w1=w1.npy
run 0 run from_file.yaml --device cpu -q --steps 1 --out w1=new/w1.npy
run 2 run from_file.yaml --device cpu --json new/w1.npy
err 'would replace \./new/w1.npy, which the command reads$'
finish
