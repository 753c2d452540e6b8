#!/bin/sh
# audit.sh PIP-AUDIT [OPTION…]: fails where what is locked has a known vulnerability. Where no
# service can be asked, as without a network, it says so and passes.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if found=$("$@" --vulnerability-service osv --timeout 5 --progress-spinner off --disable-pip \
  --requirement "$(dirname "$0")/requirements.lock" 2>"$log"); then
  echo "what is locked has no known vulnerability"
elif [ -z "$found" ] && grep -qE 'ConnectionError|Timeout|ServiceError' "$log"; then
  echo "not run: known vulnerabilities of what is locked (no service of them can be reached)"
else
  cat "$log"
  echo "$found"
  exit 1
fi
