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
 * under way. Then the connection is aborted, and its pool discards it.
 */
final class Lease {
    private final Connection connection;
    private final StopClient client;
    private final String words;
    /** Protects the lease. With a monitor, a virtual thread that waits for the daemon would keep its carrier thread. */
    private final ReentrantLock lock = new ReentrantLock();
    /** The present lease; null if there is none. */
    private Grant current;

    Lease(Connection connection, StopClient client, String database, long number) {
        this.connection = connection;
        this.client = client;
        this.words = " " + database + " " + number;
    }

    /** A lease in one conversation, for one request. */
    static final class Grant {
        private final Conversation talk;
        private final Token token;
        private final boolean isAnswered;
        /** The number of running queries and open result sets. */
        private int holds = 1;
        private boolean isReleased;

        private Grant(Conversation talk, Token token, boolean isAnswered) {
            this.talk = talk;
            this.token = token;
            this.isAnswered = isAnswered;
        }
    }

    /**
     * Leases the connection for a query of the request of this thread. Returns null if the query
     * runs without a lease.
     *
     * @throws StoppedException if the request is over
     * @throws SQLException if another client of the daemon has leased the connection
     */
    Grant begin() throws SQLException {
        Token token = Token.current();
        lock.lock();
        try {
            if (current != null && current.token != token) {
                release();
            }
            if (token == null) {
                client.count(StopClient.Count.UNNAMED);
                return null;
            }
            refuse(token);
            if (current != null) {
                current.holds++;
                return current;
            }
            Conversation talk = client.conversation();
            if (talk == null) {
                client.count(StopClient.Count.UNREACHABLE);
                return null;
            }
            if (token.leasesWith(client)) {
                understand(talk, token);
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
    private void understand(Conversation talk, Token token) throws SQLException {
        Optional<String> said = talk.ask("LEASE " + token.request() + words);
        String answer = said.orElse("");
        if (answer.isEmpty()) {
            // The daemon may have read the line.
            client.count(StopClient.Count.UNREACHABLE);
            current = new Grant(talk, token, false);
        } else if (answer.equals("OK")) {
            client.count(StopClient.Count.LEASED);
            current = new Grant(talk, token, true);
        } else if (answer.startsWith("ERR taken")) {
            client.count(StopClient.Count.TAKEN);
            connection.abort(Runnable::run);
            throw new SQLRecoverableException("bywash: another client of the stop daemon has leased the connection", "08003");
        } else {
            Optional<StoppedException> over = StopClient.stopped(answer).map(token::stopped);
            if (over.isPresent()) {
                client.count(StopClient.Count.STOPPED);
                throw over.get();
            }
            client.refused(StopClient.Command.LEASE, answer);
        }
    }

    private void refuse(Token token) throws StoppedException {
        try {
            token.checkpoint();
        } catch (StoppedException error) {
            client.count(StopClient.Count.STOPPED);
            throw error;
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
            String answer = grant.talk.ask("RELEASE " + grant.token.request() + words).orElse("");
            grant.isReleased = grant.isAnswered && (answer.equals("OK") || answer.startsWith("ERR not_leased"));
            if (!grant.isReleased) {
                client.count(StopClient.Count.SPOILED);
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
    SQLException explain(Grant grant, SQLException error) throws SQLException {
        // PostgreSQL's query_canceled, and MariaDB's and MySQL's ER_QUERY_INTERRUPTED.
        if (grant == null || !("57014".equals(error.getSQLState()) || error.getErrorCode() == 1317)) {
            return error;
        }
        lock.lock();
        try {
            if (grant == current) {
                release();
            }
            if (grant.isReleased && grant.token.leasesWith(client)) {
                ask(grant);
            }
        } finally {
            lock.unlock();
        }
        try {
            grant.token.checkpoint();
            return error;
        } catch (StoppedException over) {
            over.initCause(error);
            return over;
        }
    }

    /** Asks the daemon by another lease whether the request was stopped: a gateway may have told it. */
    private void ask(Grant grant) throws SQLException {
        String answer = grant.talk.ask("LEASE " + grant.token.request() + words).orElse("");
        Optional<Reason> reason = StopClient.stopped(answer);
        if (reason.isPresent()) {
            grant.token.stopped(reason.get());
        } else if (answer.isEmpty() || answer.equals("OK")) {
            current = new Grant(grant.talk, grant.token, !answer.isEmpty());
            release();
        }
    }
}
