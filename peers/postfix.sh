#!/usr/bin/env bash
# A private postfix for tests, with a configuration, a queue and ports of its own; the system's is not touched. Needs root.
#
#   postfix.sh LISTEN NEXT HOME
#
# It listens on 127.0.0.1:LISTEN, relays every mail to 127.0.0.1:NEXT, and what comes back (bounces.example.org) and what is written to
# example.org by LMTP to 127.0.0.1:HOME. Its log goes to standard output. It ends when its standard input closes, so that it never
# outlives the test.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "postfix.sh: needs root" >&2 && exit 77; }
PATH=$PATH:/usr/sbin
dir=$(mktemp -d /tmp/nuncio-postfix.XXXXXX)
chmod 755 "$dir"
mkdir "$dir/etc" "$dir/queue" "$dir/data"
chown postfix "$dir/data"
cleanup() {
    postfix -c "$dir/etc" stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap cleanup EXIT
cat >"$dir/etc/main.cf" <<MAIN
compatibility_level = 3.6
queue_directory = $dir/queue
data_directory = $dir/data
daemon_directory = $(postconf -dh daemon_directory)
maillog_file = /dev/stdout
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = relay.test
mydestination =
mynetworks = 127.0.0.0/8
smtpd_relay_restrictions = permit_mynetworks, reject
disable_dns_lookups = yes
transport_maps = inline:{ {bounces.example.org=lmtp:inet:127.0.0.1:$3} {example.org=lmtp:inet:127.0.0.1:$3} }
default_transport = smtp:[127.0.0.1]:$2
alias_maps =
MAIN
cat >"$dir/etc/master.cf" <<MASTER
127.0.0.1:$1 inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
lmtp unix - - n - - lmtp
smtp unix - - n - - smtp
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
flush unix n - n 1000? 0 flush
showq unix n - n - - showq
postlog unix-dgram n - n - 1 postlogd
MASTER
postfix -c "$dir/etc" start-fg </dev/null &
cat >/dev/null # until it is no longer needed
