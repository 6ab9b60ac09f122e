package dev.bywash;

import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLRecoverableException;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The lease of a connection. It begins with the first query of a request and ends with the last
 * one. The contract is in sdk/README.md, "Down to the query".
 *
 * <p>If it is uncertain whether a lease has ended, a cancellation that was aimed at it may still be
 * under way. Then the connection is spoiled: it is aborted, and its pool discards it. The request
 * that holds it may still end its transaction before.
 */
final class Lease {
    private final Connection connection;
    private final StopClient client;
    /** The database's name and the connection's number, in lines to the daemon. */
    private final String target;
    /** Protects the lease. With a monitor, a virtual thread that waits for the daemon would keep its carrier thread. */
    private final ReentrantLock lock = new ReentrantLock();
    /** The present lease; null if there is none. */
    private Grant current;
    /** The request during which the connection was spoiled; null if the connection may be lent again. */
    private Token spoiledBy;

    Lease(Connection connection, StopClient client, String database, long number) {
        this.connection = connection;
        this.client = client;
        this.target = database + " " + number;
    }

    /** A lease in one conversation, for one request. */
    static final class Grant {
        private final Conversation conversation;
        private final Token token;
        private final String line;
        private final boolean isAnswered;
        /** The number of running queries and open result sets. */
        private int holds = 1;
        private boolean isReleased;

        private Grant(Conversation conversation, Token token, String target, boolean isAnswered) {
            this.conversation = conversation;
            this.token = token;
            this.line = token.request() + " " + target;
            this.isAnswered = isAnswered;
        }
    }

    /**
     * Leases the connection for a query of the request of this thread. Returns null if the query
     * runs without a lease.
     *
     * @throws StoppedException if the request is over
     * @throws SQLException if another client of the daemon has leased the connection, or if another
     *     request has left it spoiled in a transaction
     */
    Grant begin() throws SQLException {
        Token token = Token.current();
        lock.lock();
        try {
            // A request that nothing ends any more may write, also while its earlier rows are open.
            if (current != null && (current.token != token || !token.leasesWith(client))) {
                release();
            }
            if (spoiledBy != null && spoiledBy != token) {
                connection.abort(Runnable::run);
                throw closed("a cancellation may be under way at the connection");
            }
            if (token == null) {
                client.count(StopClient.Count.UNNAMED);
                return null;
            }
            refuse(token);
            if (spoiledBy != null) {
                return null;
            }
            if (current != null) {
                current.holds++;
                return current;
            }
            Conversation conversation = client.conversation();
            if (conversation == null) {
                client.count(StopClient.Count.UNREACHABLE);
                return null;
            }
            if (token.leasesWith(client)) {
                requestLease(conversation, token);
            }
            try {
                // The request may have come to its end meanwhile.
                refuse(token);
            } catch (StoppedException error) {
                release();
                throw error;
            }
            return current;
        } finally {
            lock.unlock();
        }
    }

    /** Asks for the lease, and does what follows from the answer. */
    private void requestLease(Conversation conversation, Token token) throws SQLException {
        String answer = conversation.ask("LEASE " + token.request() + " " + target).orElse("");
        if (answer.isEmpty()) {
            // The daemon may have read the line.
            client.count(StopClient.Count.UNREACHABLE);
            current = new Grant(conversation, token, target, false);
        } else if (answer.equals("OK")) {
            client.count(StopClient.Count.LEASED);
            current = new Grant(conversation, token, target, true);
        } else if (answer.startsWith("ERR taken")) {
            client.count(StopClient.Count.TAKEN);
            connection.abort(Runnable::run);
            throw closed("another client of the stop daemon has leased the connection");
        } else {
            Optional<StoppedException> over = StopClient.stopped(answer).map(token::stopped);
            if (over.isPresent()) {
                client.count(StopClient.Count.STOPPED);
                throw over.get();
            }
            client.refused(StopClient.Command.LEASE, answer);
        }
    }

    private static SQLException closed(String why) {
        return new SQLRecoverableException("bywash: " + why, "08003");
    }

    private void refuse(Token token) throws StoppedException {
        Reason reason = token.reason();
        if (reason != null) {
            client.count(StopClient.Count.STOPPED);
            throw new StoppedException(reason);
        }
    }

    /** Ends the hold of a query or of its rows. The last one releases the lease. */
    void end(Grant grant) throws SQLException {
        lock.lock();
        try {
            if (grant != null && grant == current) {
                grant.holds--;
                if (grant.holds == 0) {
                    release();
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /** Releases the present lease, if there is one. */
    void release() throws SQLException {
        lock.lock();
        try {
            if (current == null) {
                return;
            }
            Grant grant = current;
            current = null;
            String answer = grant.conversation.ask("RELEASE " + grant.line).orElse("");
            grant.isReleased = grant.isAnswered && (answer.equals("OK") || answer.startsWith("ERR not_leased"));
            if (!grant.isReleased && spoiledBy == null) {
                client.count(StopClient.Count.SPOILED);
                spoiledBy = grant.token;
                if (!connection.isClosed() && connection.getAutoCommit()) {
                    connection.abort(Runnable::run);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /** Aborts a spoiled connection after the end of its transaction. */
    void abortIfSpoiled() throws SQLException {
        lock.lock();
        try {
            if (spoiledBy != null) {
                connection.abort(Runnable::run);
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns the error of a query that has failed: that of a request that is over, if the daemon
     * has cancelled the query for this reason, or else the driver's.
     */
    SQLException errorOf(Grant grant, SQLException error) throws SQLException {
        // PostgreSQL's query_canceled, and MariaDB's and MySQL's ER_QUERY_INTERRUPTED.
        if (grant == null || !("57014".equals(error.getSQLState()) || error.getErrorCode() == 1317)) {
            return error;
        }
        lock.lock();
        try {
            if (grant == current) {
                release();
            }
            if (grant.token.leasesWith(client)) {
                askForReason(grant);
            }
        } finally {
            lock.unlock();
        }
        Reason reason = grant.token.reason();
        if (reason == null) {
            return error;
        }
        StoppedException over = new StoppedException(reason);
        over.initCause(error);
        return over;
    }

    /**
     * Asks the daemon by another lease whether the request was stopped: a gateway may have told it.
     * While a cancellation is under way, the daemon refuses each lease of the connection. Then the
     * question names work in this process.
     */
    private void askForReason(Grant grant) throws SQLException {
        String asked = grant.isReleased ? target : "self " + client.nextNumber();
        String answer = grant.conversation.ask("LEASE " + grant.token.request() + " " + asked).orElse("");
        Optional<Reason> reason = StopClient.stopped(answer);
        if (reason.isPresent()) {
            grant.token.stopped(reason.get());
        } else if (answer.isEmpty() || answer.equals("OK")) {
            current = new Grant(grant.conversation, grant.token, asked, !answer.isEmpty());
            release();
        }
    }
}
