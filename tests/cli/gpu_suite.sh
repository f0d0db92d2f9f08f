# tests/gpu_suite over programs that stand in for those that need a GPU.
. ./lib.sh

build=$work/build
mkdir -p "$build/tests" "$work/bin"
export PATH=$work/bin:$PATH FAKE=$work GPU_SUITE_JOBS=2
unset CUDA_VISIBLE_DEVICES GPU_SUITE_DEVICES

# What they say is CMocka's. FAKE/NAME makes one fail, or hang until it is told to end.
cat >"$work/program" <<'END'
#!/usr/bin/env bash
name=$(basename "$0")
echo "$name ${CUDA_VISIBLE_DEVICES-every}" >>"$FAKE/devices"
case $(cat "$FAKE/$name" 2>/dev/null) in
fail)
    echo '[  FAILED  ] sums_are_right'
    exit 1
    ;;
hang)
    echo '[ RUN      ] a_long_test'
    exec sleep 600
    ;;
esac
echo '[  PASSED  ] 3 test(s).'
END
cat >"$work/conformance" <<'END'
#!/usr/bin/env bash
[ "$1" = gpu ] || exit 2
echo "$2 $3" >>"$FAKE/turns"
if [ "$(cat "$FAKE/conformance" 2>/dev/null)" = "hang $3" ]; then
    trap 'echo "stopped in case 7, gemm; 5 checks, 0 failures"; exit 143' TERM
    sleep 600 &
    wait
fi
echo "conformance: 10 checks, 2 alternatives forced, 1 plans measured, 3 cases, 0 failures"
END
cat >"$work/bin/compute-sanitizer" <<'END'
#!/usr/bin/env bash
while [[ $1 == -* ]]; do
    case $1 in --tool | --error-exitcode | --print-limit | --report-api-errors) shift ;; esac
    shift
done
"$@" || exit
echo "========= ERROR SUMMARY: 0 errors"
END
cp "$work/conformance" "$build/tests/conformance"
# Those of synccheck are named in the suite itself.
eval "$(sed -n '/^kernel_tests=(/,/)/p' ../gpu_suite)"
[ ${#kernel_tests[@]} -ge 9 ] || fail "gpu_suite names ${#kernel_tests[@]} tests of kernels"
for name in "${kernel_tests[@]}" gpu_memory gpu_ceilings gpu_delays test_examples; do
    cp "$work/program" "$build/tests/$name"
done
chmod +x "$build/tests/"* "$work/bin/"*

# suite STATUS ARGUMENTS...: its output is then in $work/out.
suite()
{
    local wanted=$1 status=0
    shift
    ../gpu_suite "$@" >"$work/out" 2>"$work/err" || status=$?
    [ $status = "$wanted" ] || {
        fail "gpu_suite $*: exit status $status, expected $wanted"
        cat "$work/out" "$work/err" >&2
    }
}

says()
{
    grep -qE "$1" "$work/out" || {
        fail "gpu_suite does not say: $1"
        cat "$work/out" >&2
    }
}

suite 0 --commit abc "$build" plain memcheck
says '^[0-9T:-]+Z +gpu_suite --commit abc .* plain memcheck  at abc$'
says '^plain +gpu_kernels +ok .* 3 passed, 0 failed, 0 skipped'
says '^memcheck +gpu_kernels +ok .* ERROR SUMMARY: 0 errors'
says '^plain +conformance, all +conformance: 40 checks, 8 alternatives forced, 4 plans'
says '^gpu_suite: all passed$'

# Devices are taken in turn where they are named, and left as they are where not.
! grep -v ' every$' "$work/devices" || fail "a device was chosen"
: >"$work/devices"
GPU_SUITE_DEVICES=4,7 suite 0 --only gpu_kernels,gpu_gemm,gpu_rows "$build"
[ "$(sort "$work/devices" | tr '\n' ' ')" = "gpu_gemm 4 gpu_kernels 7 gpu_rows 4 " ] ||
    fail "devices not in turn: $(cat "$work/devices")"

# Cases stand in turn by precision, of which there are four: every second would miss some.
: >"$work/turns"
suite 0 "$build" synccheck racecheck
[ "$(wc -l <"$work/turns")" -ge 6 ] || fail "few turns of the conformance"
while read -r every first; do
    [ $((every % 2)) = 1 ] || fail "conformance gpu $every $first misses a precision"
done <"$work/turns"

# A failure is one, whatever the budget.
echo fail >"$work/gpu_gemm"
suite 1 --budget 500 "$build"
says '^plain +gpu_gemm +FAILED \(1\)'
says '^gpu_suite: 1 failed$'
rm "$work/gpu_gemm"

# What the budget ends is named with where it was, and so is what was not begun.
echo hang >"$work/gpu_kernels"
echo "hang 1" >"$work/conformance"
suite 3 --budget 20 "$build" plain synccheck
says '^plain +gpu_kernels +not finished +[0-9]+s +\[ RUN      \] a_long_test'
says '^plain +conformance.1 +not finished +[0-9]+s +stopped in case 7, gemm'
says '^plain +gpu_gemm +ok'
says '^gpu_suite: not run or not finished in 20 s:$'
says '^  plain gpu_kernels$'
says '^  plain conformance.1$'
says '^  synccheck gpu_rows$'
! grep -q 'all passed' "$work/out" || fail "gpu_suite calls it all passed"
! grep -q Killed "$work/err" || fail "gpu_suite lets bash tell whom it killed"

# And is run by name later.
rm "$work/gpu_kernels" "$work/conformance"
suite 0 --only gpu_kernels,conformance.1 "$build"
says '^plain +gpu_kernels +ok'
says '^plain +conformance, all +conformance: 10 checks'
! grep -q gpu_gemm "$work/out" || fail "--only runs gpu_gemm too"

# A folder is the caller's.
(cd "$work" && "$OLDPWD/../gpu_suite" --only gpu_gemm build >"$work/out") ||
    fail "no build in the caller's folder"

suite 2 --only gpu_none "$build"
suite 2 --only gpu_gemm,gpu_none "$build"
suite 2 --only gpu_gemm,,gpu_rows "$build"
for value in 0 -1 08 1.5 a; do
    GPU_SUITE_JOBS=$value suite 2 "$build"
    GPU_SUITE_LIMIT=$value suite 2 "$build"
done
for value in , ,0 0,,1 a '0;1' '0 1'; do
    GPU_SUITE_DEVICES=$value suite 2 "$build"
    grep -q "GPU_SUITE_DEVICES: expected" "$work/err" || fail "devices '$value' are taken"
done
suite 2 --budget 0 "$build"
suite 2 --budget
says "^Exit status: 0 all passed"
suite 2 "$build" plain quickcheck
suite 2 "$work"
finish
