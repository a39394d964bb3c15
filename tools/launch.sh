#!/usr/bin/env bash
# tools/launch.sh PROCESSES SCRIPT ARGUMENTS...: torchrun with the environment that the dist_*.sh scripts document.
set -euo pipefail
processes=$1
shift
python=${PYTHON:-$(cd "$(dirname "$0")/.." && pwd)/.venv/bin/python}
[ -x "$python" ] || python=python
if [ -n "${NNODES:-}" ] && [ "$NNODES" -gt 1 ]; then
    : "${MASTER_ADDR:?with NNODES > 1 set MASTER_ADDR to the address of node 0}"
    rendezvous=(--nnodes "$NNODES" --node-rank "${NODE_RANK:?with NNODES > 1 set NODE_RANK to 0..NNODES-1}"
        --master-addr "$MASTER_ADDR" --master-port "${PORT:-29500}")
elif [ -n "${PORT:-}" ]; then
    rendezvous=(--nnodes 1 --master-addr 127.0.0.1 --master-port "$PORT")
else
    rendezvous=(--standalone)  # torchrun picks a free port, so that a second job on the machine starts too
fi
exec "$python" -m torch.distributed.run "${rendezvous[@]}" --nproc-per-node "$processes" "$@"
