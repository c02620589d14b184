#!/bin/sh
# Make sure there is a Chromium for the browser tests: the system's, Debian's
# package where we may install it, or Playwright's own download.
# $1 is the Python of the environment that has Playwright.
set -eu
command -v chromium >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ]; then admin=""; else admin="sudo -n"; fi
if command -v apt-get >/dev/null 2>&1 && $admin true 2>/dev/null; then
    $admin apt-get update -qq && $admin apt-get install -y -qq chromium chromium-driver >/dev/null && exit 0
fi
exec "$1" -m playwright install chromium
