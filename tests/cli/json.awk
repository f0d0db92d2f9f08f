# Reads one JSON document and exits with 0 when it is one by RFC 8259, else with 1.
# With -v lines=1 every line of the input is a document of its own.

function fail(what) { print "not JSON at character " at ": " what > "/dev/stderr"; bad = 1; exit 1 }

function blank() { while (at <= n && index(" \t\n\r", substr(text, at, 1))) at++ }

function string(    c) {
    if (substr(text, at, 1) != "\"") fail("expected a string")
    for (at++; at <= n; at++) {
        c = substr(text, at, 1)
        if (c == "\"") { at++; return }
        if (c < " ") fail("a control character in a string")
        if (c == "\\") {
            at++
            c = substr(text, at, 1)
            if (c == "u") {
                if (substr(text, at + 1, 4) !~ /^[0-9a-fA-F][0-9a-fA-F][0-9a-fA-F][0-9a-fA-F]$/)
                    fail("a bad \\u")
                at += 4
            } else if (!index("\"\\/bfnrt", c)) fail("a bad escape")
        }
    }
    fail("a string without end")
}

function number(    word) {
    word = substr(text, at, 40)
    if (!match(word, /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/)) fail("expected a value")
    at += RLENGTH
}

function members(close_with, has_keys) {
    at++
    blank()
    if (substr(text, at, 1) == close_with) { at++; return }
    while (1) {
        blank()
        if (has_keys) {
            string()
            blank()
            if (substr(text, at, 1) != ":") fail("expected :")
            at++
        }
        value()
        blank()
        if (substr(text, at, 1) == close_with) { at++; return }
        if (substr(text, at, 1) != ",") fail("expected , or " close_with)
        at++
    }
}

function value(    c) {
    blank()
    c = substr(text, at, 1)
    if (c == "{") members("}", 1)
    else if (c == "[") members("]", 0)
    else if (c == "\"") string()
    else if (substr(text, at, 4) == "true" || substr(text, at, 4) == "null") at += 4
    else if (substr(text, at, 5) == "false") at += 5
    else number()
}

function document(all) {
    text = all
    n = length(text)
    at = 1
    value()
    blank()
    if (at <= n) fail("something behind the document")
}

lines { document($0); next }
{ whole = whole $0 "\n" }
END { if (!bad && !lines) document(whole); exit bad }
