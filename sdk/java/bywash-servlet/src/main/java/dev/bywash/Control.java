package dev.bywash;

import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Recognises statements that only begin, end or divide a transaction, or unlock tables. Such
 * statements are not leased, and reach the database even if their request is over. Otherwise the
 * pool would lend a connection that is still in a transaction.
 */
final class Control {
    private static final Set<String> ANY = Set.of();
    /**
     * The words that such statements begin with, and those that may come second. BEGIN also begins a
     * block of statements (MariaDB's BEGIN NOT ATOMIC), which may run for long. It is equal in every
     * language: sdk/conformance/statements.json.
     */
    private static final Map<String, Set<String>> WORDS = Map.of(
            "COMMIT", ANY, "END", ANY, "ROLLBACK", ANY, "ABORT", ANY, "SAVEPOINT", ANY, "RELEASE", ANY,
            "START", Set.of("TRANSACTION"),
            "UNLOCK", Set.of("TABLES", "TABLE"),
            "BEGIN", Set.of("", "WORK", "TRANSACTION", "ISOLATION", "READ", "DEFERRABLE",
                    "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "CONCURRENT"));
    /**
     * Matches one blank or comment: an expression for all would backtrack over all combinations.
     * Texts that MySQL executes ({@code /*! … *}{@code /}) are not comments.
     */
    private static final Pattern BLANK = Pattern.compile(
            "[ \\t\\r\\n\\f\\x0B]+|--[^\\n]*|#[^\\n]*|/\\*(?!M?!).*?\\*/", Pattern.DOTALL);
    private static final Pattern WORD = Pattern.compile("[A-Za-z0-9_\\x{80}-\\x{10FFFF}]*");

    private Control() {}

    /** Returns whether all statements of a text are of this kind, and there is one. */
    static boolean isControl(String text) {
        if (text == null) {
            return false;
        }
        boolean isControl = false;
        int begin = skipBlanks(text, 0);
        while (begin < text.length()) {
            int semicolon = text.indexOf(';', begin);
            int end = semicolon < 0 ? text.length() : semicolon;
            if (begin < end) {
                if (!controls(text.substring(begin, end))) {
                    return false;
                }
                isControl = true;
            }
            begin = skipBlanks(text, Math.min(end + 1, text.length()));
        }
        return isControl;
    }

    private static boolean controls(String statement) {
        String first = word(statement, 0);
        Set<String> seconds = WORDS.get(first);
        if (seconds == null || seconds.isEmpty()) {
            return seconds != null;
        }
        int at = skipBlanks(statement, first.length());
        String second = word(statement, at);
        // Anything else than a word, such as a parenthesis, is not one of these words either.
        return seconds.contains(second) && (!second.isEmpty() || at == statement.length());
    }

    /** Returns the first place from {@code at} on that is not in a blank or a comment. */
    private static int skipBlanks(String text, int at) {
        Matcher blank = BLANK.matcher(text);
        int place = at;
        while (blank.region(place, text.length()).lookingAt()) {
            place = blank.end();
        }
        return place;
    }

    private static String word(String text, int at) {
        Matcher word = WORD.matcher(text);
        return word.region(at, text.length()).lookingAt() ? word.group().toUpperCase(Locale.ROOT) : "";
    }
}
