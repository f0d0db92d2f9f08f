#!/usr/bin/env bash
# A program built without NVTX holds none of its symbols and strings.
# usage: no_nvtx.sh PROGRAM [ARCHIVE...]   ARCHIVE: libraries whose own texts are let pass
set -euo pipefail
export LC_ALL=C

program=$1
shift
# Names of the interface and of what it looks for; gexec's own texts may speak of NVTX.
interface='nvtx[A-Z]|NVTX_INJECTION|InjectionNvtx'
texts()
{
    { strings -d "$@"; nm "$@" 2>/dev/null | sed 's/.* //'; } | grep -E "$interface" | sort -u || true
}

left=$(comm -23 <(texts "$program") <([ $# = 0 ] || texts "$@"))
if [ -n "$left" ]; then
    printf '%s still holds:\n%s\n' "$program" "$left" >&2
    exit 1
fi
