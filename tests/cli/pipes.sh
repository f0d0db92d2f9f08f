# A model that comes through a pipe, which gives it once: each command takes it like a file.
. ./lib.sh

# pipe STATUS COMMAND ARGUMENTS...: as run(), with the model "$model" through a pipe; paths
# in it then start in the current folder.
pipe()
{
    local wanted=$1 status=0
    shift
    last="gexec $* <a pipe>"
    (cd "$examples" && cat "$model" | "$gexec" "$@" /dev/stdin) >"$work/out" 2>"$work/err" || status=$?
    if [ $status != "$wanted" ]; then
        fail "$last: exit status $status, expected $wanted"
        head -n 20 "$work/out" "$work/err" >&2
    fi
}

model=$digits
# Training, its short batch and evaluation are programs of their own.
pipe 0 run -q --device cpu --epochs 1
out '^digits-mlp: 23 steps, 1 epoch'
out 'held out'
pipe 0 check -q --device cpu --samples 1 --set hidden=8
out '^All [0-9]+ comparisons are within tolerance'
pipe 0 plan -q --device cpu
out '^document  /dev/stdin'
out '^ +[0-9]+ \| name: digits-mlp'
out '^program  '
pipe 0 plan --yaml
cp "$work/out" "$work/piped"
run 0 plan "$digits" --yaml
same "$work/out" "$work/piped"

# What is wrong with it is told like what is wrong with a file.
model=$work/wrong.yaml
sed 's/batch: 64/batch: 0/' "$digits" >"$model"
! cmp -s "$model" "$digits" || fail "the model was not changed"
for command in run check plan compare profile 'sweep --set hidden=8,16'; do
    pipe 2 $command
    err '^/dev/stdin:[0-9]+:[0-9]+: '
    out_is_empty
done

# Where commands are read there is no room for it.
model=$digits
pipe 2 run --device cpu --blocks
err '--blocks reads standard input, so that the model cannot stand there'

# A named pipe lies in a folder, where paths of the model start. Who opens it twice waits.
mkdir "$work/folder"
cp "$examples"/digits_*.npy "$work/folder"
mkfifo "$work/folder/model"
cat "$digits" >"$work/folder/model" &
timeout 60 "$gexec" check "$work/folder/model" -q --device cpu --samples 0 --set hidden=8 \
    >"$work/out" 2>"$work/err" </dev/null || fail "a named pipe: exit status $?"
kill $! 2>"$work/null"
finish
