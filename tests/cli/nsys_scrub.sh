# tools/nsys-scrub: an export that is made up, with an environment that is not to be kept;
# and the exports that are kept here.
. ./lib.sh

tool=$root/tools/nsys-scrub
python3 -c 'import sqlite3, gzip' 2>/dev/null || {
    echo "skipped: there is no python3 with sqlite3"
    exit 77
}

# scrub STATUS ARGUMENTS...
scrub()
{
    local wanted=$1 status=0
    shift
    last="nsys-scrub $*"
    "$tool" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
    if [ $status != "$wanted" ]; then
        fail "$last: exit status $status, expected $wanted"
        head -n 20 "$work/out" "$work/err" >&2
    fi
}

# sql FILE TEXT: the rows, or nothing for a change.
sql()
{
    python3 - "$1" "$2" <<'EOF'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
rows = db.executescript(sys.argv[2]) if ";" in sys.argv[2] else db.execute(sys.argv[2])
for row in rows:
    print("|".join("" if v is None else str(v) for v in row))
db.commit()
EOF
}

lacks()
{
    ! grep -aqF -- "$2" "$1" || fail "$last: $1 still holds '$2'"
}

# Process 1 << 24 has events, process 2 << 24 has none.
make()
{
    rm -f "$1"
    sql "$1" "
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, -- ID reference value.
 value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'void kernel<float>()'), (2, 'cudaLaunchKernel_v7000'),
 (3, 'HF_TOKEN=hf_fakefakefakefake'), (4, '/home/somebody/run.log'), (5, 'what it printed'),
 (6, 'a thread of ours'), (7, 'a thread of theirs'), (8, 'a range');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, globalPid INTEGER,
 demangledName INTEGER NOT NULL -- REFERENCES StringIds(id) -- Kernel
);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 16777216, 1), (30, 40, 16777216, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 16777221, 2);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
INSERT INTO NVTX_EVENTS VALUES (1, 50, 'step 0', NULL, 16777221), (2, 3, NULL, 8, 16777221);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, globalTid INTEGER);
INSERT INTO ThreadNames VALUES (6, 16777221), (7, 33554437);
CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER);
INSERT INTO ProcessStreams VALUES (16777216, 4, 5);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
INSERT INTO PROCESSES VALUES (16777216, 1, '/home/somebody/bin/gexec'), (33554432, 2, 'mail');
CREATE TABLE ANALYSIS_FILE (id INTEGER PRIMARY KEY, filename TEXT, contentId INTEGER);
INSERT INTO ANALYSIS_FILE VALUES (0, '/home/somebody/run.log', 5);
CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);
INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:COMMAND', '/home/somebody/bin/gexec'),
 ('PROCESS_0:ARGUMENT_1', '--password=otherfakeone'), ('PROCESS_0:WORKING_DIR', '/home/somebody'),
 ('PROCESS_0:USER_NAME', 'somebody'), ('PROCESS_0:ENVIRONMENT_VARIABLE', 'API_KEY=\"sk-fakefakefakefake\"'),
 ('DEVICE_DISPLAY_NAME', 'somebodys-host'), ('PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Node');
CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_HOST', 'somebodys-host'), ('EXPORT_USER', 'somebody'),
 ('EXPORT_PARAM_INPUT_PATH_ABS', '/home/somebody/a.nsys-rep'), ('EXPORT_SCHEMA_VERSION', '3.20.3');
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, name TEXT, value TEXT);
INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'DeviceEnvironment', 'A=b;HF_TOKEN=hf_fakefakefakefake'),
 (1, 'Hostname', 'somebodys-host'), (1, 'CpuCores', '16');
CREATE INDEX one ON NVTX_EVENTS (start);"
}

export=$work/made.sqlite
make "$export"
sql "$export" "SELECT name, sql FROM sqlite_master ORDER BY name" >"$work/schema"
cp "$export" "$work/before"

# --check changes nothing.
scrub 1 --check "$export"
out 'made\.sqlite: holds 1 of ANALYSIS_FILE, 6 of META_DATA_CAPTURE, 3 of META_DATA_EXPORT, 1 of PROCESSES, 1 of PROCESSES \(without events\), 4 of StringIds \(no event refers to them\), 2 of TARGET_INFO_SYSTEM_ENV$'
same "$export" "$work/before"

scrub 0 "$export"
out 'made\.sqlite: blanked 1 of ANALYSIS_FILE, 6 of '
err_is_empty
for secret in fake somebody run.log 'what it printed' theirs mail; do
    lacks "$export" "$secret"
done
[ "$(sql "$export" "SELECT name, sql FROM sqlite_master ORDER BY name")" = "$(cat "$work/schema")" ] ||
    fail "$last: tables are declared otherwise"
for table in CUPTI_ACTIVITY_KIND_KERNEL CUPTI_ACTIVITY_KIND_RUNTIME NVTX_EVENTS ThreadNames ProcessStreams; do
    [ "$(sql "$export" "SELECT * FROM $table")" = "$(sql "$work/before" "SELECT * FROM $table")" ] ||
        fail "$last: $table has changed"
done
[ "$(sql "$export" "SELECT group_concat(value, '/') FROM StringIds")" = \
    'void kernel<float>()/cudaLaunchKernel_v7000////a thread of ours//a range' ] ||
    fail "$last: names of events have changed"
[ "$(sql "$export" "SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%MODE'")" = Node ] ||
    fail "$last: how graphs were traced is lost"
scrub 0 --check "$export"
out 'nothing of the machine or its user in it'
cp "$export" "$work/once"
scrub 0 "$export"
same "$export" "$work/once"

# Gzipped.
make "$export"
gzip "$export"
scrub 1 --check "$export.gz"
scrub 0 "$export.gz"
scrub 0 --check "$export.gz"
gunzip -c "$export.gz" >"$work/unpacked"
lacks "$work/unpacked" fake

# What cannot be taken out of events is not left in silence.
make "$export"
sql "$export" "UPDATE NVTX_EVENTS SET text = 'load with sk-fakefakefakefake' WHERE text IS NOT NULL;"
cp "$export" "$work/before"
scrub 4 "$export"
err '1 values of variables that are named like secrets are still in the file'
same "$export" "$work/before"
make "$export"
sql "$export" "UPDATE StringIds SET value = '/home/somebody/kernel.cu' WHERE id = 1;"
scrub 0 "$export"
out 'remark: the name of an event holds a home folder and stays: /home/somebody/kernel\.cu'

# Files that are none.
printf 'words' >"$work/words.sqlite"
: >"$work/empty.sqlite"
scrub 2 "$work/words.sqlite"
err 'this is no SQLite file'
scrub 2 "$work/empty.sqlite"
err 'no export of Nsight Systems'
scrub 2 "$work/none.sqlite"
err 'No such file'
scrub 2
if [ "$(id -u)" != 0 ]; then
    make "$export"
    mkdir "$work/closed" && cp "$export" "$work/closed/" && chmod 500 "$work/closed"
    scrub 4 "$work/closed/made.sqlite"
    chmod 700 "$work/closed"
fi

# What is kept here.
scrub 0 --check "$root"/tests/data/traces/*.sqlite.gz "$root"/tests/data/nsys/*.sqlite.gz
finish
