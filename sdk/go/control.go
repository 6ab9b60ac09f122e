package bywash

// Texts that begin, end or divide a transaction, or give locks back: COMMIT as a statement of its own, on a sql.Conn.
//
// They go to the database as they are, whether their request is over or not, as sql.Tx's own do. A ROLLBACK that is
// refused as its request is over leaves its connection in a transaction, and so the pool lends it to the next one.

import (
	"slices"
	"strings"
)

// controls are the words that such statements begin with, each with those that may come second; any if it has none.
// BEGIN also begins a block of statements (MariaDB's BEGIN NOT ATOMIC), which may take long.
var controls = map[string][]string{
	"COMMIT": nil, "END": nil, "ROLLBACK": nil, "ABORT": nil, "SAVEPOINT": nil, "RELEASE": nil,
	"START": {"TRANSACTION"}, "UNLOCK": {"TABLES", "TABLE"},
	"BEGIN": {
		"", "WORK", "TRANSACTION", "ISOLATION", "READ", "DEFERRABLE", // PostgreSQL, MySQL
		"DEFERRED", "IMMEDIATE", "EXCLUSIVE", "CONCURRENT", // SQLite
	},
}

// isControl says whether a text does nothing else. In doubt it is not: then it is leased as any other.
func isControl(text string) bool {
	found := false
	for text = beyondComments(text); text != ""; text = beyondComments(text) {
		var statement string
		statement, text, _ = strings.Cut(text, ";")
		if strings.TrimSpace(statement) == "" {
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

// word is the one that a text begins with, in capitals, and what comes after it.
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

// beyondComments is a text without the blanks and comments in front. What MySQL runs (/*! … */, /*M! … */) is none.
func beyondComments(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(text, "--"), strings.HasPrefix(text, "#"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*") && !strings.HasPrefix(text, "/*!") && !strings.HasPrefix(text, "/*M!"):
			_, text, _ = strings.Cut(text[2:], "*/")
		default:
			return text
		}
	}
}
