#!/usr/bin/env bash
# tools/slurm_train.sh PARTITION JOB_NAME CONFIG WORK_DIR [flags of tools/train.py]
# From the environment: GPUS (8), GPUS_PER_NODE (8, or GPUS if that is less), CPUS_PER_TASK (5), SRUN_ARGS, PORT.
set -euo pipefail
[ $# -ge 4 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
partition=$1 job=$2 config=$3 work_dir=$4
shift 4
exec "$(dirname "$0")/slurm.sh" "$partition" "$job" "$(dirname "$0")/train.py" "$config" --work-dir "$work_dir" "$@"
