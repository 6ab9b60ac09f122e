package dev.bywash;

/**
 * Reports at a checkpoint that the request is over. It is unchecked, because Spring commits a
 * transaction that a checked exception leaves.
 */
public final class TerminatedException extends RuntimeException {
    private static final long serialVersionUID = 1L;
    /** The reason why the request is over. */
    public final Reason reason;

    TerminatedException(Reason reason) {
        super("bywash: the request is over: " + reason);
        this.reason = reason;
    }
}
