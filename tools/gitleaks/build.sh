#!/usr/bin/env bash
# Builds gitleaks, once, and prints its path; with --path it only prints that.
exec "$(dirname "$0")/../cached.sh" gitleaks github.com/zricethezav/gitleaks/v8 "$@"
