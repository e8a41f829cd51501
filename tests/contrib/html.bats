#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/html, which make html runs: pages for a browser, all of whose links lead somewhere.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

prepare() {
	command -v mandoc >/dev/null || skip "no mandoc on this machine"
	expect_status 0 "$SOURCE/contrib/html" pages
	expect_silent
}

@test "every page of the manual, README and NEWS is there, and the front page leads to each" {
	for page in "$SOURCE"/man/*.[1-8] "$SOURCE/contrib/python/semlock.3" "$SOURCE/contrib/foreachmail/foreachmail.1" README NEWS; do
		name=${page##*/}
		[ -s "pages/$name.html" ] || complain "there is no $name.html" || return
		grep -q "href=\"$name.html\"" pages/index.html || complain "the front page does not lead to $name" || return
	done
	grep -q '4242 (cp disk.img' pages/index.html
}

@test "each link leads to a file, and to a place in it, and each page that is named is a link" {
	cat >links.py <<-'END'
		import html.parser, os, re, sys
		class Page(html.parser.HTMLParser):
		    def __init__(self, name):
		        super().__init__()
		        self.links, self.ids, self.depth, self.bare = [], set(), 0, []
		        self.feed(open(name, encoding="utf-8").read())
		    def handle_starttag(self, tag, attributes):
		        attributes = dict(attributes)
		        self.ids.add(attributes.get("id"))
		        self.links += [attributes[key] for key in ("href", "src") if key in attributes]
		        self.depth += tag == "a"
		    def handle_endtag(self, tag):
		        self.depth -= tag == "a"
		    def handle_data(self, text):
		        if not self.depth and re.search(r"\bsemlock-[a-z]+\([17]\)", text):
		            self.bare.append(text.strip())
		pages = {name: Page(name) for name in os.listdir(".") if name.endswith(".html")}
		links = 0
		for name, page in pages.items():
		    for link in page.links:
		        target, _, place = link.partition("#")
		        links += 1
		        if target and not os.path.exists(target):
		            print(f"{name}: {link}: no such file")
		        elif place and place not in pages[target or name].ids:
		            print(f"{name}: {link}: no such place")
		    for text in page.bare:
		        print(f"{name}: no link: {text}")
		print(links, "links")
	END
	(cd pages && python3 ../links.py) >found
	[ "$(wc -l <found)" -eq 1 ] || complain "$(cat found)" || return
	[ "$(cut -d' ' -f1 found)" -ge 200 ] || complain "$(cat found)"
}

@test "the style sheet fits on a screen, and an example has no lines that its page has not" {
	[ "$(wc -l <pages/style.css)" -le 24 ]
	[ "$(awk 'length > 120' pages/style.css)" = "" ]
	sed -n '/<pre>/,/<\/pre>/p' pages/README.html | grep -A1 '  PID USER' | grep -q '^held ' || complain "an empty line in a table"
}

@test "without mandoc: one line, and 69; without a directory 64" {
	mkdir few
	for tool in dirname readlink sh; do ln -s "$(command -v $tool)" few/$tool; done
	PATH=$PWD/few expect_status 69 "$SOURCE/contrib/html" other
	[ "$(wc -l <.err)" -eq 1 ]
	[ ! -e other ]
	expect_status 64 "$SOURCE/contrib/html"
}
