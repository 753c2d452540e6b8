#!/bin/sh
# Makes sure of what the tests need beyond Python: Chromium, PostgreSQL and fonts of all scripts.
set -eu
missing=""
command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null || missing="$missing chromium-headless-shell"
command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
ls /usr/share/fonts/truetype/noto/NotoSansDevanagari-Regular.ttf >/dev/null 2>&1 || missing="$missing fonts-noto-core"
ls /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc >/dev/null 2>&1 || missing="$missing fonts-noto-cjk"
ls /usr/share/fonts/truetype/noto/NotoColorEmoji.ttf >/dev/null 2>&1 || missing="$missing fonts-noto-color-emoji"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing$missing"
  apt-get update -qq
  # A cluster that Debian would start on its own is not wanted: the tests make their own.
  mkdir -p /etc/postgresql-common
  [ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
else
  echo "the tests need these system packages (Debian's names), and only root can install them:$missing" >&2
  echo "install them with: sudo apt-get install$missing" >&2
  exit 1
fi
