#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a person or a monitoring system makes of semlock --who --json and of --log: contrib/recipes/lock-metrics,
# held-too-long, lock-report.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/browser

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

@test "lock-metrics: holders, waiters and the log as text, for any lock's name" {
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

@test "lock-metrics -o: the file is whole, and unchanged if no look succeeds" {
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

@test "held-too-long: a line and 1 for a lock held for longer, else nothing" {
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

# holder_is LOCK AGO COMMAND: bin/semlock shows that process 7, COMMAND in JSON, has held LOCK since AGO, a time in date(1)'s
# words.
holder_is() {
	rm -f bin/semlock
	cat >list <<-END
		[{"lock": "$1", "holders": [{"pid": 7, "since": "$(date -u -d "$2" +%FT%TZ)", "command": $3}], "waiters": []}]
	END
	program bin/semlock "cat '$PWD/list'; exit 1"
}

@test "held-too-long: seconds, minutes, hours and days" {
	holder_is l '90 minutes ago' '["job"]'
	for less in 5390 5390s 89m 1h 0d; do
		expect_status 1 held-too-long $less
	done
	for more in 5500 5500s 92m 2h 1d; do
		expect_status 0 held-too-long $more
	done
	holder_is l '36 hours ago' '["job"]'
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

@test "held-too-long: a foreign command is one line, and harmless" {
	holder_is 'l\nk' '1 hour ago' '["a\nroot.lock: held for 9 s\r", "b\u001b[2J\u009b2J\u202ec\u2066\u2028"]'
	expect_status 1 held-too-long 1
	grep -qx 'l?k: held for [0-9]* s by 7 (a?root.lock: held for 9 s? b?\[2J?2J?c??), 0 waiting' .out || complain "$out" || return
	[ "$(wc -l <.out)" -eq 1 ]
}

# What no semlock has written, but a log can have: by hand, by another program, on a full disk.
odd_lines() {
	printf '%s\n' '{"time": "2026-11-25T12:00:00Z", "lock": ["l"], "outcome": "exit 0", "command": ["x"], "waited": 0, "held": 1}' \
		'{"time": "2026-11-25T12:00:00Z", "lock": "nan", "outcome": "exit 0", "command": ["x"], "waited": NaN, "held": 1}' \
		'{"time": "2026-11-25T12:00:00Z", "lock": "nan", "outcome": "exit 0", "command": ["x"], "waited": 0, "held": Infinity}' \
		'{"time": "2026-11-25T12:00:00Z", "lock": "nan", "outcome": "exit 0", "command": ["x"], "waited": 0, "held": 1e300}' \
		'{"time": "2026-11-25T12:00:00Z", "lock": "nan", "outcome": {}, "command": ["x"], "waited": -1, "held": 1}' \
		'{"time": 7, "lock": "nan", "outcome": "exit 0", "command": 7, "waited": 0, "held": 1}' \
		'{"time": "0001-01-01T00:00:00Z", "lock": "old", "outcome": "exit 0", "command": ["x"], "waited": 0, "held": 1}' \
		'[1, 2]' 7 null '"l"' '' "{\"waited\": 1$(printf '0%.0s' {1..400})}" "$(printf '[%.0s' {1..100000})"
}

@test "an odd line in a log: lock-metrics and lock-report go by the others" {
	hold_lock --log=log l
	let_go holder
	odd_lines >>log
	expect_status 0 "$SEMLOCK" --log=log l true
	expect_status 0 lock-metrics --log=log free
	parsed <.out >samples
	grep -qxF "semlock_runs_total|lock=l|outcome=exit 0|2" samples || complain "$(cat samples)" || return
	[ "$(grep -ciE '\|(nan|[+]?inf)$' samples)" -eq 0 ] || complain "$(cat samples)" || return
	for way in --columns=80 --html; do
		expect_status 0 lock-report $way log
		[ "$(grep -ciE '\<(nan|inf)\>.*[0-9]|[0-9].*\<(nan|inf)\>' .out)" -eq 0 ] || complain "$out" || return
	done
}

@test "lock-metrics -o: an exporter can read the file, whatever the umask is" {
	(umask 077 && expect_status 0 lock-metrics -o metrics free)
	[ "$(stat -c %a metrics)" = 644 ]
	chmod 640 metrics
	(umask 022 && expect_status 0 lock-metrics -o metrics free)
	[ "$(stat -c %a metrics)" = 640 ]
}

@test "lock-report: a line each for held and waiting, as wide as the terminal" {
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

@test "lock-metrics: histograms of waits and holds, and waits by holder" {
	half_an_hour
	expect_status 0 lock-metrics --log=log free
	parsed <.out >samples
	for sample in 'semlock_wait_seconds_bucket|le=0.1|lock=one|1' 'semlock_wait_seconds_bucket|le=60|lock=one|2' \
		'semlock_wait_seconds_bucket|le=300|lock=one|2' 'semlock_wait_seconds_bucket|le=900|lock=one|3' \
		'semlock_wait_seconds_bucket|le=+Inf|lock=one|3' 'semlock_wait_seconds_sum|lock=one|660' 'semlock_wait_seconds_count|lock=one|3' \
		'semlock_hold_seconds_bucket|le=300|lock=one|0' 'semlock_hold_seconds_bucket|le=900|lock=one|1' \
		'semlock_hold_seconds_count|lock=one|2' 'semlock_hold_seconds_sum|lock=one|1800' \
		'semlock_waited_for_seconds_total|holder=job a|lock=one|600' \
		'semlock_waited_for_seconds_total|holder=job <b> & co|lock=one|60'; do
		grep -qxF "$sample" samples || complain "no $sample" "$(cat samples)" || return
	done
	[ "$(grep -c 'waited_for.*lock=two' samples)" -eq 0 ] || complain "$(cat samples)"
}

@test "lock-metrics: of hundreds of programs, those most waited for are named" {
	for n in {1..60}; do
		printf '{"time": "2026-11-25T12:%02d:30Z", "lock": "l", "command": ["/bin/job%d", "x"], "waited": 0, "held": %d, "outcome": "exit 0"}\n' \
			$((n - 1)) "$n" $((n / 3))
	done >log
	printf '%s\n' '{"time": "2026-11-25T13:00:00Z", "lock": "l", "command": ["w"], "waited": 3600, "held": 0, "outcome": "timeout"}' \
		'{"time": 7, "lock": "l"}' '[]' '{"time": "2026-11-25T13:00:00Z", "lock": "l", "command": ["w"], "waited": NaN, "held": 0, "outcome": "busy"}' >>log
	expect_status 0 lock-metrics --log=log free
	parsed <.out | grep waited_for >samples
	[ "$(wc -l <samples)" -eq 21 ] || complain "$(cat samples)" || return
	grep -qxF 'semlock_waited_for_seconds_total|holder=job60|lock=l|20' samples
	grep -q 'holder=others' samples
	[ "$(grep -c 'holder=job1|' samples)" -eq 0 ] || complain "$(cat samples)"
}

@test "lock-report: how many waits and holds were how long, and waited for whom" {
	half_an_hour
	expect_status 0 lock-report log
	grep -qxP 'lock\tup to\t.1 s\t1 s\t10 s\t1 min\t5 min\t15 min\t1 h\t4 h\tmore' .out || complain "$out" || return
	grep -qxP 'one\twaits\t1\t0\t0\t1\t0\t1\t0\t0\t0' .out || complain "$out" || return
	grep -qxP 'one\tholds\t0\t0\t0\t0\t0\t1\t1\t0\t0' .out || complain "$out" || return
	[ "$(sed -n '/^waited for/,/^$/p' .out)" = $'waited for\n600\tone\tjob a\n60\tone\tjob <b> & co' ] || complain "$out" || return
	expect_status 0 lock-report --html log
	grep -qF '<tr><td>job &lt;b&gt; &amp; co</td><td>one</td><td>60</td></tr>' .out
	grep -qF '<tr><td>one</td><td>waits</td><td>1</td>' .out
}

# The log's times have whole seconds.  Each waits from the first second on, and follows at once.
@test "lock-report, lock-metrics: a run that got no lock is no hold" {
	local outcome n=0
	for outcome in busy timeout superseded toggled "failed 69"; do
		printf '{"time": "2026-11-25T12:00:0%d.000Z", "lock": "l", "command": ["c"], "waited": 0, "held": 0, "outcome": "%s"}\n' $((n++)) "$outcome"
	done >log
	printf '{"time": "2026-11-25T13:00:00Z", "lock": "l", "command": ["c"], "waited": 0, "held": 5, "outcome": "exit 0"}\n' >>log
	expect_status 0 lock-report log
	grep -qxP 'l\t6\t5\t0\t5' .out || complain "$out" || return
	grep -qxP 'l\tholds\t0\t0\t1(\t0)+' .out || complain "$out" || return
	expect_status 0 lock-metrics --log=log free
	parsed <.out >samples
	grep -qxF 'semlock_hold_seconds_count|lock=l|1' samples || complain "$(cat samples)" || return
	grep -qxF 'semlock_wait_seconds_count|lock=l|6' samples || complain "$(cat samples)"
}

@test "lock-report: a superseded run got no lock" {
	hold_lock l
	start first "$SEMLOCK" --supersede --log=log l true
	"$PROBE" blocked "${PID[first]}"
	start second "$SEMLOCK" --supersede --log=log l true
	ended first 1
	let_go
	ended second 0
	expect_status 0 lock-report log
	grep -qP '^l\t2\t1\t' .out || complain "$out"
}

@test "lock-report: runs of seconds are drawn one after another, in one line" {
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

@test "lock-report --html: one row a lock, bars, the command as a tooltip" {
	need_browser
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
	browse looked-at.html || return
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
