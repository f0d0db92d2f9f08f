#!/usr/bin/env bash
# Every CUDA and cuBLASLt function that the library calls is replaced in the fault tests.
# usage: wraps.sh LIBRARY WRAP.TXT
set -euo pipefail
export LC_ALL=C

called=$("${NM:-nm}" -u "$1" 2>/dev/null | awk '$2 ~ /^(cuda|cublas)[A-Z]/ { print $2 }' | sort -u)
[ -n "$called" ] || { echo "$1 calls no CUDA function" >&2; exit 1; }
missing=$(comm -23 <(echo "$called") <(grep -v '^#' "$2" | sort -u))
if [ -n "$missing" ]; then
    printf '%s lacks:\n%s\n' "$2" "$missing" >&2
    exit 1
fi
echo "wraps: $(wc -l <<<"$called") functions called, all replaced"
