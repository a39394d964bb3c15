#!/usr/bin/env bash
# tools/slurm_test.sh PARTITION JOB_NAME CONFIG CHECKPOINT [flags of tools/test.py]
# From the environment: GPUS (8), GPUS_PER_NODE (8, or GPUS if that is less), CPUS_PER_TASK (5), SRUN_ARGS, PORT.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
partition=$1 job=$2 config=$3 checkpoint=$4
shift 4
exec "$(dirname "$0")/slurm.sh" "$partition" "$job" "$(dirname "$0")/test.py" "$config" "$checkpoint" "$@"
