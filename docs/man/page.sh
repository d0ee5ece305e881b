#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# page.sh VERSION DATE TEMPLATE OUTPUT [PROGRAM]: makes a manual page. Lines of the template
#   @help              become the help of the program
#   @commands          become its commands, each with its help
#   @table FILE NAME   become the rows of the page's table whose first column is called NAME
# so that options and settings are told in one place.
set -eu
version=$1 date=$2 template=$3 output=$4 program=${5-}

# Help as a manual page has it: usage, a list of terms, paragraphs.
help_to_man()
{
    awk '
    function plain(text) {
        gsub(/\\/, "\\e", text)
        gsub(/-/, "\\-", text)
        return text ~ /^[.'"'"']/ ? "\\&" text : text
    }
    /^usage:/ || is_usage && /^  +filch-/ {
        sub(/^usage: */, ""); sub(/^ +/, "")
        if (is_usage)
            print ".br"
        print plain($0)
        is_usage = 1
        next
    }
    { is_usage = 0 }
    /^[a-z]+:$/ { next }
    /^  ? ? ? ?[^ ]/ {
        sub(/^ +/, "")
        at = match($0, /  +/)
        print ".TP"
        print "\\fB" plain(at ? substr($0, 1, at - 1) : $0) "\\fR"
        if (at)
            print plain(substr($0, at + RLENGTH))
        is_list = 1
        next
    }
    /^ / { sub(/^ +/, ""); print plain($0); next }
    {
        if (is_list)
            print ".PP"
        is_list = 0
        print plain($0)
    }'
}

# table FILE NAME: rows "| `term` | text |", or "| `term` | `default` | ... | text |"; without links.
table()
{
    awk -F '|' -v name="$2" '
    function plain(text) {
        gsub(/\\/, "\\e", text)
        gsub(/-/, "\\-", text)
        gsub(/ \(\[[a-z]+\]\([^)]*\)\)/, "", text)
        gsub(/\]\([^)]*\)/, "", text)
        gsub(/\[/, "", text)
        while (match(text, /`[^`]*`/))
            text = substr(text, 1, RSTART - 1) "\\fB" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" \
                substr(text, RSTART + RLENGTH)
        gsub(/^ +| +$/, "", text)
        return text ~ /^[.'"'"']/ ? "\\&" text : text
    }
    $2 == " " name " " { is_table = 1; next }
    !/^\|/ { is_table = 0 }
    is_table && !/^\| ---/ {
        value = NF > 4 ? plain($3) : ""
        text = plain($(NF - 1))
        print ".TP"
        print plain($2)
        print text (value == "" || value ~ /fBdefault/ ? "" : " (default " value ")")
        rows++
    }
    END { if (rows == 0) { print "no table of " name > "/dev/stderr"; exit 1 } }' "$1"
}

commands()
{
    "$program" --help | sed -n 's/^  filch-bench \([a-z][a-z]*\) .*  \(.*\)/\1 \2/p' |
        while read -r command summary; do
            printf '.SS %s\n%s.\n.PP\n' "$command" "$(printf '%s' "$summary" | sed 's/-/\\-/g')"
            "$program" "$command" --help | help_to_man
        done
}

while IFS= read -r line; do
    case $line in
    '@help') "$program" --help | help_to_man ;;
    '@commands') commands ;;
    '@table '*)
        rest=${line#@table }
        table "${rest% *}" "${rest#* }"
        ;;
    *) printf '%s\n' "$line" | sed "s/@VERSION@/$version/; s/@DATE@/$date/" ;;
    esac
done <"$template" >"$output.new"
mv "$output.new" "$output"
