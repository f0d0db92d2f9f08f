# The models and lists of ops that the pages print load as they are printed, and the scripts that
# they name start.
. ./lib.sh

# Fragments go to $work/pages/NAME.N.yaml: of graphs/README.md what is indented, of README.md
# what is fenced as YAML.
mkdir "$work/pages"
awk -v to="$work/pages/format." '
    /^    / { if (!inside) n++; inside = 1; print substr($0, 5) >(to n ".yaml"); next }
    { inside = 0 }' "$root/graphs/README.md"
awk -v to="$work/pages/readme." '
    /^```/ { inside = /^```yaml/; n += inside; next }
    inside { print >(to n ".yaml") }' "$root/README.md"

# What a list of ops takes for granted is in the first model of its page, but for two sizes.
cp "$examples"/digits_*.npy "$work/pages"
sed -e '/^ops:/,$d' -e 's/^dims: {/&width: 64, depth: 3, /' "$work/pages/format.1.yaml" >"$work/head"
models=0
lists=0
for page in "$work"/pages/*.yaml; do
    if grep -q '^gexec: 1$' "$page"; then
        models=$((models + 1))
    elif grep -q '^ops:$' "$page"; then
        sed -i '1i gexec: 1' "$page"
        models=$((models + 1))
    elif head -n 1 "$page" | grep -qE '^- (\{op: .*\}|repeat:)$'; then
        { cat "$work/head"; echo 'ops:'; cat "$page"; } >"$work/list"
        cp "$work/list" "$page"
        lists=$((lists + 1))
    else
        continue
    fi
    run 0 plan "$page" --device cpu --stage graph
done
[ $models -ge 3 ] || fail "expected 3 models or more on the pages, found $models"
[ $lists -ge 2 ] || fail "expected 2 lists of ops or more on the pages, found $lists"

scripts=0
for script in "$root"/tools/bench/*.py "$root"/tests/parity/*.py "$root"/tests/whatif/*.py; do
    grep -q '^if __name__ == "__main__":' "$script" || continue
    scripts=$((scripts + 1))
    python3 "$script" --help >"$work/help" 2>&1 ||
        fail "${script##*/} does not start: $(tail -n 1 "$work/help")"
done
# The manual has each variable of the environment that the program reads, and no other.
(
    cd "$root"
    grep -rhoE 'getenv\("[A-Z0-9_]+"\)' --include='*.c' graphs ops executor tools
    sed -n '/gx_cuda_variables\[\] =/,/;/p' tools/session.c | grep -oE '"[A-Z0-9_]+"'
) | grep -oE '[A-Z0-9_]{2,}' | sort -u >"$work/variables"
sed -n '/^\.SH ENVIRONMENT/,/^\.SH EXIT/p' "$root/tools/gexec.1" | grep -E '^\.BR? [A-Z]' |
    grep -oE '\b[A-Z][A-Z0-9_]{2,}\b' | sort -u >"$work/told"
[ "$(wc -l <"$work/variables")" -ge 11 ] || fail "expected 11 variables or more"
diff "$work/variables" "$work/told" >&2 || fail "gexec.1 has other variables than the program reads"
[ $scripts -ge 6 ] || fail "expected 6 scripts or more, found $scripts"
finish
