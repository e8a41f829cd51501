#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/html, which make html runs: pages for a browser, all of whose links lead somewhere.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/browser

prepare() {
	command -v mandoc >/dev/null || skip "no mandoc on this machine"
	expect_status 0 "$SOURCE/contrib/html" pages
	expect_silent
}

@test "HTML has every page, README and NEWS, and the front page links to each" {
	for page in "$SOURCE"/man/*.[1-8] "$SOURCE/contrib/python/semlock.3py" "$SOURCE/contrib/foreachmail/foreachmail.1" README NEWS; do
		name=${page##*/}
		[ -s "pages/$name.html" ] || complain "there is no $name.html" || return
		grep -q "href=\"$name.html\"" pages/index.html || complain "the front page does not lead to $name" || return
	done
	grep -q '4242 (cp disk.img' pages/index.html
}

@test "each link leads to a file and an anchor, and each page named is a link" {
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

@test "the style sheet fits a screen; examples have only lines of their page" {
	[ "$(wc -l <pages/style.css)" -le 24 ]
	[ "$(awk 'length > 120' pages/style.css)" = "" ]
	sed -n '/<pre>/,/<\/pre>/p' pages/README.html | grep -A1 '  PID USER' | grep -q '^held ' || complain "an empty line in a table"
}

@test "the terminal on the front page shows README's lines, as a valid picture" {
	sed -n '/^    \$ /,/^$/p' "$SOURCE/README" | sed 's/^    //; /^$/d' >shown
	python3 - pages/terminal.svg <<-'END' >drawn
		import sys, xml.etree.ElementTree as tree
		root = tree.parse(sys.argv[1]).getroot()
		wide = float(root.get("viewBox").split()[2])
		for line in root.iter("{http://www.w3.org/2000/svg}text"):
		    assert float(line.get("x")) + float(line.get("textLength")) <= wide
		    print(line.text)
	END
	diff shown drawn
	grep -q '<svg class="terminal"' pages/index.html
}

# The browser runs the script as a page does: without a server, from files.
@test "the search finds each option, each status, each heading of the FAQ" {
	need_browser
	{
		sed -nE 's/^OPTION\([A-Z_]+, "[a-zA-Z]*", "([a-z-]+)[^"]*",.*/--\1\tsemlock.1.html#/p' "$SOURCE/src/cli/options.def"
		grep -oE 'EXIT_[A-Z]+ = [0-9]+' "$SOURCE/src/report/error.h" |
			sed -E 's/.* ([0-9]+)/exit status \1\tsemlock.1.html#\1/'
		sed -n 's/^\.SS //p' "$SOURCE/man/semlock-faq.7" | sed 's/\\-/-/g; s/\\(aq/'"'"'/g; s/"//g; s/$/\tsemlock-faq.7.html#/'
	} | grep -v '^exit status 0' >queries
	[ "$(wc -l <queries)" -ge 90 ] || complain "$(cat queries)" || return
	{
		sed '/<\/body>/,$d' pages/index.html
		printf '<script id="queries" type="text/plain">%s</script>\n' "$(cat queries)"
		cat <<-'END'
			<script>
			addEventListener("load", () => {
				const missing = [];
				for (const line of document.getElementById("queries").textContent.split("\n")) {
					const [query, href] = line.split("\t"), hits = find(query).slice(0, 5).map(one => one.href);
					const wanted = href.endsWith("#") && query.startsWith("--") ? href + query : href;
					if (!hits.some(one => wanted.endsWith("#") ? one.startsWith(wanted) : one === wanted))
						missing.push(query + ": " + hits.join(" "));
				}
				box.value = "queue max";
				box.dispatchEvent(new Event("input"));
				const first = list.querySelector("a").getAttribute("href");
				document.body.textContent = "\n" + missing.join("\n") + "\n" + first + "\n";
			});
			</script></body></html>
		END
	} >pages/asked.html
	browse pages/asked.html || return
	sed '1,/<body/d; s/<[^>]*>//g; /^$/d' dom >said
	[ "$(cat said)" = "semlock.1.html#--queue-max" ] || complain "$(cat said)"
}

@test "anchors on options and statuses; none stands twice" {
	for anchor in --queue-max -n --json 64 127; do
		grep -q " id=\"$anchor\"" pages/semlock.1.html || complain "no $anchor" || return
	done
	for page in pages/*.html; do
		grep -o ' id="[^"]*"' "$page" | sort | uniq -d >twice
		[ ! -s twice ] || complain "$page: $(cat twice)" || return
	done
}

@test "without mandoc: one line, and 69; without a directory 64" {
	mkdir few
	for tool in dirname readlink sh; do ln -s "$(command -v $tool)" few/$tool; done
	PATH=$PWD/few expect_status 69 "$SOURCE/contrib/html" other
	[ "$(wc -l <.err)" -eq 1 ]
	[ ! -e other ]
	expect_status 64 "$SOURCE/contrib/html"
}
