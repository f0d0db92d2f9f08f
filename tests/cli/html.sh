# The HTML report in a browser without a head. GX_SCREENSHOTS=FOLDER keeps pictures.
. ./lib.sh

lacks()
{
    echo "no $1 here" >&2
    # Where the browser was installed for this test, it must not be passed over.
    [ -z "${GX_REQUIRE_BROWSER:-}" ] || exit 1
    exit 77
}

command -v chromedriver >/dev/null || lacks chromedriver
command -v python3 >/dev/null || lacks python3
"$gexec" doctor >"$work/doctor"
grep -q '^has *SQLite' "$work/doctor" || lacks 'SQLite in this build'

traces=$root/tests/data/traces
for name in torch_mnist_mlp_tf32_eager torch_mnist_mlp_tf32_graph; do
    gunzip -c "$traces/$name.sqlite.gz" >"$work/$name.sqlite"
done
run 0 nsys "$work/torch_mnist_mlp_tf32_eager.sqlite" \
    "$work/torch_mnist_mlp_tf32_graph.sqlite" --html "$work/nsys.html" --csv "$work/gaps.csv"
out '^before against after'

# Pages that a test makes of values that are made up, a profile among them.
pages=$(dirname "$gexec")/tests/test_report_html
[ -x "$pages" ] || pages=$(dirname "$gexec")/test_report_html
if [ -x "$pages" ]; then
    (cd "$root" && GX_REPORT_PAGES=$work "$pages" >"$work/log" 2>&1) ||
        fail "$pages: $(tail -n 5 "$work/log")"
fi

PYTHONDONTWRITEBYTECODE=1 HOME=$work python3 html_checks.py "$work" || fail "html_checks.py"
finish
