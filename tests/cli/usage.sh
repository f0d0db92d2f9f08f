# Help, and what is said to a command line that is wrong.
. ./lib.sh

run 2
out_is_empty
err '^usage: gexec COMMAND'
run 0 --help
err_is_empty
same "$work/out" help.expected
run 0 -h
out '^usage: gexec COMMAND'
run 0 --version
out '^gexec [0-9]+\.[0-9]+\.[0-9]+$'

run 2 --version run
err "unexpected 'run'"
run 2 --help run check
err "unexpected 'check'"
run 2 --help rum
err 'did you mean run'
for command in run compare sweep check plan profile nsys ops doctor init; do
    run 0 --help $command
    cp "$work/out" "$work/help"
    run 0 $command --help
    same "$work/out" "$work/help"
    err_is_empty
    out "^usage: gexec $command"
    out '^example:$'
    # What --help says stands in the manual too.
    for flag in $(sed -n 's/^  \(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' "$work/out"); do
        grep -q -- "$(printf '%s' "$flag" | sed 's/-/\\\\\\{0,1\\}-/g')" "$root/tools/gexec.1" ||
            fail "gexec.1 lacks $flag"
    done
done

# Each command takes the flags of its help, each on a line of its own, and no others; the
# manual has no flag that there is not.
for command in run compare sweep check plan profile nsys ops doctor init; do
    "$gexec" $command --help | sed -n 's/^  \(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p' >"$work/$command.flags"
    [ -z "$(sort "$work/$command.flags" | uniq -d)" ] || fail "the help of $command has a flag twice"
    [ "$("$gexec" $command --help | grep -c '^  -')" = "$(wc -l <"$work/$command.flags")" ] ||
        fail "the help of $command has lines that name no flag"
done
sort -u "$work"/*.flags >"$work/all"
for command in run compare sweep check plan profile nsys ops doctor init; do
    for flag in $(cat "$work/all"); do
        wanted=$(grep -qxe "$flag" "$work/$command.flags" && echo 0 || echo 1)
        # So many operands are wrong for each command, so that none does anything.
        found=$("$gexec" $command a b c d $flag 2>&1 | grep -c -- "$flag is no flag of this command")
        [ $wanted = $found ] || fail "gexec $command $flag: its help says otherwise"
    done
done
grep -o '\\-\\-[a-z][a-z\\-]*' "$root/tools/gexec.1" | tr -d '\\' | sort -u |
    grep -vxFf "$work/all" | grep -vx -e --version -e --cuda-graph-trace -e --type >"$work/unknown"
[ ! -s "$work/unknown" ] || fail "gexec.1 has flags that there are not: $(cat "$work/unknown")"

# tools/nsys-compare passes flags of run on, and has to know those without a value.
for flag in $("$gexec" run --help | sed -n 's/^  \(-[a-z], \)\{0,1\}\(--[a-z-]*\)   *[a-z].*/\2/p'); do
    grep -qE -- "[ (|]$flag( \||\))" "$root/tools/nsys-compare" || fail "nsys-compare takes $flag for a flag with a value"
done

run 2 rum
out_is_empty
err "unknown command 'rum'; did you mean run\?"
run 2 frobnicate
err "unknown command 'frobnicate'$"
run 2 run
err 'gexec run: expected MODEL'
for words in 'run ' 'plan ' 'nsys ' 'ops ' 'init '; do
    run 2 $words ''
    err 'expected .*, found an empty word$'
done
run 2 run "$digits" other
err "unexpected 'other'"
run 2 run "$digits" --step 3
err "unknown flag '--step'; did you mean --steps\?"
run 2 run "$digits" --zzzzzzzz
err "unknown flag '--zzzzzzzz'$"
run 2 run "$digits" --bogus
err "unknown flag '--bogus'$"
for twice in '--json a --json b' '--steps 3 --steps 4' '--seed 1 --seed 1' '--device cpu --device gpu'; do
    set -- $twice
    run 2 run "$digits" $twice
    err "^gexec run: $1 $2 and $3 $4: the flag may stand once$"
done
if [ -w /dev/full ]; then
    status=0
    "$gexec" --help >/dev/full 2>"$work/err" || status=$?
    [ $status = 4 ] || fail "help on a full standard output gives $status"
    err '^gexec: standard output could not be written: '
fi
run 2 compare "$digits" --blocks
err '--blocks is no flag of this command'
run 2 run "$digits" --steps
err '--steps: expected N'
for wrong in 0 -1 x 1x 1.5 '' 0x10 99999999999999999999; do
    run 2 run "$digits" --steps="$wrong"
    err "--steps $wrong: expected a whole number"
