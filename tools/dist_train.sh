#!/usr/bin/env bash
# tools/dist_train.sh CONFIG GPUS [flags of tools/train.py]
# One machine: a free port is chosen unless PORT is set. Several: set NNODES, NODE_RANK, MASTER_ADDR and PORT on each.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
config=$1 gpus=$2
shift 2
exec "$(dirname "$0")/launch.sh" "$gpus" "$(dirname "$0")/train.py" "$config" --launcher pytorch "$@"
