# What tests/parity has apart from PyTorch.
. ./lib.sh

command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 ../parity/test_model.py 2>"$work/err" || {
    fail "tests/parity/test_model.py ends with $?"
    cat "$work/err" >&2
}
finish
