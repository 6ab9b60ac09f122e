package bywash

// Texts that begin, end or divide a transaction, or release locks: COMMIT as a statement of its own
// on a sql.Conn, for example.
//
// They go to the database unchanged whether their request is over or not, like those of sql.Tx. If
// a ROLLBACK were refused because its request is over, its connection would stay in a transaction,
// and the pool would lend it to the next request.

import (
	"slices"
	"strings"
)

// controls has the words that statements of transaction control begin with. For each, it has the
// words that may come second; nil allows any. BEGIN also begins a block of statements (MariaDB's
// BEGIN NOT ATOMIC), which may run for long. The words are the same in every language:
// sdk/conformance/statements.json.
var controls = map[string][]string{
	"COMMIT": nil, "END": nil, "ROLLBACK": nil, "ABORT": nil, "SAVEPOINT": nil, "RELEASE": nil,
	"START": {"TRANSACTION"}, "UNLOCK": {"TABLES", "TABLE"},
	"BEGIN": {
		"", "WORK", "TRANSACTION", "ISOLATION", "READ", "DEFERRABLE", // PostgreSQL, MySQL
		"DEFERRED", "IMMEDIATE", "EXCLUSIVE", "CONCURRENT", // SQLite
	},
}

// isControl returns whether a text contains only statements of transaction control. In doubt it
// returns false, and the text is leased like any other.
func isControl(text string) bool {
	found := false
	for text = beyondComments(text); text != ""; text = beyondComments(text) {
		var statement string
		statement, text, _ = strings.Cut(text, ";")
		if statement == "" {
			continue
		}
		first, rest := word(statement)
		seconds, isOne := controls[first]
		rest = beyondComments(rest)
		second, _ := word(rest)
		if !isOne || seconds != nil && (!slices.Contains(seconds, second) || second == "" && rest != "") {
			return false
		}
		found = true
	}
	return found
}

// word returns the word that a text begins with, in capitals, and the rest of the text.
func word(text string) (first, rest string) {
	end := strings.IndexFunc(text, func(letter rune) bool {
		return !(letter == '_' || letter >= '0' && letter <= '9' || letter >= 'a' && letter <= 'z' ||
			letter >= 'A' && letter <= 'Z' || letter > 127)
	})
	if end < 0 {
		end = len(text)
	}
	return strings.ToUpper(text[:end]), text[end:]
}

// beyondComments removes the blanks and comments in front of a text. Texts that MySQL executes (/*!
// … */, /*M! … */) are not comments, and neither is one that is not closed.
func beyondComments(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(text, "--"), strings.HasPrefix(text, "#"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*") && !strings.HasPrefix(text, "/*!") && !strings.HasPrefix(text, "/*M!"):
			_, rest, isClosed := strings.Cut(text[2:], "*/")
			if !isClosed {
				return text
			}
			text = rest
		default:
			return text
		}
	}
}
