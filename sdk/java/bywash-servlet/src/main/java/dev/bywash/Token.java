package dev.bywash;

import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;

/**
 * The state of a request. {@link RequestFilter} makes one for each request, and it belongs to the
 * thread that handles the request. Work on another thread belongs to the request only inside {@link
 * #call} or {@link #wrap}.
 *
 * <p>Any thread may use a token.
 */
public final class Token {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9._:-]{1,128}");
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final ThreadLocal<Token> CURRENT = new ThreadLocal<>();

    private final String request;
    private Reason reason;
    private boolean isDeferred;
    private boolean hasEnded;
    /** The client that has told the daemon of a lease of this request; null if none has. */
    private StopClient leasedWith;

    /** Makes a token with a new name of 16 hexadecimal digits. */
    public Token() {
        this(HexFormat.of().toHexDigits(RANDOM.nextLong()));
    }

    /**
     * Makes a token for the request with this name.
     *
     * @param request 1 to 128 letters, digits or any of {@code . _ : -}
     * @throws IllegalArgumentException if that is not a name
     */
    public Token(String request) {
        if (!isName(request)) {
            throw new IllegalArgumentException("not the name of a request: use 1 to 128 letters, digits or any of . _ : -");
        }
        this.request = request;
    }

    static boolean isName(String text) {
        return NAME.matcher(text).matches();
    }

    /**
     * Returns the token of the request that this thread works for.
     *
     * @return the token; null outside of a request
     */
    public static Token current() {
        return CURRENT.get();
    }

    /**
     * Returns the request's name.
     *
     * @return the name, also for the field {@code bywash-request} of calls to other services
     */
    public String request() {
        return request;
    }

    /**
     * Returns why the request is over.
     *
     * @return the reason; null if the request goes on
     */
    public synchronized Reason reason() {
        return reason;
    }

    /**
     * Throws an exception if the request is over. Each query checks that too.
     *
     * @throws TerminatedException if the request is over
     */
    public synchronized void checkpoint() {
        if (reason != null) {
            throw new TerminatedException(reason);
        }
    }

    /**
     * Makes the last checkpoint: from here on nothing ends the request, and its queries are not leased.
     *
     * @throws TerminatedException if the request is over
     */
    public synchronized void cancelTermination() {
        checkpoint();
        isDeferred = true;
    }

    /**
     * Ends the request before its handler is done. The daemon cancels the queries that this process
     * has leased for it. Has no effect on a request that has ended, or that nothing ends any more.
     *
     * @param why the reason
     */
    public void stop(Reason why) {
        Objects.requireNonNull(why, "a stop needs a reason");
        StopClient client;
        synchronized (this) {
            if (isOver()) {
                return;
            }
            reason = why;
            client = leasedWith;
        }
        if (client != null) {
            client.stop(request, why);
        }
    }

    /** Records that the handler is done. Later queries are not leased. */
    public synchronized void end() {
        hasEnded = true;
    }

    /** Returns the error for a request that the daemon has stopped; null if nothing ends it any more. */
    synchronized StoppedException stopped(Reason why) {
        if (!isOver()) {
            reason = why;
        }
        return reason == null ? null : new StoppedException(reason);
    }

    /** Returns whether the request may lease a connection, and records that this client leases it. */
    synchronized boolean leasesWith(StopClient client) {
        if (isOver()) {
            return false;
        }
        leasedWith = client;
        return true;
    }

    private boolean isOver() {
        return reason != null || isDeferred || hasEnded;
    }

    /**
     * Runs work of this request on the present thread.
     *
     * @param work the work
     * @param <T> type of its result
     * @return its result
     * @throws Exception the exception of the work
     */
    public <T> T call(Callable<T> work) throws Exception {
        return call(this, work);
    }

    /**
     * Runs work outside of any request: nothing cancels its queries.
     *
     * @param work the work
     * @param <T> type of its result
     * @return its result
     * @throws Exception the exception of the work
     */
    public static <T> T unleased(Callable<T> work) throws Exception {
        return call(null, work);
    }

    /**
     * Lets work on another thread belong to the request of this thread.
     *
     * @param work the work
     * @return the work to give to the other thread
     */
    public static Runnable wrap(Runnable work) {
        Token token = current();
        return () -> {
            Token before = enter(token);
            try {
                work.run();
            } finally {
                enter(before);
            }
        };
    }

    private static <T> T call(Token token, Callable<T> work) throws Exception {
        Token before = enter(token);
        try {
            return work.call();
        } finally {
            enter(before);
        }
    }

    /** Sets the token of this thread. Returns the one that it had. */
    static Token enter(Token token) {
        Token before = CURRENT.get();
        if (token == null) {
            CURRENT.remove();
        } else {
            CURRENT.set(token);
        }
        return before;
    }
}
