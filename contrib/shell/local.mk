# SPDX-License-Identifier: MIT
# A library for shell scripts: . PREFIX/share/semlock/semlock.sh
dist_pkgdata_DATA = contrib/shell/semlock.sh

SHELL_FILES += contrib/shell/semlock.sh
LOCAL_BATS += tests/contrib/shell.bats
EXTRA_DIST += contrib/shell/README
