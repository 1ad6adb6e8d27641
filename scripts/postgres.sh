#!/usr/bin/env bash
# A private, throw-away PostgreSQL for the tests. It never touches a PostgreSQL
# that the machine already runs.
#
#   scripts/postgres.sh start        start one and print its URL (prints the URL again if it runs)
#   scripts/postgres.sh url          print the URL of the running one
#   scripts/postgres.sh connections  print how many client connections it has seen
#   scripts/postgres.sh stop         stop it and delete all its data
#   scripts/postgres.sh bindir       print where the server's programs are; fails if there are none
#
# NUNCIO_PG_STATE  file that remembers the running server (default .peers/postgres)
# NUNCIO_PG_OWNER  process id; when that process is gone the server is stopped,
#                  however the process ended
set -euo pipefail
self=$(readlink -f "$0")
state=$(readlink -m "${NUNCIO_PG_STATE:-$(dirname "$self")/../.peers/postgres}")
export NUNCIO_PG_STATE=$state

die() {
    echo "postgres.sh: $*" >&2
    exit 1
}

bindir() {
    local dir found
    # Debian keeps these programs out of PATH, one directory per major version.
    found=$(for dir in /usr/lib/postgresql/*/bin; do
        if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then echo "$dir"; fi
    done | sort -V | tail -n 1)
    if [ -z "$found" ] && command -v initdb pg_ctl postgres >/dev/null; then
        found=$(dirname "$(command -v initdb)")
    fi
    [ -n "$found" ] || die "PostgreSQL's server programs are not installed"
    echo "$found"
}

# The user to run the server as: PostgreSQL refuses to run as root.
server_user() {
    if [ "$(id -u)" != 0 ]; then
        id -un
    elif id postgres >/dev/null 2>&1; then
        echo postgres
    else
        echo nobody
    fi
}

# as USER COMMAND...: run the command as that user, with a bare environment so
# that no PG* variable of the caller leaks in.
as() {
    local user=$1
    shift
    local drop=()
    if [ "$(id -u)" = 0 ]; then
        drop=(setpriv --reuid="$user" --regid="$(id -g "$user")" --init-groups)
    fi
    "${drop[@]}" env -i PATH=/usr/bin:/bin LC_ALL=C "$@"
}

url() {
    [ -s "$state" ] || die "not running"
    echo "postgres://nuncio@127.0.0.1:$(sed -n 2p "$state")/postgres"
}

create() {
    local bin=$1 user=$2 dir=$3
    local locale=(--locale=C.UTF-8)
    # A linguistic collation, as production databases mostly have: a query that
    # relies on bytewise order must say so, and fails here if it does not.
    if "$bin/initdb" --help | grep -q -e --icu-locale; then
        locale+=(--locale-provider=icu --icu-locale=en-US)
    fi
    as "$user" "$bin/initdb" --pgdata="$dir/data" --username=nuncio --auth=trust \
        --encoding=UTF8 --no-sync "${locale[@]}" >"$dir/initdb.log" 2>&1 ||
        { cat "$dir/initdb.log" >&2; return 1; }
    # For clients that ask for encryption. The certificate is its own root.
    as "$user" openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \
        -keyout "$dir/data/server.key" -out "$dir/data/server.crt" 2>"$dir/openssl.log" ||
        { cat "$dir/openssl.log" >&2; return 1; }
    cat >>"$dir/data/postgresql.conf" <<CONF
ssl = on
listen_addresses = '127.0.0.1'
unix_socket_directories = '$dir'
max_connections = 200
shared_buffers = 256MB
fsync = on
log_connections = on
# The contract suite has the statements of its stores recorded, and looks at them.
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.max = 50000
pg_stat_statements.track = none
pg_stat_statements.track_utility = off
pg_stat_statements.save = off
CONF
}

launch() {
    local bin=$1 user=$2 dir=$3 port
    # Below the range from which the kernel hands out ports to clients.
    for _ in 1 2 3 4 5; do
        port=$((20000 + RANDOM % 12000))
        if as "$user" "$bin/pg_ctl" start --silent --wait --timeout=60 --pgdata="$dir/data" \
            --log="$dir/log" --options="-p $port" >/dev/null 2>&1; then
            printf '%s\n%s\n' "$dir" "$port" >"$state"
            return
        fi
        grep -q "Address already in use" "$dir/log" || break
    done
    tail -n 20 "$dir/log" >&2
    return 1
}

watch_owner() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    setsid bash -c 'tail --pid="$0" -f /dev/null; exec "$1" stop' \
        "$1" "$self" </dev/null >/dev/null 2>&1 &
}

start() {
    if [ -s "$state" ] && alive; then
        url
        return
    fi
    stop # what a killed run left behind
    local bin user dir
    bin=$(bindir)
    user=$(server_user)
    dir=$(mktemp -d "${TMPDIR:-/tmp}/nuncio-pg.XXXXXX")
    mkdir -p "$(dirname "$state")"
    if [ "$(id -u)" = 0 ]; then chown "$user:" "$dir"; fi
    cd "$dir" # the caller's directory may be closed to the server's user
    if ! { create "$bin" "$user" "$dir" && launch "$bin" "$user" "$dir"; }; then
        rm -rf "$dir"
        die "could not start PostgreSQL as user '$user' in $dir (is ${TMPDIR:-/tmp} open to that user?)"
    fi
    if [ -n "${NUNCIO_PG_OWNER:-}" ]; then watch_owner "$NUNCIO_PG_OWNER"; fi
    url
}

# Whether the recorded process still is our server, and not one that got its number later.
alive() {
    local dir pid
    dir=$(sed -n 1p "$state")
    pid=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null) &&
        tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$dir/data"
}

stop() {
    [ -s "$state" ] || return 0
    local dir
    dir=$(sed -n 1p "$state")
    case $dir in */nuncio-pg.*) ;; *) die "$state does not name a test server: '$dir'" ;; esac
    if alive; then
        # The data is thrown away, so no last checkpoint.
        (cd / && as "$(stat -c %U "$dir/data")" "$(bindir)/pg_ctl" stop --silent --wait \
            --mode=immediate --pgdata="$dir/data")
    fi
    rm -rf "$dir" "$state"
}

connections() {
    [ -s "$state" ] || die "not running"
    grep -c 'connection authorized: user=nuncio' "$(sed -n 1p "$state")/log" || true
}

case ${1:-} in
start | stop | url | connections | bindir) "$1" ;;
*) die "usage: scripts/postgres.sh start|stop|url|connections|bindir" ;;
esac
