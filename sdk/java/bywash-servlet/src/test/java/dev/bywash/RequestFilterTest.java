package dev.bywash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.servlet.AsyncContext;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Tests the filter in a real Tomcat, which goes on in other threads. */
final class RequestFilterTest {
    private static final List<String> R1 = List.of("r1");

    private static <T> T next(BlockingQueue<T> queue) throws InterruptedException {
        return queue.poll(FakeDaemon.PATIENCE.toNanos(), TimeUnit.NANOSECONDS);
    }

    @Test
    void aRequestThatIsDoneLeasesNothing() throws Exception {
        BlockingQueue<Token> seen = new LinkedBlockingQueue<>();
        try (FakeDaemon daemon = FakeDaemon.says("OK");
                Server server = new Server((request, response) -> seen.add(Token.current()), new RequestFilter())) {
            server.ask("GET", "/", "bywash-request", R1);
            new FakeDatabase(daemon.client, 7).query(next(seen));
            assertEquals(0, daemon.client.stats().leased());
        }
    }

    @Test
    void aRequestIsTheSameAfterADispatchAndEndsWithIt() throws Exception {
        BlockingQueue<Token> seen = new LinkedBlockingQueue<>();
        Server.Handler handler = (request, response) -> {
            seen.add(Token.current());
            if (seen.size() == 1) {
                request.startAsync().dispatch();
            }
        };
        try (FakeDaemon daemon = FakeDaemon.says("OK"); Server server = new Server(handler, new RequestFilter())) {
            assertEquals(200, server.ask("GET", "/", "bywash-request", List.of()).status());
            Token token = next(seen);
            assertEquals(token, next(seen));
            // A request that has ended leases nothing.
            new FakeDatabase(daemon.client, 7).query(token);
            assertEquals(0, daemon.client.stats().leased());
        }
        assertNull(Token.current());
    }

    @Test
    void anAsynchronousRequestThatTakesTooLongStopsItsQueries() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("OK");
                Server server = new Server((request, response) -> {
                    AsyncContext context = request.startAsync();
                    context.setTimeout(1);
                    new FakeDatabase(daemon.client, 7).query(Token.current());
                }, new RequestFilter())) {
            server.ask("GET", "/", "bywash-request", R1);
            assertEquals("LEASE r1 shop 7", daemon.next());
            assertEquals("STOP r1 deadline scope=own", daemon.next());
        }
    }

    @Test
    void anAsynchronousRequestWhoseClientHasLeftStopsItsQueries() throws Exception {
        BlockingQueue<AsyncContext> contexts = new LinkedBlockingQueue<>();
        BlockingQueue<Token> tokens = new LinkedBlockingQueue<>();
        try (FakeDaemon daemon = FakeDaemon.says("OK");
                Server server = new Server((request, response) -> {
                    AsyncContext context = request.startAsync();
                    context.setTimeout(0);
                    new FakeDatabase(daemon.client, 7).query(Token.current());
                    tokens.add(Token.current());
                    contexts.add(context);
                }, new RequestFilter())) {
            server.leave("/", "bywash-request", R1);
            assertEquals("LEASE r1 shop 7", daemon.next());
            AsyncContext context = next(contexts);
            Token token = next(tokens);
            // Tomcat notices a departure only when it writes.
            long end = System.nanoTime() + FakeDaemon.PATIENCE.toNanos();
            while (token.reason() == null && System.nanoTime() - end < 0) {
                write(context);
            }
            assertEquals("STOP r1 client_left scope=own", daemon.next());
        }
    }

    private static void write(AsyncContext context) {
        try {
            context.getResponse().getOutputStream().print("more");
            context.getResponse().flushBuffer();
        } catch (IOException | IllegalStateException error) {
            Thread.onSpinWait();
        }
    }

    @Test
    void theOuterOfTwoFiltersDecides() throws Exception {
        Server.Handler handler = (request, response) -> response.getWriter().print(Token.current().request());
        try (Server server = new Server(handler, new RequestFilter(false), new RequestFilter())) {
            assertTrue(server.ask("GET", "/", "bywash-request", R1).body().matches("[0-9a-f]{16}"));
        }
    }

    @Test
    void anAnswerOfTheHandlerStays() throws Exception {
        Server.Handler handler = (request, response) -> {
            Token.current().stop(Reason.CLIENT_LEFT);
            response.getWriter().print("mine");
        };
        try (Server server = new Server(handler, new RequestFilter())) {
            assertEquals("mine", server.ask("GET", "/", "bywash-request", R1).body());
        }
    }

    @Test
    void anAsynchronousRequestWhoseHandlerFailsIsAnswered() throws Exception {
        Server.Handler handler = (request, response) -> {
            request.startAsync().setTimeout(0);
            Token.current().stop(Reason.CLIENT_LEFT);
            Token.current().checkpoint();
        };
        try (Server server = new Server(handler, new RequestFilter())) {
            assertEquals(504, server.ask("GET", "/", "bywash-request", R1).status());
        }
    }

    @Test
    void anErrorOfARequestThatGoesOnIsTheServersMatter() throws Exception {
        Server.Handler handler = (request, response) -> {
            throw new IllegalStateException("a fault of the handler");
        };
        try (Server server = new Server(handler, new RequestFilter())) {
            assertEquals(500, server.ask("GET", "/", "bywash-request", R1).status());
        }
    }
}
