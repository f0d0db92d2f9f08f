#!/usr/bin/env bash
# The search for a CUDA toolkit and its architectures, by the build and by tools/setup,
# among toolkits that are only pretended.
# usage: toolkit.sh ROOT [CMAKE]
set -euo pipefail

root=$(realpath "$1")
cmake=${2:-cmake}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset CUDACXX CUDAToolkit_ROOT CUDA_HOME CUDA_PATH GEXEC_CUDA_ROOT
failed=0

# pretend FOLDER RELEASE [CARD]: a toolkit, and the architecture of the card it sees.
pretend()
{
    mkdir -p "$scratch/$1/bin"
    cat >"$scratch/$1/bin/nvcc" <<EOF
#!/bin/sh
case \$1 in
--version) echo "Cuda compilation tools, release $2, V$2.1" ;;
--list-gpu-code) printf 'sm_%s\n' 75 80 90 100 110 103 ;;
esac
EOF
    cat >"$scratch/$1/bin/__nvcc_device_query" <<EOF
#!/bin/sh
[ -n "${3:-}" ] || { echo "No CUDA devices found (error 100)."; exit 1; }
echo "${3:-}"
EOF
    chmod +x "$scratch/$1/bin/"*
}

cat >"$scratch/show.cmake" <<EOF
set(CMAKE_SOURCE_DIR $scratch)
include($root/tools/cmake/cuda_toolkit.cmake)
if(GX_HAVE_CUDA)
    message("found \${CMAKE_CUDA_COMPILER} for \${CMAKE_CUDA_ARCHITECTURES}")
else()
    message("none: \${GX_NO_CUDA_REASON}")
endif()
EOF

# expect NAME WANTED COMMAND...: the output of COMMAND contains WANTED.
expect()
{
    local name=$1 wanted=$2 output
    shift 2
    output=$("$@" 2>&1 || true)
    if ! grep -qF -- "$wanted" <<<"$output"; then
        printf '%s: expected "%s" in:\n%s\n' "$name" "$wanted" "$output" >&2
        failed=$((failed + 1))
    fi
}

configure()
{
    "$cmake" -DGEXEC_CUDA=AUTO "$@" -P "$scratch/show.cmake"
}

pretend old 11.8
pretend new 13.0
pretend card 12.9 90
mkdir "$scratch/broken" "$scratch/broken/bin"
printf '#!/bin/sh\nexit 1\n' >"$scratch/broken/bin/nvcc"
chmod +x "$scratch/broken/bin/nvcc"
at() { echo "-DGEXEC_CUDA_ROOT=$scratch/$1"; }
every="80-real;90-real;100-real;103-real;110-real;110-virtual"

expect off 'none: switched off' configure -DGEXEC_CUDA=OFF "$(at new)"
expect absent 'none: no toolkit found' configure "$(at absent)"
expect absent_but_on 'GEXEC_CUDA=ON, but no toolkit found' configure -DGEXEC_CUDA=ON "$(at absent)"
expect bad_value "expected AUTO, ON or OFF" configure -DGEXEC_CUDA=maybe
expect old 'is of 11.8, older than 12.4' configure "$(at old)"
expect broken 'does not run' configure "$(at broken)"
expect no_architecture_given "new/bin/nvcc for $every" configure "$(at new)"
expect empty_architecture "for $every" configure "$(at new)" -DCMAKE_CUDA_ARCHITECTURES=
expect all_architectures "for $every" configure "$(at new)" -DCMAKE_CUDA_ARCHITECTURES=all
expect native_without_card "for $every" configure "$(at new)" -DCMAKE_CUDA_ARCHITECTURES=native
expect native_with_card "for 90-real" configure "$(at card)" -DCMAKE_CUDA_ARCHITECTURES=native
expect given_architecture "for 89-real" configure "$(at new)" -DCMAKE_CUDA_ARCHITECTURES=89-real

# Both searches pass over what they cannot use, in the same order.
for first in old broken absent; do
    expect "build_passes_over_$first" "found $scratch/new/bin/nvcc" \
        env CUDA_HOME="$scratch/$first" CUDA_PATH="$scratch/new" \
        "$cmake" -DGEXEC_CUDA=AUTO -P "$scratch/show.cmake"
    expect "setup_passes_over_$first" "CUDA toolkit: $scratch/new/bin/nvcc" \
        env CUDA_HOME="$scratch/$first" CUDA_PATH="$scratch/new" "$root/tools/setup" --dry-run
done
expect setup_finds_root "CUDA toolkit: $scratch/card/bin/nvcc" \
    env GEXEC_CUDA_ROOT="$scratch/card" CUDACXX="$scratch/new/bin/nvcc" "$root/tools/setup" --dry-run
expect setup_wants_the_root_that_was_named "where there is no CUDA toolkit" \
    env GEXEC_CUDA_ROOT="$scratch/absent" "$root/tools/setup" --dry-run
expect setup_for_cpu "no CUDA toolkit needed" \
    env GEXEC_CUDA_ROOT="$scratch/absent" "$root/tools/setup" --cpu --dry-run
expect setup_unknown "unknown argument '--fast'" "$root/tools/setup" --fast
if [ -e "$scratch/absent" ] || [ -e "$scratch/absent.part" ]; then
    echo "a dry run changed something" >&2
    failed=$((failed + 1))
fi

[ $failed = 0 ]
