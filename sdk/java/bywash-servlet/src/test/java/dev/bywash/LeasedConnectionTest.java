package dev.bywash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
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
        for (String url : List.of("postgresql://a:5432/b?user=c,d", "postgresql:b", "mariadb://[::1]/shop", "mysql://a/b")) {
            assertTrue(LeasedDriver.canLease("jdbc:" + url), url);
        }
        for (String url : List.of("h2:mem:a", "postgresql://a,b/shop", "mysql://a,b/shop", "mysql:loadbalance://a/shop",
                "mariadb:sequential://a/shop", "mysql://a/shop?autoReconnect=true", "oracle:thin:@a:1521/shop")) {
            assertFalse(LeasedDriver.canLease("jdbc:" + url), url);
            String leased = "jdbc:bywash:shop:" + url;
            SQLException error = assertThrows(SQLException.class, () -> DriverManager.getConnection(leased));
            assertTrue(error.getMessage().contains("take jdbc:bywash:shop: out of the URL"), error.getMessage());
        }
    }

    @Test
    void theDriverRegistersItself() throws Exception {
        assertNotNull(DriverManager.getDriver("jdbc:bywash:shop:postgresql://127.0.0.1/shop"));
    }
}
