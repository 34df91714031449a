#!/usr/bin/env bash
# Several programs side by side on one NVIDIA GPU, by its multi-process service: small models do not fill one alone.
#
#   benchmarks/experiments/beside.sh FOLDER [SECONDS]
#
# Every FOLDER/*.sh is begun once, in the background and from the present folder, and goes on when this returns, after
# SECONDS (600) or when all are done. Called again it waits on, begins nothing twice, and says how far each is; its
# output is in FOLDER/logs. To stop one, tell the service first, for a client that is killed takes all others with it:
#   echo "terminate_client SERVER PID" | nvidia-cuda-mps-control      (SERVER from: echo get_server_list | ...)
# To let others go first, kill -STOP one and later -CONT: it goes on where it was, and nobody else notices.
set -u
folder=${1:?give a folder of scripts} seconds=${2:-600} logs=$1/logs
export CUDA_MPS_PIPE_DIRECTORY=${CUDA_MPS_PIPE_DIRECTORY:-/tmp/mps} CUDA_MPS_LOG_DIRECTORY=${CUDA_MPS_LOG_DIRECTORY:-/tmp/mps-log}
export PYTHONUNBUFFERED=1
ls "$folder"/*.sh >/dev/null || exit 2
mkdir -p "$logs" "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
pgrep -f "nvidia-cuda-mps-control -d" >/dev/null || nvidia-cuda-mps-control -d || exit 1

for script in "$folder"/*.sh; do
  log=$logs/$(basename "$script" .sh)
  [ -e "$log.begun" ] && continue
  date +%s >"$log.begun"
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
  echo "== $(basename "$script"): $((ended - $(cat "$log.begun"))) s, status $(cat "$log.status" 2>/dev/null || echo running)"
  tr '\r' '\n' <"$log.txt" | tail -n 3 | cut -c 1-300
done
echo "$left running"
