package dev.bywash;

import java.util.Locale;
import java.util.Optional;

/** The reason why a request is over before its handler is done. */
public enum Reason {
    /** The request has run for as long as it may. */
    RAN_TOO_LONG,
    /** The time that its caller allowed is over. */
    DEADLINE,
    /** The client has closed the connection. */
    CLIENT_LEFT;

    private final String word = name().toLowerCase(Locale.ROOT);

    /** Returns the word for this reason in lines to the daemon, such as {@code client_left}. */
    @Override
    public String toString() {
        return word;
    }

    static Optional<Reason> of(String word) {
        for (Reason reason : values()) {
            if (reason.word.equals(word)) {
                return Optional.of(reason);
            }
        }
        return Optional.empty();
    }
}
