# What tools/quickstart and tools/check have in common; they source this file.

# For the sanitizers: what the CUDA libraries keep is theirs.
export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0

cpu=no
dry_run=no
presets=()
setup_arguments=()

parse_arguments()
{
    local argument
    for argument in "$@"; do
        case $argument in
        --cpu)
            cpu=yes
            setup_arguments+=(--cpu)
            ;;
        --dry-run)
            dry_run=yes
            setup_arguments+=(--dry-run)
            ;;
        -h | --help)
            usage
            exit 0
            ;;
        -*)
            echo "$0: unknown argument '$argument'" >&2
            usage >&2
            exit 2
            ;;
        *) presets+=("$argument") ;;
        esac
    done
}

# Shows a command and, unless this is a dry run, runs it.
step()
{
    echo "+ $*"
    [ $dry_run = yes ] || "$@"
}

# The compiler that a build folder was configured with; nothing where there is none.
configured_compiler()
{
    sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "build/$1/CMakeCache.txt" 2>/dev/null || true
}

# Says what was asked for each time: a build folder may remember something else.
configure()
{
    local options=() before
    if [ $cpu = yes ]; then
        options+=(-DGEXEC_CUDA=OFF)
    elif [ "$1" != cpu ] && [ "$1" != fuzz ]; then
        options+=(-DGEXEC_CUDA=AUTO)
    fi
    before=$(configured_compiler "$1")
    if [ "$1" != fuzz ] && [ -n "$before" ] &&
        [ "$(realpath "$before")" != "$(realpath "$(command -v "${CC:-cc}")")" ]; then
        options+=(--fresh)
    fi
    [ -z "${GEXEC_CUDA_ROOT:-}" ] || options+=("-DGEXEC_CUDA_ROOT=$GEXEC_CUDA_ROOT")
    [ "${CI:-}" != true ] || options+=(-DGEXEC_WERROR=ON)
    # Where there is a card, what is built has to run on it, and need not on others. A CI that
    # has none only has to see that it builds.
    if [ $cpu = no ] && nvidia-smi -L >/dev/null 2>&1; then
        options+=(-DCMAKE_CUDA_ARCHITECTURES=native)
    elif [ $cpu = no ] && [ "${CI:-}" = true ]; then
        options+=(-DCMAKE_CUDA_ARCHITECTURES=90-real)
    fi
    step cmake --preset "$1" "${options[@]}"
}
