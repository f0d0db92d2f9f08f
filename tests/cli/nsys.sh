# gexec nsys: what it says of traces of ours, and of files that are none.
. ./lib.sh

traces=$root/tests/data/traces
nsys=$work/bin
for name in torch_mnist_mlp_tf32_eager torch_mnist_mlp_tf32_graph probe_ten_ops_graph \
    probe_ten_ops_node; do
    gunzip -c "$traces/$name.sqlite.gz" >"$work/$name.sqlite"
done
eager=$work/torch_mnist_mlp_tf32_eager.sqlite
graph=$work/torch_mnist_mlp_tf32_graph.sqlite

"$gexec" doctor >"$work/doctor"
if ! grep -q '^has *SQLite' "$work/doctor"; then
    run 3 nsys "$eager"
    err 'this build has no SQLite'
    finish
fi

# One export.
run 0 nsys "$eager"
err_is_empty
out 'the GPU was busy for 533 us of 12\.9 ms \(4\.1%\); 97\.5% of its idle time waited for the host'
out '^  span 12899235 ns = busy 532717 \(4\.1%\) \+ idle 12366518 \(95\.9%\)$'
out '^  host +139 +12052463 +97\.5% +5 +1422008$'
out '^  launch +16 +314055 '
out '^  stream 7: 156 kernels, median distance 51008 ns$'
out '^  kernel +156 +2106328 +0$'
out '^ +172866 +12 +launch +optimizer$'
out '^ +894896 +host +backward: void at.* +void at'
run 0 nsys "$graph"
out 'node rows before the window, ranges absent: 156 replayed ops'
out '^  device +154 +37121 '
run 0 nsys "$graph" -q
! grep -q remark "$work/out" || fail "$last: remarks under -q"
run 0 nsys "$graph" -v
out 'not found +CUPTI_ACTIVITY_KIND_MEMCPY, '
run 0 nsys "$work/probe_ten_ops_node.sqlite"
for op in 0 1 2 3 4 5 6 7 8 9; do
    out "^ +[0-9]+ +3 +capture +op$op\$"
done
run 0 nsys "$work/probe_ten_ops_graph.sqlite"
out 'graph-level trace: no per-op data for 3 graph launches \(3 replays recorded\)'
out 'nsys profile --cuda-graph-trace=node'
run 0 nsys "$eager" --top 1
out '^  and 18 more names$'
run 0 nsys "$eager" --within forward
out "inside ranges named 'forward'"
run 2 nsys "$eager" --within forwards
err "no range is named 'forwards'"
run 0 nsys "$eager" --step-range forward
out "^  steps +6 \\(ranges named 'forward'\\)$"
err_is_empty
run 0 nsys "$eager" "$graph" --step-range forwards
err "eager.sqlite: no range named 'forwards' is in what is counted, so that no step is\$"
err "graph.sqlite: no range named 'forwards'"
run 0 nsys "$eager" --step-range forwards -q
err_is_empty

# What graphs would buy.
run 0 nsys "$eager"
out '^what graphs would buy$'
out "^  step +26 kernels on 1 stream; found by ranges named 'step': 6 steps\$"
out '^  eager +2\.03 ms a step, as traced: tracing slows the launches'
out '^  as a graph +87\.5 us a step \([^)]*\), replays back to back, untraced$'
out '^ +at most 23\.17 times as fast: against the traced step$'
out '^  kernel sum +88\.8 us a step'
out '^  pays back +within the first step at the earliest: '
out 'legacy stream: 26 a step'
out '^  costs .*constants, as measured on NVIDIA H100 [^ ]+ HBM3$'
out '^  assumed '
run 0 nsys "$eager" --step-range nothing
out '^  step .*found as the sequence of launches that repeats: 6 steps$'
out '^  as a graph +87\.5 us a step \('
run 0 nsys "$graph"
out "^  n/a +the device's work is replayed from graphs already\$"
run 0 nsys "$work/probe_ten_ops_node.sqlite" --step-range eager
out '^  as a graph +11\.3 us a step'
out '^ +10\.1 us from a replay'
out 'synchronizing call cudaStreamSynchronize_v3020: 1 a step'
printf 'card a card\nnode_ns 100000\nstep_ns 0\n' >"$work/costs"
run 0 nsys "$eager" --costs "$work/costs"
out '^  as a graph +2\.60 ms a step'
out '^  pays back +never: the step is no faster than even the traced one$'
out "costs .*of $work/costs\$"
out "^ +the trace's card is NVIDIA H100 [^:]*: give its costs with --costs$"
for twice in node_ns card; do
    printf "$twice 1\nstep_ns 0\n$twice 1\n" >"$work/costs"
    run 2 nsys "$eager" --costs "$work/costs"
    err "costs:3: $twice is given twice\$"
