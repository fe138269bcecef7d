#!/usr/bin/env bash
# The data set and the built-in model, from motion clips to a trained model with its card and table:
#   model/train/recipe.sh DSNET CLIPS FOLDER [VARIANTS]
# DSNET is the tool, CLIPS a folder of AMASS-layout npz files, FOLDER where everything goes, VARIANTS
# how many excited versions are made of each training motion (default 12). Every step can be
# interrupted and started again: what is complete is left out.
# It needs 32 GB of disk and, on two cores, half an hour of simulation, ten minutes of training
# and some minutes of comparison.
set -euo pipefail
dsnet=$1 clips=$2 work=$3 variants=${4:-12}
here=$(cd "$(dirname "$0")" && pwd)
seed=1 shapes=90 held_shapes=6
held='^(01_03|01_12|02_03|02_06|02_09|03_04)' # the real clips of splits.txt

mkdir -p "$work"/{train,held,excited,data}
link() { ln -sf "$(realpath "$1")" "$2/$(basename "${1%_poses.npz}" .npz).npz"; }
for clip in "$clips"/*.npz; do
  if [[ $(basename "$clip") =~ $held ]]; then link "$clip" "$work/held"; else link "$clip" "$work/train"; fi
done
for kind in hop run twist jacks punch shimmy walk stand; do
  folder=train
  [ $kind = jacks ] && folder=held
  for rate in 0.7 0.9 1.1 1.4; do
    amplitude=$(awk "BEGIN { print 2.0 - $rate }") # slow and large, fast and small
    "$dsnet" motion --kind $kind --rate $rate --amplitude "$amplitude" --seconds 8 \
      -o "$work/$folder/$kind-r${rate/./}.npz" 2>/dev/null
  done
done
for clip in "$work"/train/*.npz; do
  [[ $clip == *stand* ]] || "$dsnet" excite "$clip" -o "$work/excited" --variants "$variants" \
    --seed $seed --longest 15
done

simulate() { "$dsnet" simulate "$@" -o "$work/data" --seed $seed --deglitch --smooth 8 --resume; }
# What is excited has been cleaned already.
"$dsnet" simulate "$work/excited" -o "$work/data" --seed $seed --resume --subjects $shapes --pairing cycle
simulate "$work/train" --subjects $shapes --pairing cycle
simulate "$work/held" --subjects 2 --first 3
simulate "$work/train" --subjects $held_shapes --first $shapes --pairing cycle
simulate "$work/held" --subjects $held_shapes --first $shapes --pairing cycle

train() { "$dsnet" train "$work/data" --splits "$here/splits.txt" --resume --f16 --seed $seed \
  --hidden 128 --latent 40 --floor 2 --jitter 0.004 "$@"; }
train -o "$work/springs.safetensors" --features springs --skip --epochs 26 --report "$work/report.html"
train -o "$work/paper.safetensors" --features paper --epochs 14
"$dsnet" eval "$work/data" --splits "$here/splits.txt" -m "$work/springs.safetensors" \
  -m "$work/paper.safetensors" --baselines --markdown --card "$work/model.safetensors" >"$work/table.md"
cat "$work/table.md"
