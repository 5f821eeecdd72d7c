#!/usr/bin/env bash
# Runs per-source-eval of this checkout with the arguments given and exits as it does. What it says goes to the log, to the
# job's summary and, its last line, to the step's output `answer`.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
said="$(mktemp)"
trap 'rm -f "$said"' EXIT
# A line of the answer that begins with two colons must not be taken for a command to the runner.
token="$(python -I -c 'import secrets; print(secrets.token_hex(16))')"
echo "::stop-commands::$token"
code=0
PYTHONIOENCODING=ascii python "$root/bin/per-source-eval.py" "$@" >"$said" || code=$?
cat "$said"
echo "::$token::"
{
  echo "### per-source-eval"
  echo
  sed 's/^/    /' "$said"
} >>"$GITHUB_STEP_SUMMARY"
{
  echo "exit-code=$code"
  printf 'answer=%s\n' "$(tail -n 1 "$said")"
} >>"$GITHUB_OUTPUT"
exit "$code"