done
printf 'nodes 1\n' >"$work/costs"
run 2 nsys "$eager" --costs "$work/costs"
err "costs:1: no cost is named 'nodes'"
printf 'words of another file\n' >"$work/costs"
run 2 nsys "$eager" --costs "$work/costs"
err "costs:1: no cost is named 'words'"
run 2 nsys "$eager" --costs "$work/none"
err 'No such file'

# Untraced the graph was 1.13 times as fast: what a traced eager step says is a bound.
gunzip -c "$root/tests/data/nsys/gexec_deep_narrow_eager.sqlite.gz" >"$work/deep.sqlite"
run 0 nsys "$work/deep.sqlite"
out '^ +at most 2\.87 times as fast: against the traced step$'
out '^  pays back +after at least 2 steps: '
[ "$(grep 'times as fast' "$work/out" | grep -vc 'at most')" = 0 ] ||
    fail "$last: compares what was traced with what was not"
run 0 nsys "$work/deep.sqlite" -q --json -
json "$work/out"
out '"traced_eager_ns": 683983'
out '"most_times_as_fast": 2\.87'
out '"least_payback_steps": 1\.50'
! grep -qE '"(eager_ns|payback_steps)"' "$work/out" || fail "$last: the JSON does not say what was traced"

# Two, before against after.
run 0 nsys "$eager" "$graph"
out '^before against after: 156 launches became 6, idle time went from 12\.4 ms to 71\.3 us'
out '^  kernel launches +156 +0 +x 0\.000$'
out '^  kernels +156 +156 +same$'
! grep -q warning "$work/out" || fail "$last: warns of two that did the same"
run 0 nsys "$eager" "$work/probe_ten_ops_node.sqlite"
out 'warning: 156 kernels before, 40 after'
out 'warning: busy time differs by -92\.2%'
run 0 nsys "$eager" "$work/probe_ten_ops_graph.sqlite"
out 'warning: graph-level trace'

# For programs.
run 0 nsys "$eager" "$graph" --json -
json "$work/out"
out '"gexec_nsys": 2'
out '"span_ns": 12899235'
out '"found_by": "range"'
out '"why_not": "the device.s work is replayed from graphs already"'
run 0 nsys "$eager" "$graph" --csv - -q
[ "$(wc -l <"$work/out")" = 311 ] || fail "$last: expected a title and 310 gaps"
[ "$(awk -F, 'NR > 1 { sum += $5 } END { print sum }' "$work/out")" = $((12366518 + 71265)) ] ||
    fail "$last: the gaps do not add up to the idle time"
run 0 nsys "$eager" --json "$work/one.json" --csv "$work/one.csv"
out '^  host +139 '
json "$work/one.json"
[ "$(wc -l <"$work/one.csv")" = 156 ] || fail "$last: expected 155 gaps in the file"
run 2 nsys "$eager" --json - --csv -
err 'standard output takes one result'
run 2 nsys "$eager" --csv "$work/no/folder/gaps.csv"
err '--csv .*the folder .*no/folder/?: No such file'

