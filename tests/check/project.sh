#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a project has beside its code: a licence, a citation that is complete, a word on security, and a workflow whose
# commands are there. Every file that names the version names the one of CMakeLists.txt.
set -euo pipefail
failed=0
bad()
{
    echo "$*"
    failed=1
}

version=$(sed -nE 's/^project\(filch VERSION ([0-9.]+).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || { echo "CMakeLists.txt: no version"; exit 1; }

# value KEY: of a key at the top of the citation.
value()
{
    sed -nE "s/^$1: *\"?([^\"]*)\"?\$/\\1/p" CITATION.cff
}
[ "$(value cff-version)" = 1.2.0 ] || bad "CITATION.cff: cff-version"
[ "$(value version)" = "$version" ] || bad "CITATION.cff: version $(value version), not $version"
[ "$(value license)" = Apache-2.0 ] && grep -q 'Apache License' LICENSE || bad "CITATION.cff, LICENSE: the licence"
[[ "$(value title)" == filch* && -n "$(value message)" ]] || bad "CITATION.cff: title or message"
date -d "$(value date-released)" +%F 2>/dev/null | grep -qxF "$(value date-released)" ||
    bad "CITATION.cff: date-released is no date"
[ "$(sed -n '/^abstract:/,/^[a-z]/p' CITATION.cff | wc -w)" -gt 50 ] || bad "CITATION.cff: no abstract"
sed -n '/^authors:/,/^[a-z-]*:/p' CITATION.cff | grep -qE '^  - (name|family-names): .' || bad "CITATION.cff: no authors"
[ "$(sed -n '/^keywords:/,$p' CITATION.cff | grep -c '^  - ')" -ge 3 ] || bad "CITATION.cff: no keywords"
if python3 -c 'import yaml' 2>/dev/null; then
    python3 -c 'import yaml; yaml.safe_load(open("CITATION.cff"))' || bad "CITATION.cff: no YAML"
    python3 -c 'import yaml; yaml.safe_load(open(".github/workflows/tests.yml"))' || bad "tests.yml: no YAML"
fi

grep -qF "version = \"$version\"" bindings/python/pyproject.toml || bad "pyproject.toml: not version $version"
grep -qE "^## ${version//./\\.}(,|\$| )" docs/changelog.md || bad "docs/changelog.md: nothing about $version"

grep -q '\*\*Reporting\.\*\*' docs/security.md || bad "docs/security.md: how to report is missing"
grep -qF docs/security.md .github/SECURITY.md || bad ".github/SECURITY.md: does not lead to docs/security.md"
commands=$(sed -nE 's/^ *- run: *(.*)$/\1/p' .github/workflows/tests.yml)
[ -n "$commands" ] || bad "tests.yml: no commands"
while read -r command; do
    [ -x "${command%% *}" ] || bad "tests.yml: no such command: $command"
done <<<"$commands"
grep -qE '^on: .*push' .github/workflows/tests.yml || bad "tests.yml: not run at a push"
[ $failed -ne 0 ] || echo "project: version $version"
exit $failed
