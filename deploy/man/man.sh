#!/usr/bin/env bash
# Writes a program's manual page from what the program prints: man.sh PROGRAM VERSION SUMMARY [COMMAND...]
# Each COMMAND's help becomes a section of its own.
set -euo pipefail
program=$1 version=$2 summary=$3
shift 3
name=$(basename "$program")

# A help text as roff: options become tagged paragraphs, what is indented stays as it is.
roff() {
  awk '
    function escape(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); sub(/^[.'"'"']/, "\\\\\\&&", text); return text }
    /^usage: / { print ".PP\n.B " escape(substr($0, 8)); next }
    /^[a-z]+:$/ { print ".PP\n.I " escape($0); options = $0 == "options:"; next }
    options && /^ +-/ {
      text = $0; sub(/^ +/, "", text)
      at = match(text, /  +/)
      print ".TP\n.B " escape(at ? substr(text, 1, at - 1) : text)
      if (at) print escape(substr(text, at + RLENGTH))
      next
    }
    options && /^ +/ { text = $0; sub(/^ +/, "", text); print escape(text); next }
    /^ / { print ".br\n" escape($0); next }
    /^$/ { print ".PP"; next }
    { print escape($0) }'
}

printf '.TH %s 1 "" "DSNet %s"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n' "${name^^}" "$version" "$name" "$summary"
"$program" --help | roff
for command in "$@"; do
  printf '.SH %s\n' "${command^^}"
  "$program" "$command" --help | roff
done
printf '.SH EXIT STATUS\n0 on success, 1 on failure, 2 for wrong usage.\n'
