# SPDX-License-Identifier: MIT
# A page as a browser shows it.
# shellcheck shell=bash

# need_browser: skips the test without a headless Chromium.
need_browser() {
	browser=$(command -v chromium-headless-shell || command -v chromium) || skip "no headless Chromium"
}

# browse PAGE: dom is what the page, a file, has become when its scripts have run.
# (A browser's processes outlive it for a moment, and crash reporters would write into HOME.)
browse() {
	HOME=$PWD timeout 120 "$browser" --headless --no-sandbox --disable-gpu --window-size=1000,700 \
		--user-data-dir="$PWD/browser" --dump-dom "file://$PWD/$1" >dom 2>browser.err 3>&- 4>&- ||
		complain "$(tail -n 5 browser.err)"
}
