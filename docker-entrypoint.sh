#!/bin/sh
# SPANLAB_…_FILE and …_API_KEY_FILE name files: SPANLAB_… and …_API_KEY become what stands in them,
# if anything does.
set -eu
for given in $(env | grep -E '^(SPANLAB_[A-Z_]+|[A-Z_]+_API_KEY)_FILE=' || true); do
  name=${given%%=*}
  value=$(cat "${given#*=}")
  [ -z "$value" ] || export "${name%_FILE}=$value"
done
exec "$@"