done
run 2 run "$digits" --seed -1
err '--seed -1: expected a whole number'
run 2 run "$digits" --device gpuu
err '--device gpuu: expected one of auto cpu gpu; did you mean gpu\?'
run 2 run "$digits" --set batch
err '--set batch: expected DIM=EXPR'
run 2 run "$digits" --set batch=1 --set batch=2
err '--set batch is given twice'
run 2 run "$digits" --quiet=yes
err '--quiet takes no value'
run 2 run "$digits" --graph --eager
err '--graph and --eager exclude each other'
run 2 run "$digits" --device cpu --graph
err '--device cpu and --graph exclude each other'
run 2 run "$digits" --device cpu --nsys-window
err '--device cpu and --nsys-window exclude each other'
run 2 run "$digits" --steps 1 --epochs 1
err '--steps and --epochs exclude each other'
run 2 plan "$digits" --dot --stage graph
err '--dot or --yaml and --stage exclude each other'
run 2 ops --markdown --json -
err '--markdown and --json - exclude each other'
for flag in --nsys-window '--evaluate never'; do
    run 2 run "$digits" --device cpu --blocks $flag
    err '--blocks and --nsys-window or --evaluate exclude each other'
done
for wrong in 0 -1 4097 many ''; do
    run 2 run "$digits" --steps-per-launch="$wrong"
    err "--steps-per-launch $wrong: expected auto or a whole number from 1 to 4096"
done
run 2 check "$digits" --steps-per-launch 2
err '--steps-per-launch is no flag of this command'
run 2 run "$digits" --eager --steps-per-launch 2
err '--eager and --steps-per-launch exclude each other'
run 2 compare "$digits" --step-loop on
err '--step-loop on and one step a launch exclude each other'
run 2 run "$digits" --eager --skip if
err '--eager and --skip if exclude each other'
run 2 run "$digits" --skip on
err '--skip on: expected one of auto if predicate'
run 2 check "$digits" --skip if
err '--skip is no flag of this command'
# A model that skips nothing is bad input on every device; one that does runs.
for mode in '--device cpu' '--graph' ''; do
    run 2 run "$digits" $mode --steps 1 --skip if
    err '--skip if: the model skips no updates: it has no loss_scale'
done
run 2 compare "$digits" --skip if
err '--skip if: the model skips no updates: it has no loss_scale'
cp "$examples"/digits_*.npy "$work"
sed 's/^optimizer: .*/optimizer: {adamw: {lr: 1.0e-3}, loss_scale: 1024}/' "$digits" >"$work/scaled.yaml"
run 0 run "$work/scaled.yaml" --device cpu --steps 1 --skip if
err '^gexec run: --skip changes nothing on the CPU$'
for launch in 8 auto; do
    run 0 run "$digits" --device cpu --steps 1 --steps-per-launch $launch
    err '^gexec run: --steps-per-launch changes nothing on the CPU$'
    out '1 step'
done
# Names of alternatives are of gexec and not of a card; a gexec without CUDA has none.
run 0 ops gemm
if grep -q 'CUDA alternatives' "$work/out"; then
    for command in run compare sweep check plan profile; do
        for force in tille lt,tille tille,lt; do
            run 2 $command "$digits" --device cpu -q --force $force
            out_is_empty
            err "^gexec $command: --force $force: no alternative is named 'tille'; did you mean tile\\?\$"
        done
        run 2 $command "$digits" --force lt,
        err "^gexec $command: --force lt,: no alternative is named ''\$"
    done
fi
run 0 run "$digits" --device cpu --steps 1 --force lt,tile
err '^gexec run: --force changes nothing on the CPU$'
run 0 run "$digits" --device cpu --steps 2 --steps-per-launch 2 --step-loop on --lanes 2
err '^gexec run: --lanes, --steps-per-launch and --step-loop change nothing on the CPU$'
# What is said on the terminal stands in the JSON, under -q as well.
idle()
{
    run 0 "$@" --device cpu -q --json "$work/idle.json"
    err_is_empty
    tr -d ' \n' <"$work/idle.json" | grep -oE '"flags_without_effect":\[[^]]*\]' >"$work/idle"
}
is_idle()
{
    [ "$(cat "$work/idle")" = "\"flags_without_effect\":[$1]" ] || fail "$last: the JSON says $(cat "$work/idle")"
}
for words in 'run --steps 1' 'check --samples 0' plan; do
    set -- $words
    command=$1
    shift
    idle $command "$work/scaled.yaml" "$@"
    is_idle ''
    idle $command "$work/scaled.yaml" "$@" --lanes 2 --force lt
    is_idle '"--force","--lanes"'
done
idle run "$work/scaled.yaml" --steps 1 --skip if --steps-per-launch 2
is_idle '"--skip","--steps-per-launch"'
"$gexec" run "$digits" --device cpu -q --blocks --pdl on </dev/null | grep -q '"flags_without_effect": \[ *"--pdl" *\]' ||
    fail "run --blocks does not say which flags change nothing"
run 2 run -- --help
err '--help'
run 0 run --device=cpu -q --steps=1 -- "$digits"
finish
