# uncovered.awk - does tests/UNCOVERED explain what is left, and nothing else?
#
#	awk -f uncovered.awk tests/UNCOVERED left
#
# An entry is a line "FILE FUNCTION KIND: WORDS", of which WORDS may go on in lines that begin with
# a blank.  Prints what is missing, what is of no kind, and which entry is needed no longer, unless
# it is of a kind that one run meets and another does not.  Ends with 1 if there is any.
FNR == NR && /^  [a-z]+  / { kinds[$1] = 1 }
FNR == NR && /^[a-z0-9_\/]+\.[ch] / {
	entry = $1 " " $2
	if (entry in kind)
		say(entry ": two entries")
	word = $3
	if (!sub(/:$/, "", word) || !(word in kinds) || NF < 4)
		say(entry ": of what kind, and why?")
	kind[entry] = word
	order[++n] = entry
}
FNR == NR { next }
{
	entry = $1 " " $2
	left[entry] = 1
	if (!(entry in kind)) {
		$1 = $2 = ""
		say(entry ": nothing says why these lines are not run:" substr($0, 2))
	}
}
END {
	for (i = 1; i <= n; i++)
		if (!(order[i] in left) && kind[order[i]] !~ /^(race|time|chance)$/)
			say(order[i] ": is explained, and all of it is run")
	exit bad
}

function say(text)
{
	print "coverage: tests/UNCOVERED: " text
	bad = 1
}
