#!/usr/bin/env bash
# tools/slurm.sh PARTITION JOB_NAME SCRIPT ARGUMENTS...: srun with the environment that the slurm_*.sh scripts document.
set -euo pipefail
partition=$1 job=$2
shift 2
python=${PYTHON:-$(cd "$(dirname "$0")/.." && pwd)/.venv/bin/python}
[ -x "$python" ] || python=python
gpus=${GPUS:-8}
per_node=${GPUS_PER_NODE:-$((gpus < 8 ? gpus : 8))}
[ -n "${PORT:-}" ] && export MASTER_PORT=$PORT
# One task per GPU; a task that fails ends all of them. SRUN_ARGS is split into words on purpose.
# shellcheck disable=SC2086
exec srun -p "$partition" --job-name="$job" --gres="gpu:$per_node" --ntasks="$gpus" --ntasks-per-node="$per_node" \
    --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 ${SRUN_ARGS:-} \
    "$python" -u "$@" --launcher slurm