# To look at.
run 0 nsys "$eager" "$graph" --html "$work/page.html" --chrome "$work/trace.json"
out '^before against after'
err_is_empty
json "$work/trace.json"
grep -q '"GPU 0 torch_mnist_mlp_tf32_graph.sqlite"' "$work/trace.json" || fail "$last: no GPU of the second file"
grep -q '^</html>$' "$work/page.html" || fail "$last: the page has no end"
run 0 nsys "$eager" --chrome -
json "$work/out"
run 0 nsys "$eager" --html -
out '^<!doctype html>$'
run 2 nsys "$eager" --html - --json -
err 'takes one result'
run 2 nsys "$eager" --html "$work/no/folder/page.html"
for flag in html json csv chrome; do # not over what is read, by whatever name
    ln -sf "$eager" "$work/other_name"
    run 2 nsys "$graph" "$eager" "--$flag" "$work/other_name"
    out_is_empty
    err "^gexec nsys: --$flag .*other_name would replace a file that the command reads\$"
done
cp "$work/costs" "$work/costs.kept"
run 2 nsys "$eager" --costs "$work/costs" --json "$work/./costs"
err 'would replace a file that the command reads'
same "$work/costs" "$work/costs.kept"
mkdir "$work/taken"
run 2 nsys "$eager" --chrome "$work/taken"
[ ! -e "$work/taken.part" ] || fail "$last: left a temporary file"

# Traces of PyTorch's profiler.
if grep -q '^has *YAJL' "$work/doctor" && grep -q '^has *zlib' "$work/doctor"; then
    run 0 nsys "$traces/kineto_mnist_mlp_tf32_eager.json.gz" \
        "$traces/kineto_mnist_mlp_tf32_graph.json.gz"
    out '^before against after: 156 launches became 6'
    out '^  span 640942 ns = busy 528656 '
    gunzip -c "$traces/kineto_mnist_mlp_tf32_graph.json.gz" >"$work/graph.json"
    run 0 nsys "$work/graph.json"
    out 'no NVTX data'
    head -c 5000 "$work/graph.json" >"$work/cut.json"
    run 2 nsys "$work/cut.json"
    err 'cut short, at byte [0-9]+'
    run 2 nsys "$traces/torch_mnist_mlp_tf32_graph.sqlite.gz"
    err 'an SQLite file inside gzip; gunzip it first'
fi

# A report, with an nsys and without.
cp "$eager" "$work/report.nsys-rep"
printf 'a report of another make' >"$work/report.nsys-rep"
PATH=/nonexistent run 3 nsys "$work/report.nsys-rep"
err 'nsys export --type=sqlite --output=report\.sqlite .*report\.nsys-rep'
mkdir "$nsys"
cat >"$nsys/nsys" <<EOF2
#!/bin/sh
echo chatter
for word in "\$@"; do
    case \$word in
    --output=*) cp "$eager" "\${word#--output=}" ;;
    esac
done
EOF2
chmod +x "$nsys/nsys"
mkdir "$work/tmp"
TMPDIR=$work/tmp PATH=$nsys:$PATH run 0 nsys "$work/report.nsys-rep"
out '^  host +139 '
out "^$work/report.nsys-rep: the GPU was busy"
! grep -q chatter "$work/out" || fail "$last: nsys wrote into the result"
nothing_left "$work/tmp"
printf '#!/bin/sh\nexit 9\n' >"$nsys/nsys"
TMPDIR=$work/tmp PATH=$nsys:$PATH run 2 nsys "$work/report.nsys-rep"
err 'nsys export exits with 9'
nothing_left "$work/tmp"

# Files that are none.
: >"$work/empty.sqlite"
head -c 40000 "$eager" >"$work/cut.sqlite"
printf 'words\n' >"$work/words.sqlite"
run 2 nsys "$work/empty.sqlite"
err 'the file is empty'
run 2 nsys "$work/cut.sqlite"
err 'truncated: it has 40000 of [0-9]+ bytes'
run 2 nsys "$work/words.sqlite"
err 'neither an Nsight Systems export'
run 2 nsys "$work/none.sqlite"
err 'No such file'
mkfifo "$work/pipe"
run 2 nsys "$work/pipe"
err 'a pipe; expected a file'
run 2 nsys
err 'expected A \[B\]'
run 2 nsys "$eager" "$graph" "$eager"
err 'unexpected'
finish
