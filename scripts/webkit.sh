#!/bin/sh
# Make sure there are WebKitGTK's driver and a screen for it: Debian's packages, where we may install them.
set -eu
if command -v WebKitWebDriver >/dev/null 2>&1 && command -v xvfb-run >/dev/null 2>&1; then exit 0; fi
if [ "$(id -u)" = 0 ]; then admin=""; else admin="sudo -n"; fi
$admin apt-get update -qq
$admin apt-get install -y -qq webkit2gtk-driver xvfb xauth >/dev/null
