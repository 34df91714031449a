#!/usr/bin/env bash
# Run several programs in parallel on one NVIDIA GPU with its multi-process service (MPS), because small models do not
# use all of it.
#
#   benchmarks/experiments/parallel_mps.sh FOLDER [SECONDS]
#
# Starts each FOLDER/*.sh once, in the background and in the current folder. Returns after SECONDS (600), or when all
# are finished, and prints the state of each; the programs continue. Called again it starts only new scripts and waits
# for the others. Their output is in FOLDER/logs. Before you stop a program, tell the service, because a client that is
# killed ends all others:
#   echo "terminate_client SERVER PID" | nvidia-cuda-mps-control      (SERVER from: echo get_server_list | ...)
# kill -STOP pauses a program and kill -CONT continues it, without effect on the others.
set -u
folder=${1:?usage: parallel_mps.sh FOLDER [SECONDS]} seconds=${2:-600} logs=$1/logs
export CUDA_MPS_PIPE_DIRECTORY=${CUDA_MPS_PIPE_DIRECTORY:-/tmp/mps} CUDA_MPS_LOG_DIRECTORY=${CUDA_MPS_LOG_DIRECTORY:-/tmp/mps-log}
export PYTHONUNBUFFERED=1
ls "$folder"/*.sh >/dev/null || exit 2
mkdir -p "$logs" "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
pgrep -f "nvidia-cuda-mps-control -d" >/dev/null || nvidia-cuda-mps-control -d || exit 1

for script in "$folder"/*.sh; do
  log=$logs/$(basename "$script" .sh)
  [ -e "$log.started" ] && continue
  date +%s >"$log.started"
  setsid nohup bash -c "bash '$script' >'$log.txt' 2>&1; echo \$? >'$log.status'; date +%s >'$log.ended'" >/dev/null 2>&1 &
done

while [ $SECONDS -lt "$seconds" ]; do
  left=0
  for script in "$folder"/*.sh; do [ -e "$logs/$(basename "$script" .sh).ended" ] || left=$((left + 1)); done
  [ $left = 0 ] && break
  sleep 2
done

left=0
for script in "$folder"/*.sh; do
  log=$logs/$(basename "$script" .sh)
  [ -e "$log.ended" ] || left=$((left + 1))
  ended=$(cat "$log.ended" 2>/dev/null || date +%s)
  echo "== $(basename "$script"): $((ended - $(cat "$log.started"))) s, status $(cat "$log.status" 2>/dev/null || echo running)"
  tr '\r' '\n' <"$log.txt" | tail -n 3 | cut -c 1-300
done
echo "$left running"
