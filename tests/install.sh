#!/usr/bin/env bash
# The program of the README, built against an installation by CMake and by pkg-config, and
# what gexec leaves alone in a project that it is a part of.
# usage: install.sh ROOT BUILD CMAKE CC
set -euo pipefail
root=$1 build=$2 cmake=$3 cc=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail()
{
    echo "install.sh: $*" >&2
    exit 1
}

flags=()
[ -z "${GX_SANITIZE:-}" ] || flags+=("-fsanitize=$GX_SANITIZE")

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix" # which nothing in it may hang on
prefix=$work/prefix
for file in bin/gexec share/man/man1/gexec.1 include/gexec/gexec.h; do
    [ -e "$prefix/$file" ] || fail "$file is not installed"
done

mkdir "$work/app"
sed -n '/^```c$/,/^```$/{/^```/!p}' "$root/README.md" >"$work/app/main.c"
grep -q gx_exec_run "$work/app/main.c" || fail "the README has no program"
cp "$root"/graphs/examples/digits_mlp.yaml "$work/app/model.yaml"
cp "$root"/graphs/examples/*.npy "$work/app/"

# runs PROGRAM: it says what the README has it say.
runs()
{
    local said
    said=$(cd "$work/app" && "$1") || fail "$1 fails"
    [[ $said =~ ^loss\ after\ 100\ steps:\ [0-9.e-]+$ ]] || fail "$1 says: $said"
}

cat >"$work/app/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(app C)
find_package(gexec 0.1 REQUIRED)
add_executable(app main.c)
target_link_libraries(app PRIVATE gexec::gexec)
END
"$cmake" -S "$work/app" -B "$work/app/build" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="${flags[*]}" >/dev/null
"$cmake" --build "$work/app/build" >/dev/null
runs "$work/app/build/app"

export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gexec.pc)")
read -ra linked <<<"$(pkg-config --cflags --libs gexec)"
"$cc" "${flags[@]}" -o "$work/app/plain" "$work/app/main.c" "${linked[@]}"
runs "$work/app/plain"

mkdir "$work/parent"
cat >"$work/parent/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(parent C)
enable_testing()
add_subdirectory($root gexec)
file(GENERATE OUTPUT type.txt CONTENT "\$CACHE{CMAKE_BUILD_TYPE}")
END
"$cmake" -S "$work/parent" -B "$work/parent/build" -DCMAKE_C_COMPILER="$cc" \
    -DGEXEC_CUDA=OFF >/dev/null
[ ! -s "$work/parent/build/type.txt" ] || fail "a project's build type is another"
[ "$(cd "$work/parent/build" && ctest -N | sed -n 's/^Total Tests: //p')" = 0 ] ||
    fail "a project has gexec's tests"
"$cmake" --install "$work/parent/build" --prefix "$work/none" >/dev/null
[ -z "$(find "$work/none" -type f 2>/dev/null)" ] || fail "a project installs gexec"
