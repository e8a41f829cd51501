#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/packaging: each file that make install makes is in one package of each distribution, and each list names
# what is there.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

PACKAGING=$SOURCE/contrib/packaging

# installed ARGUMENT...: the list `there` of what make install with these variables makes, below the root
installed() {
	local build root=$PWD/root
	build=$(dirname "$CONFIG")
	[ -e "$build/Makefile" ] || skip "not in a build directory"
	for helper in etcd ftp postgresql redis s3 ssh; do
		[ -x "$build/semlock-locksmith-$helper" ] || skip "built without the helpers for servers"
	done
	(unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES && cd "$build" && make -s install DESTDIR="$root" "$@") >make.log 2>&1 ||
		complain "$(tail -n 5 make.log)" || return
	(cd "$root" && find . ! -type d | sed 's,^\./,,' | sort) >there
	[ "$(wc -l <there)" -gt 40 ] || complain "$(cat there)"
}

# usr ARGUMENT...: the same, where distributions have things
usr() {
	installed prefix=/usr exec_prefix=/usr bindir=/usr/bin libexecdir=/usr/libexec datarootdir=/usr/share \
		datadir=/usr/share mandir=/usr/share/man docdir=/usr/share/doc/semlock "$@"
}

# covered: each line of `there` is matched by just one line of `lists` (PACKAGE PATTERN; a directory has what is below
# it), and each line of `lists` matches something.
covered() {
	awk 'FNR == NR { package[NR] = $1; pattern[NR] = $2; n = NR; next }
		{
			count = 0
			for (i = 1; i <= n; i++) {
				regex = pattern[i]
				gsub(/[.+]/, "\\\\&", regex)
				gsub(/\*/, "[^/]*", regex)
				if ($0 ~ "^" regex "(/|$)") {
					used[i] = 1
					if (!(package[i] in has)) count++
					has[package[i]] = 1
				}
			}
			if (count != 1) print $0 ": in " count " packages"
			delete has
		}
		END { for (i = 1; i <= n; i++) if (!used[i]) print pattern[i] " of " package[i] ": no such file" }' lists there >wrong
	[ ! -s wrong ] || complain "$(cat wrong)"
}

@test "Debian: each file is in one package" {
	usr zshcompletiondir=/usr/share/zsh/vendor-completions \
		perldir=/usr/share/perl5 pythondir=/usr/lib/python3/dist-packages
	for list in "$PACKAGING"/debian/*.install "$PACKAGING"/debian/*.manpages; do
		sed -nE "s#^(debian/tmp/)?(usr/.*)#$(basename "${list%.*}") \2#p" "$list"
	done >lists
	covered
}

@test "the spec: each file is in one package" {
	usr perldir=/usr/share/perl5/vendor_perl pythondir=/usr/lib/python3/site-packages
	awk '/^%files/ { package = $NF == "%files" ? "semlock" : $NF; next }
		/^%changelog/ { exit }
		package && /^%\{|^\// { print package, $1 }' "$PACKAGING/semlock.spec.in" |
		sed 's,%{_bindir},usr/bin,; s,%{_libexecdir},usr/libexec,; s,%{_mandir},usr/share/man,; s,%{_datadir},usr/share,
			s,%{name},semlock,g; s,%{perl_vendorlib},usr/share/perl5/vendor_perl,; s,%{python3_sitelib},usr/lib/python3/site-packages,' >lists
	covered
}

# abuild itself moves what is documentation and completion.
@test "APKBUILD: each file that is moved exists; the main package has the rest" {
	usr perldir=/usr/share/perl5/vendor_perl pythondir=/usr/share/semlock/python
	awk '/^[a-z0-9]+\(\) \{/ { package = $1 }
		$1 == "amove" { for (i = 2; i <= NF; i++) print package, $i }' "$PACKAGING/APKBUILD" >lists
	printf '%s\n' 'doc usr/share/man' 'doc usr/share/doc' 'bash usr/share/bash-completion' 'fish usr/share/fish' 'zsh usr/share/zsh' \
		'main usr/bin/semlock' 'main usr/bin/semlock-check' 'main usr/bin/semlock-loud-after' 'main usr/share/semlock/semlock.sh' 'main usr/libexec/semlock_locksmith.py' >>lists
	covered
	# What configure is told there is what this test has told make.
	grep -q -- '--with-perl-dir=/usr/share/perl5/vendor_perl --with-python-dir=/usr/share/semlock/python$' "$PACKAGING/APKBUILD"
}

@test "each package has our version, a valid shell script, and existing tests" {
	version=$("$SEMLOCK" --version | sed -n 's/^semlock \([0-9.]*\).*/\1/p')
	for file in PKGBUILD APKBUILD; do
		bash -n "$PACKAGING/$file"
		grep -qx "pkgver=$version" "$PACKAGING/$file" || complain "$file is not of version $version"
	done
	grep -q "version = \"$version\"" "$PACKAGING/default.nix"
	grep -oh 'tests/[a-z/-]*\.bats' "$PACKAGING"/*BUILD "$PACKAGING/default.nix" "$PACKAGING/debian/rules" | sort -u >tests
	[ "$(wc -l <tests)" -ge 3 ]
	while read -r name; do [ -e "$SOURCE/$name" ] || complain "no $name"; done <tests
	grep -q 'configureFlags = \[ "--with-network" ' "$PACKAGING/default.nix"
}
