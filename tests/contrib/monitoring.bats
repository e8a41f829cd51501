#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a person or a monitoring system makes of semlock --who --json and of --log: contrib/recipes/lock-metrics,
# held-too-long, lock-report.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	ln -s "$SEMLOCK" bin/semlock 2>/dev/null || true
	PATH=$PWD/bin:$SOURCE/contrib/recipes:$PATH
}

# parsed: the lines "name lock=... outcome=... value" of standard input, by the parser of Prometheus' own library.
parsed() {
	/usr/bin/python3 -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
for family in text_string_to_metric_families(sys.stdin.read()):
    for sample in family.samples:
        print(sample.name, *("%s=%s" % label for label in sorted(sample.labels.items())), "%g" % sample.value, sep="|")
'
}

@test "lock-metrics: holders, waiters and the log in the text format, whatever a lock is called" {
	name='a "b" \c'
	hold_as holder --log=log "$name"
	capture "$SEMLOCK" --log=log -n "$name" true
	start waiter "$SEMLOCK" "$name" true
	"$PROBE" blocked "${PID[waiter]}"
	printf '{"time": "of a full' >>log
	expect_status 0 lock-metrics --log=log "$name" free
	parsed <.out >samples
	grep -qxF "semlock_holders|lock=$name|1" samples || complain "$(cat samples)" || return
	grep -qxF "semlock_waiters|lock=$name|1" samples
	grep -qxF "semlock_holders|lock=free|0" samples
	grep -qxF "semlock_runs_total|lock=$name|outcome=busy|1" samples
	grep -qF "semlock_oldest_holder_seconds|lock=$name|" samples
	expect_status 0 lock-metrics # all that is held on this machine
	parsed <.out | grep -qxF "semlock_holders|lock=$PWD/$name|1" || complain "$out"
	let_go holder
	ended waiter 0
}

@test "lock-metrics -o: the file is whole, and stays as it was when nobody could look" {
	expect_status 0 lock-metrics -o metrics free
	expect_silent
	grep -q '^semlock_holders{lock="free"} 0$' metrics
	[ "$(tail -c 1 metrics | od -An -c | tr -d ' ')" = '\n' ]
	cp metrics before
	expect_status 69 lock-metrics -o metrics no/such/directory/lock
	cmp metrics before
	expect_status 66 lock-metrics --log=missing free
	expect_status 73 lock-metrics -o no/such/file free
	expect_status 64 lock-metrics --lgo=log
}

@test "held-too-long: a line and 1 for a lock that is held for longer, and nothing else" {
	expect_status 0 held-too-long 0 l
	expect_silent
	hold_as holder l
	for more in 3600 60m 1h 1d; do
		expect_status 0 held-too-long $more l
		expect_silent
	done
	eventually sh -c '! held-too-long 0s l >said'
	grep -Eqx "l: held for [0-9]+ s by [0-9]+ \($PROBE hold .*\), 0 waiting" said || complain "$(cat said)" || return
	let_go holder
	expect_status 69 held-too-long 0 no/such/directory/lock
	for slip in l '' 1h30m h 08 1.5h; do
		expect_status 64 held-too-long "$slip"
	done
}

# held_since AGO: bin/semlock answers as if the lock had been taken at AGO, a time in date(1)'s words.
held_since() {
	rm -f bin/semlock
	cat >bin/semlock <<-END
		#!/bin/sh
		echo '[{"lock": "l", "holders": [{"pid": 7, "command": ["job"], "since": "$(date -u -d "$1" +%FT%TZ)"}], "waiters": []}]'
		exit 1
	END
	chmod 755 bin/semlock
}

@test "held-too-long: seconds, minutes, hours and days" {
	held_since '90 minutes ago'
	for less in 5390 5390s 89m 1h 0d; do
		expect_status 1 held-too-long $less
	done
	for more in 5500 5500s 92m 2h 1d; do
		expect_status 0 held-too-long $more
	done
	held_since '36 hours ago'
	expect_status 1 held-too-long 1d
	expect_status 0 held-too-long 2d
}

# A log of half an hour: a holds for all of it, b waits for 10 minutes and then holds, c got nothing; d is of another lock.
half_an_hour() {
	local line='{"time": "2026-11-25T%s:00Z", "lock": "%s", "method": "flock", "mode": "exclusive", "slot": null, "pid": 1, '
	line+='"user": "root", "command": ["%s"], "place": null, "waited": %s, "held": %s, "outcome": "%s"}\n'
	# shellcheck disable=SC2059 # that is the format
	printf "$line" \
		12:20 one 'job a' 0 1200 'exit 0' 12:25 one 'job c' 60 0 timeout 12:30 one 'job <b> & co' 600 600 'exit 3' \
		12:30 'two </svg>' 'job d' 0 1800 'exit 0' >log
}

