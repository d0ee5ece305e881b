#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Comments of the library name things: at most 75 pronouns and relatives in 1,000 words, and at most 8 % of
# comments begin with a preposition, a relative or a pronoun. Comments of fewer than three words do not
# count. The map of the code and the page of a room have at most 600 words each.
set -euo pipefail
for page in docs/architecture.md docs/rooms/*.md; do
    words=$(wc -w <"$page")
    [ "$words" -le 600 ] || { echo "$page: $words words, above 600" >&2; exit 1; }
done
find runtime include \( -name '*.c' -o -name '*.h' -o -name '*.hpp' \) -print0 | sort -z | xargs -0 awk '
BEGIN {
    split("it its itself they them their theirs this that these those which who whom whose what whatever " \
        "whoever such same one ones other others another each both none some any all there here so", list, " ")
    for (i in list)
        pronoun[list[i]]
    split("of in on at to for from by with without behind beside before after where what which who whose " \
        "whether that such it its they them those these nothing nobody else", list, " ")
    for (i in list)
        opener[list[i]]
}

function end_comment(    found, count, i, word) {
    if (text ~ /SPDX|Copyright/)
        return
    gsub(/[^A-Za-z'"'"'-]+/, " ", text)
    count = split(tolower(text), found, " ")
    n = 0
    for (i = 1; i <= count; i++)
        if (found[i] ~ /^[a-z]/)
            word_at[++n] = found[i]
    if (n < 3)
        return
    words += n
    comments++
    if (word_at[1] in opener || (word_at[1] == "the" && word_at[2] == "same"))
        openers++
    for (i = 1; i <= n; i++)
        pronouns += word_at[i] in pronoun
}

{
    line = $0
    gsub(/"([^"\\]|\\.)*"/, "", line)
    while (line != "") {
        if (!inside) {
            at = index(line, "/*")
            if (!at)
                break
            line = substr(line, at + 2)
            inside = 1
            text = ""
        }
        at = index(line, "*/")
        if (!at) {
            text = text " " line
            break
        }
        text = text " " substr(line, 1, at - 1)
        line = substr(line, at + 2)
        inside = 0
        end_comment()
    }
}

END {
    printf "prose: %d words, %.0f pronouns and relatives in 1,000, %.1f %% of %d comments begin badly\n",
        words, 1000 * pronouns / words, 100 * openers / comments, comments
    exit 1000 * pronouns > 75 * words || 100 * openers > 8 * comments
}'
