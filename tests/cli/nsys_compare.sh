# tools/nsys-compare, with an nsys and a gexec that are made up: no GPU and no profiler.
. ./lib.sh

tool=$root/tools/nsys-compare
bin=$work/bin
mkdir "$bin" "$work/nothing" "$work/here"
cd "$work/here" || exit 1
unset NSYS GEXEC
export NSIGHT_ROOT=$work/nothing
# No nsys of this machine.
while found=$(command -v nsys); do
    PATH=$(printf '%s' "$PATH" | tr : '\n' | grep -vxF "$(dirname "$found")" | paste -sd :)
done
for way in eager graph; do
    gunzip -c "$root/tests/data/nsys/gexec_digits_mlp_$way.sqlite.gz" >"$work/$way.sqlite"
done

"$gexec" doctor >"$work/doctor"
if ! grep -q '^has *SQLite' "$work/doctor"; then
    echo "skipped: this build has no SQLite"
    exit 77
fi

# A gexec that can run models without a GPU, and reads exports as the real one.
cat >"$bin/gexec" <<EOF
#!/bin/sh
echo "\$*" >>"$work/calls"
[ "\$1" != nsys ] || exec "$gexec" "\$@"
[ ! -e "$work/no_gpu" ] || { echo "gexec run: no usable GPU" >&2; exit 3; }
EOF
# An nsys that records nothing and exports what is there. Only these two commands are known
# to it: no report of \`nsys stats\`, whose names change, is asked for.
cat >"$bin/nsys" <<EOF
#!/bin/bash
echo "nsys \$*" >>"$work/calls"
for word in "\$@"; do
    case \$word in
    --output=*) out=\${word#--output=} ;;
    esac
done
case \$1 in
profile)
    [ ! -e "$work/nsys_fails" ] || { echo "nsys: the collector went away"; exit 9; }
    while [ "\$1" != "$bin/gexec" ]; do shift; done
    "\$@" || exit
    if [ -e "$work/only_stream" ]; then : >"\$out.qdstrm"; else : >"\$out.nsys-rep"; fi
    ;;
export)
    case \$out in
    *_eager.sqlite) cp "$work/eager.sqlite" "\$out" ;;
    *_graph.sqlite) cp "$work/graph.sqlite" "\$out" ;;
    esac
    ;;
*) exit 1 ;;
esac
EOF
chmod +x "$bin"/*

# compare STATUS ARGUMENTS...
compare()
{
    local wanted=$1 status=0
    shift
    last="nsys-compare $*"
    : >"$work/calls"
    "$tool" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    if [ $status != "$wanted" ]; then
        fail "$last: exit status $status, expected $wanted"
        head -n 20 "$work/out" "$work/err" >&2
    fi
}

called()
{
    grep -qE -- "$1" "$work/calls" || { fail "$last: no call matches '$1'"; cat "$work/calls" >&2; }
}

# Usage.
compare 0 --help
out '^usage: tools/nsys-compare MODEL'
compare 2
err 'expected MODEL'
compare 2 a.yaml b.yaml
err "unexpected 'b.yaml'"
compare 2 a.yaml --steps 0
err '--steps 0: expected a whole number'
compare 2 a.yaml --eager
err '--eager is given by nsys-compare itself'
compare 2 a.yaml --set
err '--set: expected a value'

# No nsys, no gexec.
compare 3 "$digits"
err '^nsys-compare: no nsys in the PATH or below .*nothing: install Nsight Systems'
[ "$(wc -l <"$work/err")" = 1 ] || fail "$last: more than one sentence"
NSYS=$work/none compare 3 "$digits"
err 'NSYS=.*none cannot be run'
NSYS=$bin/nsys GEXEC=$work/none compare 3 "$digits"
err 'GEXEC=.*none cannot be run'

# Both ways, found in the PATH; flags are passed on.
PATH=$bin:$PATH GEXEC=$bin/gexec compare 0 "$digits" -o "$work/there" --steps 7 --set batch=16 -v
out '^before against after: '
out '^  .*/there/digits_mlp_eager\.nsys-rep$'
out '^  .*/there/digits_mlp_graph\.nsys-rep$'
out 'nsys-ui'
for way in eager graph; do
    called "^nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --capture-range=cudaProfilerApi --capture-range-end=stop --cuda-graph-trace=node .*run $digits --$way --nsys-window --steps 7 -q --set batch=16 -v --evaluate never --plan $work/there/digits_mlp\.plan\.yaml$"
    called "^nsys export --type=sqlite .*--output=$work/there/digits_mlp_$way.sqlite $work/there/digits_mlp_$way.nsys-rep$"
    [ -e "$work/there/digits_mlp_$way.sqlite" ] || fail "$last: no export of $way is left"
done
nothing_left "$work/here"

# In the usual places, the newest of them; a plan and an evaluation of the user's own.
for version in 2024.9.1 2024.10.2; do
    mkdir -p "$work/opt/nsight-systems/$version/bin"
    sed "s:^echo \"nsys :echo \"$version nsys :" "$bin/nsys" >"$work/opt/nsight-systems/$version/bin/nsys"
    chmod +x "$work/opt/nsight-systems/$version/bin/nsys"
done
NSIGHT_ROOT=$work/opt GEXEC=$bin/gexec compare 0 "$digits" --plan p.yaml --evaluate=end
called '^2024\.10\.2 nsys profile .* --plan p\.yaml --evaluate=end$'
[ -e nsys-digits_mlp/digits_mlp_graph.sqlite ] || fail "$last: no folder of its own"
mkdir -p "$work/ncu/nsight-compute/2025.3.1/host/target-linux-x64"
cp "$bin/nsys" "$work/ncu/nsight-compute/2025.3.1/host/target-linux-x64/"
NSIGHT_ROOT=$work/ncu GEXEC=$bin/gexec compare 0 "$digits"

# No GPU: gexec's own words and status, and nothing is recorded.
: >"$work/no_gpu"
NSYS=$bin/nsys GEXEC=$bin/gexec compare 3 "$digits"
err '^gexec run: no usable GPU$'
! grep -q '^nsys' "$work/calls" || fail "$last: nsys was called"
rm "$work/no_gpu"

# An nsys that fails.
: >"$work/nsys_fails"
NSYS=$bin/nsys GEXEC=$bin/gexec compare 4 "$digits"
err 'the collector went away'
err '^nsys-compare: nsys profile exits with 9 and left no report$'
rm "$work/nsys_fails"

# A collector that leaves its stream: imported where the importer is, else said.
: >"$work/only_stream"
NSYS=$bin/nsys GEXEC=$bin/gexec compare 3 "$digits"
err 'nsys left only .*digits_mlp_eager\.qdstrm, and there is no QdstrmImporter'
host=$work/ncu/nsight-compute/2025.3.1/host/linux-desktop-glibc_2_11_3-x64
mkdir "$host"
printf '#!/bin/bash\n[ "$1" = -i ] && : >"${2%%.qdstrm}.nsys-rep"\n' >"$host/QdstrmImporter"
chmod +x "$host/QdstrmImporter"
NSIGHT_ROOT=$work/ncu GEXEC=$bin/gexec compare 0 "$digits"
out '^before against after: '
printf '#!/bin/sh\necho broken stream\nexit 1\n' >"$host/QdstrmImporter"
NSIGHT_ROOT=$work/ncu GEXEC=$bin/gexec compare 4 "$digits"
err 'broken stream'
err 'could not import'
finish
