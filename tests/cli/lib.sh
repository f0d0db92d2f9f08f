# What the scripts of this folder have in common. Each is called with the program, and
# ends with 0 when everything it expected was so.
set -u
export LC_ALL=C

gexec=$(realpath "$1")
root=$(realpath ../..)
examples=$root/graphs/examples
digits=$examples/digits_mlp.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache

failures=0

fail()
{
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# run STATUS ARGUMENTS...: runs gexec; its output is then in $work/out and $work/err.
run()
{
    local wanted=$1 status=0
    shift
    last="gexec $*"
    "$gexec" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    if [ $status != "$wanted" ]; then
        fail "$last: exit status $status, expected $wanted"
        head -n 20 "$work/out" "$work/err" >&2
    fi
}

# out PATTERN and err PATTERN: the last run wrote a line that matches.
out()
{
    grep -qE -- "$1" "$work/out" || { fail "$last: no line of its output matches '$1'"; head -n 20 "$work/out" >&2; }
}

err()
{
    grep -qE -- "$1" "$work/err" || { fail "$last: no line of its messages matches '$1'"; head -n 20 "$work/err" >&2; }
}

out_is_empty()
{
    [ ! -s "$work/out" ] || { fail "$last: wrote to standard output"; head -n 5 "$work/out" >&2; }
}

err_is_empty()
{
    [ ! -s "$work/err" ] || { fail "$last: wrote a message"; head -n 5 "$work/err" >&2; }
}

json()
{
    awk -f json.awk "$1" || fail "$last: $1 is no JSON"
}

same()
{
    cmp "$1" "$2" >&2 || fail "$last: $1 and $2 differ"
}

# No file of a write that failed, and no temporary one, is left behind.
nothing_left()
{
    local found
    found=$(find "$1" -mindepth 1 | head -n 5)
    [ -z "$found" ] || fail "$last: left $found"
}

finish()
{
    [ $failures = 0 ] || { echo "$failures expectations were not met" >&2; exit 1; }
    exit 0
}
