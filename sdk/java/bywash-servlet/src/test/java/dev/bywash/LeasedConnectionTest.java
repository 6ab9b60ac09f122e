package dev.bywash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.util.List;
import java.util.Properties;
import org.junit.jupiter.api.Test;

/** Tests what is JDBC's own. sdk/conformance has the cases that hold for every language. */
final class LeasedConnectionTest {
    @Test
    void aRollbackOfARequestThatIsOverReachesTheDatabase() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("STOPPED client_left")) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            new Token("r1").call(() -> {
                Statement statement = database.leased.createStatement();
                assertThrows(StoppedException.class, () -> statement.executeUpdate("UPDATE a"));
                return statement.executeUpdate("ROLLBACK");
            });
            assertEquals(List.of("ROLLBACK"), database.texts);
        }
    }

    @Test
    void theRowsOfARequestHoldTheLeaseUntilAllAreClosed() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("OK")) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            Token token = new Token("r1");
            var first = database.query(token);
            var second = database.query(token);
            first.close();
            first.close();
            assertEquals("LEASE r1 shop 7", daemon.next());
            assertFalse(daemon.hasRead());
            second.close();
            assertEquals("RELEASE r1 shop 7", daemon.next());
        }
    }

    @Test
    void anotherRequestOnTheConnectionHasALeaseOfItsOwn() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("OK")) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            var rows = database.query(new Token("r1"));
            database.query(new Token("r2"));
            // The rows of the first one have no hold on the second one's lease.
            rows.close();
            database.leased.commit();
            for (String line : List.of("LEASE r1", "RELEASE r1", "LEASE r2", "RELEASE r2")) {
                assertEquals(line + " shop 7", daemon.next());
            }
        }
    }

    @Test
    void closingAStatementLeavesTheLeasesOfOthers() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("OK")) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            Token token = new Token("r1");
            var rows = database.query(token);
            Statement other = database.leased.createStatement();
            token.call(() -> other.executeQuery("SELECT 2"));
            other.close();
            other.close();
            assertEquals("LEASE r1 shop 7", daemon.next());
            assertFalse(daemon.hasRead());
            rows.close();
            assertEquals("RELEASE r1 shop 7", daemon.next());
        }
    }

    @Test
    void aStatementThatRunsAgainGivesUpItsEarlierRows() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("OK")) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            Token token = new Token("r1");
            Statement statement = database.leased.createStatement();
            token.call(() -> statement.executeQuery("SELECT 1"));
            var second = token.call(() -> statement.executeQuery("SELECT 2"));
            assertEquals("LEASE r1 shop 7", daemon.next());
            assertFalse(daemon.hasRead());
            second.close();
            assertEquals("RELEASE r1 shop 7", daemon.next());
        }
    }

    @Test
    void aTransactionInDoubtEndsBeforeItsConnectionIsAborted() throws Exception {
        try (FakeDaemon daemon = new FakeDaemon(FakeDaemon.PATIENCE, (number, line) ->
                number + (line.startsWith("LEASE") ? " OK\n" : " ERR taken it is being cancelled\n"))) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            database.isAutoCommit = false;
            Token token = new Token("r1");
            database.query(token).close();
            // The rest of the transaction runs without a lease.
            database.query(token);
            database.leased.rollback((Savepoint) null);
            assertEquals(0, database.aborted);
            database.leased.commit();
            assertEquals(1, database.aborted);
            assertEquals(1, daemon.client.stats().leased());
            // The pool lends a connection in a transaction if it does not roll back.
            FakeDatabase lent = new FakeDatabase(daemon.client, 8);
            lent.isAutoCommit = false;
            lent.query(token).close();
            SQLException error = assertThrows(SQLException.class, () -> lent.query(new Token("r2")));
            assertEquals("08003", error.getSQLState());
            assertEquals(1, lent.aborted);
        }
    }

    @Test
    void aRequestThatNothingEndsGivesUpTheLeaseOfItsOpenRows() throws Exception {
        for (boolean isDone : List.of(true, false)) {
            try (FakeDaemon daemon = FakeDaemon.says("OK")) {
                FakeDatabase database = new FakeDatabase(daemon.client, 7);
                Token token = new Token("r1");
                database.query(token);
                if (isDone) {
                    token.end();
                } else {
                    token.cancelTermination();
                }
                database.query(token);
                assertEquals("LEASE r1 shop 7", daemon.next());
                assertEquals("RELEASE r1 shop 7", daemon.next());
                assertFalse(daemon.hasRead());
            }
        }
    }

    @Test
    void aSlowCancellationEndsWithTheReasonOfTheRequest() throws Exception {
        try (FakeDaemon daemon = new FakeDaemon(FakeDaemon.PATIENCE, (number, line) -> number + switch (line) {
            case "LEASE r1 shop 7" -> " OK\n";
            case "LEASE r1 self 1" -> " STOPPED client_left\n";
            default -> " ERR taken it is being cancelled\n";
        })) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            var rows = database.query(new Token("r1"));
            database.error = new SQLException("canceling statement due to user request", "57014");
            assertEquals(Reason.CLIENT_LEFT, assertThrows(StoppedException.class, rows::next).reason);
            assertEquals(1, database.aborted);
        }
    }

    @Test
    void aQuestionAfterASlowCancellationLeavesNoLease() throws Exception {
        try (FakeDaemon daemon = new FakeDaemon(FakeDaemon.PATIENCE, (number, line) ->
                number + (line.equals("RELEASE r1 shop 7") ? " ERR taken it is being cancelled\n" : " OK\n"))) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            var rows = database.query(new Token("r1"));
            database.error = new SQLException("canceling statement due to user request", "57014");
            assertSame(database.error, assertThrows(SQLException.class, rows::next));
            for (String line : List.of("LEASE r1 shop 7", "RELEASE r1 shop 7", "LEASE r1 self 1", "RELEASE r1 self 1")) {
                assertEquals(line, daemon.next());
            }
            assertEquals(1, daemon.client.stats().spoiled());
        }
    }

    @Test
    void aCheckpointThrowsAnUncheckedException() {
        Token token = new Token();
        assertThrows(NullPointerException.class, () -> token.stop(null));
        assertNull(token.reason());
        token.stop(Reason.DEADLINE);
        assertEquals(Reason.DEADLINE, assertThrows(TerminatedException.class, token::cancelTermination).reason);
        // Spring commits a transaction that a checked exception leaves.
        assertTrue(RuntimeException.class.isAssignableFrom(TerminatedException.class));
    }

    @Test
    void anObjectEqualsItselfAlone() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("OK")) {
            FakeDatabase database = new FakeDatabase(daemon.client, 7);
            assertTrue(List.of(database.leased).contains(database.leased));
            assertFalse(database.leased.equals(new FakeDatabase(daemon.client, 7).leased));
        }
    }

    @Test
    void workOnAnotherThreadBelongsToTheRequestIfItIsWrapped() throws Exception {
        Token token = new Token("r1");
        Token[] seen = new Token[2];
        Runnable plain = () -> seen[0] = Token.current();
        Runnable wrapped = token.call(() -> Token.wrap(() -> seen[1] = Token.current()));
        for (Runnable work : List.of(plain, wrapped)) {
            Thread thread = new Thread(work);
            thread.start();
            thread.join();
        }
        assertNull(seen[0]);
        assertEquals(token, seen[1]);
        assertNull(token.call(() -> Token.unleased(Token::current)));
    }

    @Test
    void onlyAConnectionThatKeepsItsNumberCanBeLeased() {
        Properties none = new Properties();
        for (String url : List.of("mysql://a/b?autoReconnect=false", "postgresql://a:5432/b?user=c,d",
                "postgresql:b", "mariadb://[::1]/shop", "mysql://a/b")) {
            assertTrue(LeasedDriver.canLease("jdbc:" + url, none), url);
        }
        for (String url : List.of("h2:mem:a", "postgresql://a,b/shop", "mysql://a,b/shop", "mysql:loadbalance://a/shop",
                "mariadb:sequential://a/shop", "mysql://a/shop?autoReconnect=true", "mysql://a/shop?x=1&autoreconnect=yes",
                "mysql://address=(host=a)(autoReconnect=true)/shop", "postgresql:///shop?PGHOST=a,b",
                "oracle:thin:@a:1521/shop")) {
            assertFalse(LeasedDriver.canLease("jdbc:" + url, none), url);
            String leased = "jdbc:bywash:shop:" + url;
            SQLException error = assertThrows(SQLException.class, () -> DriverManager.getConnection(leased));
            assertTrue(error.getMessage().contains("take jdbc:bywash:shop: out of the URL"), error.getMessage());
        }
        for (String name : List.of("autoReconnect", "autoReconnectForPools", "PGHOST", "service")) {
            Properties properties = new Properties();
            properties.setProperty(name, "true");
            SQLException error = assertThrows(SQLException.class,
                    () -> new LeasedDriver().connect("jdbc:bywash:shop:postgresql://127.0.0.1/shop", properties));
            assertTrue(error.getMessage().contains("take jdbc:bywash:shop: out of the URL"), name);
        }
    }

    @Test
    void theDriverRegistersItself() throws Exception {
        assertNotNull(DriverManager.getDriver("jdbc:bywash:shop:postgresql://127.0.0.1/shop"));
    }
}
