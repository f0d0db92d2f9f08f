# tools/bench/ncu.py, without a GPU and without ncu.
. ./lib.sh

command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 ../bench/test_ncu.py "$gexec" 2>"$work/err" || {
    fail "tests/bench/test_ncu.py ends with $?"
    cat "$work/err" >&2
}
finish
