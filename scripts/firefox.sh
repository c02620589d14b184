#!/bin/sh
# Make sure there is a Firefox: the system's, or Debian's package where we may install it.
set -eu
if command -v firefox >/dev/null 2>&1 || command -v firefox-esr >/dev/null 2>&1; then exit 0; fi
if [ "$(id -u)" = 0 ]; then admin=""; else admin="sudo -n"; fi
$admin apt-get update -qq
$admin apt-get install -y -qq firefox-esr >/dev/null
