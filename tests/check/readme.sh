#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What README.md, the tutorials, the pages of languages and other pages show of programs is what the tests
# compile and run: every block of C, C++, Python and Fortran of every page. Links to files lead somewhere, and the table
# of settings is complete.
set -euo pipefail
declare -A compiled # "PAGE LANGUAGE"

shown()
{
    sed -n '/README begins here/,/README ends here/p' "docs/examples/$1.c" | sed '1d;$d'
}
diff <(shown cholesky && shown smooth) \
    <(sed -n '/^```c$/,/^```$/p' README.md | sed '/^```/d') ||
    { echo "README.md and docs/examples differ"; exit 1; }
compiled["README.md c"]=1

sed -n 's/^ *X([a-z_]*, "\(FILCH_[A-Z_]*\)", [A-Z]*, "\([^"]*\)".*/\1 \2/p' runtime/base/config.h |
    while read -r name default; do
        grep -qE "^\| \`$name\` \| ${default:+\`$default\`}" docs/concepts.md ||
            { echo "docs/concepts.md: no row for $name, default \"$default\""; exit 1; }
    done

# blocks PAGE LANGUAGE SUFFIX: each block of the page stands in one of the programs, line by line.
blocks()
{
    local page=$1 language=$2 suffix=$3 count=0 block='' is_inside= is_found program line
    while IFS= read -r line; do
        case $line in
        '```'"$language") is_inside=1 block='' ;;
        '```')
            [ -n "$is_inside" ] || continue
            is_found=
            for program in docs/examples/*."$suffix" docs/examples/*/*."$suffix"; do
                [ -e "$program" ] || continue
                [[ "$(<"$program")" != *"$block"* ]] || is_found=1
            done
            [ -n "$is_found" ] || { printf '%s: in no program:\n%s' "$page" "$block"; exit 1; }
            count=$((count + 1)) is_inside=
            ;;
        *) [ -z "$is_inside" ] || block+=$line$'\n' ;;
        esac
    done <"$page"
    [ $count -gt 0 ]
    compiled["$page $language"]=1
}
blocks docs/cpp.md cpp cpp
blocks docs/python.md python py
blocks docs/fortran.md fortran f90
blocks docs/beside-openmp-and-mpi.md c c
blocks docs/sparse-cholesky.md c c
blocks docs/cg.md cpp cpp
blocks docs/cholesky.md c c
blocks docs/cholesky.md cpp cpp
blocks docs/tutorial-gpu.md c c
blocks docs/cublas.md c c
blocks docs/cusparse.md c c
blocks docs/reading-the-report.md c c

# The C blocks of a tutorial, one after the other, are a program.
diff <(sed '1,/^$/d' docs/examples/heat.c) \
    <(awk '/^```c$/ { if (count++) print ""; is_inside = 1; next } /^```$/ { is_inside = 0 } is_inside' \
        docs/tutorial-cpu.md) ||
    { echo "docs/tutorial-cpu.md and docs/examples/heat.c differ"; exit 1; }
compiled["docs/tutorial-cpu.md c"]=1

# parts PAGE PROGRAM...: a program of tests/embed/pages includes each part of the page's blocks of C and C++.
parts()
{
    local page=$1 folder part
    shift
    folder=$(mktemp -d)
    tests/embed/pages/blocks.sh "$page" "$folder"
    for part in "$folder"/*; do
        grep -qxF "#include \"$(basename "$part")\"" "$@" ||
            { echo "$page: no program includes $(basename "$part"): $(head -n 1 "$part")"; exit 1; }
    done
    rm -r "$folder"
    compiled["$page c"]=1 compiled["$page cpp"]=1
}
parts docs/concepts.md tests/embed/pages/concepts.c tests/embed/pages/concepts_kernel.cpp
parts docs/extending.md tests/embed/pages/extending.c

# A block of another page, or of another language, is compiled nowhere. A block without a language has commands, and
# no lines that end as those of C do.
while read -r page number language; do
    case $language in
    c | cpp | python | fortran)
        [ -n "${compiled["$page $language"]-}" ] ||
            { echo "$page:$number: a block of $language that no test compiles"; exit 1; }
        ;;
    like-C) echo "$page:$number: looks like C, and its block names no language" && exit 1 ;;
    sh | text | output | sketch | json | none | -) ;;
    *) echo "$page:$number: a block of an unknown language, $language" && exit 1 ;;
    esac
done < <(find . -name '*.md' -not -path './build/*' -not -path './.git/*' | sed 's|^\./||' | sort | xargs awk '
    /^ *```/ && !is_inside { is_inside = 1; language = $0; sub(/^ *```/, "", language)
        print FILENAME, FNR, language == "" ? "-" : language; next }
    /^ *```/ { is_inside = 0; next }
    is_inside && language == "" && (/[;{] *(\/[*\/].*)?$/ || /^ *#include/) { print FILENAME, FNR, "like-C" }')

# The page shows all that the program marks, as one block.
marked=$(sed -n '/The page begins here/,/The page ends here/p' docs/examples/heat.cpp | sed '1d;$d')
[[ -n "$marked" && "$(<docs/cpp.md)" == *'```cpp'$'\n'"$marked"$'\n```'* ]] ||
    { echo "docs/cpp.md does not show all that docs/examples/heat.cpp marks"; exit 1; }

# The pages say how long the solvers are.
for each in cg.cpp:120 heat.cpp:100 cg.f90:150 cg.py:150; do
    lines=$(wc -l <"docs/examples/${each%:*}")
    [ "$lines" -le "${each#*:}" ] || { echo "docs/examples/${each%:*} has $lines lines"; exit 1; }
done

count=0
for page in README.md docs/*.md docs/rooms/*.md bindings/README.md $(find runtime -name README.md); do
    while read -r target; do
        count=$((count + 1))
        [ -e "$(dirname "$page")/$target" ] || { echo "$page: no such file: $target"; exit 1; }
    done < <(sed '/^ *```/,/^ *```/d' "$page" | grep -oE '\]\([^)#:]+(#[^)]*)?\)' | sed -E 's/^\]\(//; s/[#)].*$//')
done
echo "readme: the programs are the tested ones; $count links lead somewhere"
