# tools/bench/build_cost.py, without a GPU.
. ./lib.sh

command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 ../bench/test_build_cost.py "$gexec" 2>"$work/err" || {
    fail "tests/bench/test_build_cost.py ends with $?"
    cat "$work/err" >&2
}
finish
