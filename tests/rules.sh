#!/usr/bin/env bash
# Rules of the source tree that no compiler checks.
# usage: rules.sh ROOT [LIBRARY]   LIBRARY: the archive libgexec.a, for its symbols
set -euo pipefail
export LC_ALL=C

library=${2:+$(realpath "$2")}
cd "$1"
broken=0
rules=0

complain()
{
    echo "$*" >&2
    broken=$((broken + 1))
}

list_sources()
{
    find include graphs ops executor tools \( -name '*.c' -o -name '*.h' -o -name '*.cu' \) \
        -print | sort
}

# Prints FILE:LINE:CODE of every source file without comments and without what stands
# inside string literals.
code=$(list_sources | tr '\n' '\0' | xargs -0 awk '
    FNR == 1 { inside = 0 }
    {
        line = $0
        out = ""
        while (line != "") {
            if (inside) {
                end = index(line, "*/")
                if (!end) { line = ""; break }
                line = substr(line, end + 2)
                inside = 0
            } else if (match(line, /"([^"\\]|\\.)*"|\/\*|\/\/|\047(\\.|[^\047\\])+\047/)) {
                token = substr(line, RSTART, RLENGTH)
                out = out substr(line, 1, RSTART - 1)
                rest = substr(line, RSTART + RLENGTH)
                if (token == "/*") { inside = 1 }
                else if (token == "//") { rest = "" }
                else if (out ~ /^[ \t]*#[ \t]*include/) { out = out token }
                else { out = out substr(token, 1, 1) substr(token, 1, 1) }
                line = rest
            } else {
                out = out line
                line = ""
            }
        }
        if (out ~ /[^ \t]/) print FILENAME ":" FNR ":" out
    }')

# only WHERE PATTERN TEXT: code that matches PATTERN stands in files that match WHERE.
only()
{
    local hit
    rules=$((rules + 1))
    while IFS= read -r hit; do
        [[ -z $hit || ${hit%%:*} =~ ^($1)$ ]] || complain "${hit%%:*}:$(cut -d: -f2 <<<"$hit"): $3"
    done < <(grep -E ":[0-9]+:.*($2)" <<<"$code" || true)
}

word='(^|[^A-Za-z0-9_])'
only 'executor/capture[^/]*\.c' "${word}cudaStream(BeginCapture|EndCapture)[A-Za-z_]* *\(" \
    "captures begin and end in executor/capture*.c alone"
only 'executor/capture[^/]*\.c' "${word}cudaGraphLaunch *\(" \
    "graphs are launched by executor/capture*.c alone"
only 'executor/device[^/]*\.c' \
    "${word}(cudaMalloc(Async|Managed|Pitch|3D|Array|FromPoolAsync)?|cuMem(Alloc|Create)[A-Za-z_]*) *\(" \
    "device memory is allocated by executor/device*.c alone"
only 'graphs/yaml\.c' '# *include *<yaml\.h>' "libyaml is used by graphs/yaml.c alone"
only 'tools/nsys_db\.c' '# *include *<sqlite3\.h>' "SQLite is used by tools/nsys_db.c alone"
only 'tools/kineto_read\.c' '# *include *<(yajl/[a-z_]*|zlib)\.h>' \
    "YAJL and zlib are used by tools/kineto_read.c alone"
only 'executor/profile[^/]*\.[ch]' "${word}cupti[A-Z][A-Za-z]* *\(" \
    "CUPTI is called by executor/profile*.c alone"
only 'ops/launch[^/]*\.c' "${word}cudaLaunch[A-Za-z]*Kernel[A-Za-z]* *\(|<<<" \
    "kernels are launched through gx_launch alone"
only 'tools/.*' "${word}(printf|puts|putchar|perror|exit|_exit|abort|stdout|stderr)($|[^A-Za-z0-9_])" \
    "the library does not print, exit or abort"

# A file is named without its folder in an #include, so its name stands for itself.
rules=$((rules + 1))
while IFS= read -r name; do
    complain "more than one file is named $name"
done < <(find include graphs ops executor tools tests \
    \( -name '*.c' -o -name '*.h' -o -name '*.cu' \) -print | sed 's:.*/::' | sort | uniq -d)

# Symbols of ours start with gx_. Names with two underscores are the compiler's, and those
# with _Z are C++'s.
if [ -n "$library" ]; then
    rules=$((rules + 1))
    symbols=$("${NM:-nm}" -g --defined-only "$library" | awk 'NF == 3 { print $3 }')
    [ -n "$symbols" ] || complain "$library defines no symbols"
    while IFS= read -r name; do
        case $name in
        '' | gx_* | __* | _Z*) ;;
        nvtx*_v3 | InitializeInjectionNvtx2_fnptr) ;; # NVTX's own, from its headers
        *) complain "symbol '$name' of the library does not start with gx_" ;;
        esac
    done <<<"$symbols"
fi

# What the README tells a user to run is what is run before a change is taken.
if [ -e README.md ]; then
    rules=$((rules + 1))
    commands=$(awk '/^```/ { inside = !inside; next } inside && /^tools\// { sub(/ *#.*/, ""); print }' README.md)
    [ -n "$commands" ] || complain "README.md: no set-up command in it"
    while IFS= read -r command; do
        grep -qxF -- "$command" .ci/run || [[ -z $command || $command == *--* ]] ||
            complain "README.md: '$command' is not a line of .ci/run"
    done <<<"$commands"
fi

echo "rules: $(list_sources | wc -l) files, $rules rules, $broken broken"
[ $broken = 0 ]
