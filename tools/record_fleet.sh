#!/bin/bash
# Measure recipes/summarize-fleet.yaml on one machine with a GPU: a server, an agent that offers the CPU, then one that
# offers the card, each with its own price; export what came out for `python -m tools.record_demo`.
#   tools/record_fleet.sh MODEL.gguf OUT-FOLDER
# Agents run one after the other, so that neither disturbs the other's numbers. Prices are US dollars an hour.
set -eu
model=$(realpath "$1") out=$2
cpu_price=${CPU_PRICE:-0.60} gpu_price=${GPU_PRICE:-3.80} unit=${GPU_UNIT:-cuda} port=${PORT:-7447}
prony=${PRONY:-prony}
mkdir -p "$out"
export PRONY_HOME=${PRONY_HOME:-$out/home} PRONY_SERVER=http://127.0.0.1:$port HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
$prony server --port "$port" > "$out/server.log" 2>&1 &
server=$!
trap 'kill -TERM $server' EXIT
until grep -q "serving at" "$out/server.log"; do
  kill -0 $server || { cat "$out/server.log"; exit 1; }
  sleep 1
done
$prony run recipes/summarize-fleet.yaml --detach --set "workload.model=$model" --set "workload.threads=${THREADS:-8}" \
  --set "workload.prompts.articles=${ARTICLES:-10}" --set "measure.repeats=${REPEATS:-5}"

jobs_left() { $prony jobs --json | python3 -c "
import json, sys
print(sum('unit=$1,' in one['title'] and one['state'] in ('waiting', 'leased') for one in json.load(sys.stdin)))"; }

offer() { # NAME UNIT PRICE VARIABLE=VALUE
  env "$4" $prony agent start --name "$1" --device-name "$1" --kinds llm --model-folders "$(dirname "$model")" \
    --label "cost_per_hour=$3" --drain-timeout 1s --log-level warning &
  local agent=$!
  until [ "$(jobs_left "$2")" = 0 ]; do
    kill -0 $agent || exit 1
    sleep 3
  done
  kill -TERM $agent
  wait $agent || true
}

offer cpu-node cpu "$cpu_price" CUDA_VISIBLE_DEVICES=
offer gpu-node "$unit" "$gpu_price" CUDA_DEVICE_ORDER=PCI_BUS_ID
$prony matrix last --rows unit --columns engine --metric rouge_1.mean
$prony matrix last --rows unit --columns engine
$prony export last --to "$out/summarize-fleet" --overwrite
