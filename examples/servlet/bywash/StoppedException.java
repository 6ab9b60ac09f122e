package bywash;

import java.sql.SQLException;

/** The request that this query would have worked for is over: it did not begin. Its connection is good. */
public final class StoppedException extends SQLException {
    private static final long serialVersionUID = 1L;
    /** client_left, ran_too_long or deadline. */
    public final String reason;

    StoppedException(String reason) {
        super("bywash: the request is over: " + reason, "57014");
        this.reason = reason;
    }
}
