#!/bin/sh
# Proves: no committed text names a place on somebody's machine or an e-mail address, or has spaces
# at the end of a line; no committed file is larger than 1 MiB.
set -eu
cd "$(dirname "$0")/.."
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || {
    echo "check_papers: not a git work tree, nothing to look at"
    exit 0
}
faults=0
# refuse WHAT PATTERN: lists where the extended regular expression occurs in tracked text files.
refuse() {
    if git --no-pager grep -nIE -e "$2" -- ':!tools/check_papers.sh' >&2; then
        echo "check_papers: $1, see above" >&2
        faults=$((faults + 1))
    fi
}
refuse "place on a machine" '(^|[^A-Za-z0-9_.}$)/-])/(work|root|home/[A-Za-z0-9_]+|Users|mnt)/'
refuse "place on a machine" '(^|[^A-Za-z0-9_.}$)/-])/tmp/[A-Za-z0-9_]'
refuse "e-mail address" '[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+\.[A-Za-z]{2,}'
refuse "space at the end of a line" '[[:blank:]]$'
large=$(git ls-files -z | xargs -0 du -k --apparent-size | awk '$1 > 1024')
if [ -n "$large" ]; then
    echo "check_papers: larger than 1 MiB (sizes in KiB): $large" >&2
    faults=$((faults + 1))
fi
[ "$faults" -eq 0 ] || exit 1
echo "check_papers: $(git ls-files | wc -l) files, no machine paths, no addresses, none above 1 MiB"
