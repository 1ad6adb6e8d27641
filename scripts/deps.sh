#!/usr/bin/env bash
# Installs what the tests need and the machine lacks: PostgreSQL's server
# programs, postfix (for its smtp-sink), Kannel with its test programs, SIPp,
# espeak-ng, sqlite3, curl, openssl, Python with venv and a C compiler from Debian, the peers' Python
# packages in .peers/venv, and, where there is node with npm, Chromium and the
# peers' npm packages in .peers/node. When all is there it installs nothing and needs no network. It
# starts no service, leaves none to start at boot, and removes no package.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin
venv=.peers/venv

die() {
    echo "deps.sh: $*" >&2
    exit 1
}

has_postgres() { scripts/postgres.sh bindir >/dev/null 2>&1; }
has_smtp_sink() { command -v smtp-sink >/dev/null; }
has_kannel() { command -v bearerbox >/dev/null && [ -x /usr/lib/kannel/test/fakesmsc ]; }
has_sipp() { command -v sipp >/dev/null; }
has_sqlite() { command -v sqlite3 >/dev/null; }
has_curl() { command -v curl >/dev/null; }
has_openssl() { command -v openssl >/dev/null; }
has_espeak() { command -v espeak-ng >/dev/null; }
has_node() { command -v node >/dev/null && command -v npm >/dev/null; }
# The pages' tests drive a browser with node.
has_chromium() { ! has_node || command -v chromium >/dev/null; }
has_compiler() {
    local out status=0
    out=$(mktemp)
    # The compiler's package alone lacks the headers, so compile something.
    printf '#include <stdio.h>\nint main(void) { return 0; }\n' |
        cc -x c - -o "$out" 2>/dev/null || status=1
    rm -f "$out"
    return $status
}

# The first Python that can make a venv and is new enough for the peers.
python() {
    local candidate
    for candidate in /usr/bin/python3 python3; do
        if "$candidate" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

missing_packages() {
    has_postgres || echo postgresql
    has_smtp_sink || echo postfix
    has_kannel || echo kannel kannel-extras
    has_sipp || echo sip-tester
    has_espeak || echo espeak-ng
    has_sqlite || echo sqlite3
    has_curl || echo curl
    has_openssl || echo openssl
    python >/dev/null || echo python3-venv
    has_chromium || echo chromium fonts-dejavu-core
    has_compiler || echo gcc libc6-dev
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Files that keep Debian's packages from starting a service now (policy-rc.d)
# and from creating a database server that starts at boot (createcluster.d).
# Those that were not there before are taken away again.
guards=()
guard() {
    local file=$1 mode=$2 content=$3
    if [ -e "$file" ]; then return; fi
    guards+=("$file")
    # shellcheck disable=SC2016 # the inner shell is the one that may write there
    as_root sh -c 'mkdir -p "${1%/*}" && printf %b "$3" >"$1" && chmod "$2" "$1"' \
        guard "$file" "$mode" "$content"
}
remove_guards() {
    if [ ${#guards[@]} -gt 0 ]; then as_root rm -f "${guards[@]}"; fi
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get --quiet --yes -o DPkg::Lock::Timeout=300 "$@"
}

install_packages() {
    command -v apt-get >/dev/null || die "missing: $*. This is not a Debian system; install them by hand."
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null ||
        die "missing: $*. Run this as root, or install sudo, or: apt-get install $*"
    echo "deps.sh: installing $*"
    trap remove_guards EXIT
    trap 'exit 130' INT TERM
    guard /usr/sbin/policy-rc.d 755 '#!/bin/sh\nexit 101\n'
    apt update || echo "deps.sh: apt-get update failed; trying with the lists at hand" >&2
    if ! has_postgres; then
        guard /etc/postgresql-common/createcluster.d/nuncio-test.conf 644 \
            'create_main_cluster = false\n'
    fi
    local new_kannel=
    has_kannel || new_kannel=yes
    if ! has_smtp_sink; then
        echo 'postfix postfix/main_mailer_type select No configuration' | as_root debconf-set-selections
    fi
    # --no-remove: postfix must not push another mail server off the machine.
    apt install --no-install-recommends --no-remove "$@" ||
        die "apt-get could not install: $*"
    if [ "$new_kannel" ]; then as_root update-rc.d kannel disable; fi
}

install_peers() {
    local stamp python
    python=$(python)
    stamp=$({ "$python" --version; pwd; cat peers/requirements.txt; } | sha256sum)
    if [ "$(cat "$venv/stamp" 2>/dev/null)" = "$stamp" ] && "$venv/bin/python" -c '' 2>/dev/null; then
        return
    fi
    echo "deps.sh: installing the peers' Python packages in $venv"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
    # First the pinned builder, so that no other version of it is fetched.
    "${pip[@]}" "$(grep '^setuptools==' peers/requirements.txt)"
    "${pip[@]}" --use-pep517 --no-build-isolation --no-deps -r peers/requirements.txt
    "$venv/bin/python" -m pip --disable-pip-version-check check >/dev/null ||
        die "peers/requirements.txt is not complete: $("$venv/bin/python" -m pip check)"
    echo "$stamp" >"$venv/stamp"
}

# Tests against peers on node are left out where there is no node.
install_node_peers() {
    local node=.peers/node stamp
    if ! has_node; then
        echo "deps.sh: no node or npm here; the peers that need them are left out"
        return
    fi
    stamp=$(sha256sum <peers/node/package-lock.json)
    if [ "$(cat "$node/stamp" 2>/dev/null)" = "$stamp" ]; then return; fi
    echo "deps.sh: installing the peers' npm packages in $node"
    mkdir -p "$node"
    cp peers/node/package.json peers/node/package-lock.json "$node"
    npm ci --prefix "$node" --ignore-scripts --no-audit --no-fund --loglevel=error
    echo "$stamp" >"$node/stamp"
}

mapfile -t missing < <(missing_packages | tr ' ' '\n')
if [ ${#missing[@]} -gt 0 ]; then
    install_packages "${missing[@]}"
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -eq 0 ] || die "still missing after the installation: ${missing[*]}"
fi
install_peers
install_node_peers
