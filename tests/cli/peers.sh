# tools/bench/peers.py, as far as it needs no GPU and no peer.
. ./lib.sh

command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
python3 ../bench/test_peers.py "$gexec" 2>"$work/err" || {
    fail "tests/bench/test_peers.py ends with $?"
    cat "$work/err" >&2
}
finish