@test "lock-report: a line for held and for waiting over time, as wide as the terminal" {
	half_an_hour
	expect_status 0 env PYTHONIOENCODING=utf-8 lock-report --columns=70 log
	chart=$(sed -n '/^one$/,$p' .out)
	[ "$(sed -n 's/^    held //p' <<<"$chart" | head -n 1)" = "$(printf '█%.0s' {1..60})" ] || complain "$chart" || return
	# waiting from 12:10 to 12:20, and two at once never; from 12:24 to 12:25 the one that gave up
	[[ $(sed -n 's/^ waiting //p' <<<"$chart") =~ ^\ {20}█{20,21}\ {6,7}█{2,3}$ ]] || complain "$chart" || return
	grep -q 'UTC  *.*12:10 .*12:20' <<<"$chart"
	[ "$(awk 'length > 70' <<<"${chart//█/x}")" = "" ]
	expect_status 0 lock-report log
	[[ $out != *waiting\ * ]] # standard output is no terminal
	printf 'expect UTC\n' | "$PROBE" pty lock-report log >shown
}

# The log's times have whole seconds.  Each waits from the first second on, and follows at once.
@test "lock-report: runs of seconds that follow one another are drawn one after another, in one line" {
	local ended=200 held
	for held in 901 1101 1201 1301 1401 1501 1601 777 999 1 1333; do
		ended=$((ended + held))
		printf '{"time": "2026-11-25T12:00:%02dZ", "lock": "one", "mode": "exclusive", "command": ["job"], "waited": %d.%03d, "held": %d.%03d, "outcome": "exit 0"}\n' \
			$((ended / 1000)) $(((ended - held) / 1000)) $(((ended - held) % 1000)) $((held / 1000)) $((held % 1000))
	done >log
	expect_status 0 lock-report --html log
	grep -o '<rect class="held"[^>]*>' .out | sed 's/[^0-9.]\+/ /g' | sort -n >bars
	[ "$(wc -l <bars)" -eq 11 ]
	# A bar is 1.5 wide at least, for a run of a millisecond.
	awk 'NR > 1 && ($1 < until - 1.6 || $2 != line) { print "at " $1; bad = 1 }
		{ until = $1 + $3; line = $2 } END { exit bad }' bars || complain "$(cat bars)" || return
	expect_status 0 lock-report --columns=80 log
	[[ $out == *"    held "* && $out != *"held at once"* ]]
}

@test "lock-report --html in a browser: one row a lock, bars of holds and waits, the command under the pointer" {
	browser=$(command -v chromium-headless-shell || command -v chromium) || skip "no headless Chromium"
	half_an_hour
	expect_status 0 lock-report --html log
	[ "$(grep -Ec '(src|href)=|https?:|@import' .out)" -eq 0 ] || complain "it needs what is elsewhere" || return
	# What a person would see at the middle of each bar, found by the browser.
	cat .out - >looked-at.html <<-'END'
		<script>
		let said = [];
		for (const bar of document.querySelectorAll("rect")) {
			const at = bar.getBoundingClientRect();
			const hit = document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2);
			said.push([bar.className.baseVal, Math.round(100 * at.width / document.querySelector("svg").getBoundingClientRect().width),
				getComputedStyle(bar).fill, hit === bar ? hit.querySelector("title").textContent.split("\n")[0] : "covered"].join("|"));
		}
		for (const row of document.querySelectorAll("text.lock")) said.push("row|" + row.textContent);
		const wide = document.documentElement.scrollWidth > innerWidth ? "too wide" : "fits";
		document.body.textContent = "\n" + said.join("\n") + "\n" + wide + "\n";
		</script>
	END
	# A browser's processes outlive it for a moment, and crash reporters would write into HOME.
	HOME=$PWD timeout 120 "$browser" --headless --no-sandbox --disable-gpu --window-size=1000,700 --user-data-dir="$PWD/browser" \
		--dump-dom "file://$PWD/looked-at.html" >dom 2>browser.err 3>&- 4>&- || complain "$(tail -n 5 browser.err)" || return
	sed '1,/<body>/d; s/<[^>]*>//g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g; /^$/d' dom >seen
	cat >wanted <<-'END'
		held|67|rgb(42, 111, 151)|job a
		waited|33|rgb(240, 160, 75)|job <b> & co
		held|33|rgb(42, 111, 151)|job <b> & co
		refused|3|rgb(193, 18, 31)|job c
		held|100|rgb(42, 111, 151)|job d
		row|one
		row|two </svg>
		fits
	END
	diff <(sort wanted) <(sort seen) || complain "the page is another"
}

@test "lock-report: a log that cannot be read, or has no run, is one line" {
	expect_status 64 lock-report
	expect_status 64 lock-report --hmtl log
	expect_status 66 lock-report log
	[ "$(wc -l <.err)" -eq 1 ]
	echo '{}' >log
	expect_status 65 lock-report --html log
	[ "$(wc -l <.err)" -eq 1 ]
}
