package dev.bywash;

import java.sql.SQLException;

/**
 * Reports that a request is over: a query of it did not begin, or was cancelled. The connection is
 * still usable.
 */
public final class StoppedException extends SQLException {
    private static final long serialVersionUID = 1L;
    /** The reason why the request is over. */
    public final Reason reason;

    StoppedException(Reason reason) {
        super("bywash: the request is over: " + reason, "57014");
        this.reason = reason;
    }
}
