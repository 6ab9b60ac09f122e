package bywash;

import java.sql.SQLException;

/**
 * Reports that a query did not begin because its request is over. The connection is still usable.
 */
public final class StoppedException extends SQLException {
    private static final long serialVersionUID = 1L;
    /** The reason for the stop: client_left, ran_too_long or deadline. */
    public final String reason;

    StoppedException(String reason) {
        super("bywash: the request is over: " + reason, "57014");
        this.reason = reason;
    }
}
