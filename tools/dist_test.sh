#!/usr/bin/env bash
# tools/dist_test.sh CONFIG CHECKPOINT GPUS [flags of tools/test.py]
# One machine: a free port is chosen unless PORT is set. Several: set NNODES, NODE_RANK, MASTER_ADDR and PORT on each.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
config=$1 checkpoint=$2 gpus=$3
shift 3
exec "$(dirname "$0")/launch.sh" "$gpus" "$(dirname "$0")/test.py" "$config" "$checkpoint" --launcher pytorch "$@"
