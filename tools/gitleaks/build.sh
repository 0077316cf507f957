#!/usr/bin/env bash
# Builds gitleaks, once, and prints where it is; with --path it only prints.
exec "$(dirname "$0")/../cached.sh" gitleaks github.com/zricethezav/gitleaks/v8 "$@"
