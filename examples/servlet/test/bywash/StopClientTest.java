package bywash;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;

/**
 * Tests the conversation with a fake daemon, whose answers a real daemon hardly ever gives.
 * scripts/test-servlet runs it, with a folder for sockets as the argument and BYWASH_STOPD set to a
 * path in that folder.
 */
public final class StopClientTest {
    /** The time limit of a wait, in seconds. A longer wait fails the test. */
    private static final long PATIENCE = 20;

    private StopClientTest() {}

    public static void main(String[] folder) throws Exception {
        aDaemonThatTakesNobodyHoldsNobody(Path.of(folder[0], "full"));
        whoIsInterruptedEndsNobodysLease(Path.of(folder[0], "interrupted"));
        aDaemonThatDoesNotListenEndsTheConversation(Path.of(folder[0], "deaf"));
        aTextThatOnlyControlsATransactionIsKnown();
        // Both tests use the only conversation of this process.
        try (ServerSocketChannel daemon = desk(Path.of(System.getenv("BYWASH_STOPD")), 8)) {
            String[] answers = {"", ""};
            serve(daemon, order -> answers[order.startsWith("RELEASE") ? 1 : 0]);
            whatIsInDoubtIsClosed(answers);
            aRollbackOfARequestThatIsOverReachesTheDatabase(answers);
        }
        System.out.println("test-servlet: the conversation with the daemon holds");
        System.exit(0);
    }

    private static void aDaemonThatTakesNobodyHoldsNobody(Path socket) throws Exception {
        ServerSocketChannel daemon = desk(socket, 1);
        List<SocketChannel> wait = new ArrayList<>();
        try {
            for (boolean isTaken = true; isTaken; ) {
                SocketChannel one = SocketChannel.open(StandardProtocolFamily.UNIX);
                wait.add(one);
                one.configureBlocking(false);
                isTaken = one.connect(UnixDomainSocketAddress.of(socket));
            }
        } catch (IOException error) {
            // The daemon's queue is full.
        }
        StopClient stopd = new StopClient(socket);
        List<CompletableFuture<StopClient.Conversation>> all = new ArrayList<>();
        for (int thread = 0; thread < 4; thread++) {
            all.add(on(stopd::conversation));
        }
        for (var one : all) {
            check(one.get(PATIENCE, TimeUnit.SECONDS) == null, "it talks to a daemon that accepts no connection");
        }
        for (SocketChannel one : wait) {
            one.close();
        }
        daemon.close();
    }

    private static void whoIsInterruptedEndsNobodysLease(Path socket) throws Exception {
        try (ServerSocketChannel daemon = desk(socket, 8)) {
            serve(daemon, order -> "OK");
            StopClient stopd = new StopClient(socket);
            // The thread that begins the conversation may be interrupted too.
            Thread.currentThread().interrupt();
            StopClient.Conversation first = stopd.conversation();
            check(first != null && first.ask("LEASE r1 shop 1").orElse("").equals("OK"), "an interrupted one gets no lease");
            check(Thread.interrupted(), "it never learns that it was interrupted");
            // Interrupts at any point of the exchange.
            CompletableFuture<Boolean> asked = new CompletableFuture<>();
            Thread busy = new Thread(() -> {
                boolean isAnswered = true;
                for (int turn = 0; turn < 5000; turn++) {
                    isAnswered &= first.ask("LEASE r2 shop 2").isPresent();
                }
                asked.complete(isAnswered);
            });
            busy.start();
            while (busy.isAlive()) {
                busy.interrupt();
                Thread.onSpinWait();
            }
            check(asked.get(PATIENCE, TimeUnit.SECONDS), "an interrupted one is not answered");
            check(!first.isOver && stopd.conversation() == first, "the conversation is over, and with it all leases");
        }
    }

    private static void aDaemonThatDoesNotListenEndsTheConversation(Path socket) throws Exception {
        try (ServerSocketChannel daemon = desk(socket, 8)) {
            StopClient.Conversation talk = new StopClient(socket).conversation();
            check(talk != null, "there is no conversation");
            // The thread is interrupted the whole time, and must not wait longer than others.
            CompletableFuture<Boolean> asked = new CompletableFuture<>();
            Thread caller = new Thread(() -> asked.complete(talk.ask("LEASE r1 shop 1").isPresent()));
            caller.start();
            for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE); caller.isAlive(); ) {
                check(System.nanoTime() - end < 0, "it waits for ever");
                caller.interrupt();
            }
            check(!asked.get() && talk.isOver, "nobody has answered");
            // The daemon sees the end of the conversation.
            try (SocketChannel other = daemon.accept()) {
                check(Channels.newInputStream(other).readAllBytes().length > 0, "nothing was said");
            }
        }
    }

    /**
     * Checks the table in sdk/README.md: the consequence for the connection of each answer to a
     * release.
     */
    private static void whatIsInDoubtIsClosed(String[] answers) throws Exception {
        answers[0] = "OK";
        for (String good : List.of("OK", "ERR not_leased you have no such lease")) {
            answers[1] = good;
            check(run("UPDATE a").aborted == 0, "it is closed after " + good);
        }
        for (String doubt : List.of(
                "ERR taken a cancellation may still be under way on this connection: close it", "ERR malformed what",
                "STOPPED deadline")) {
            answers[1] = doubt;
            check(run("UPDATE a").aborted == 1, "it is lent again after " + doubt);
        }
    }

    private static void aTextThatOnlyControlsATransactionIsKnown() {
        for (String text : List.of("ROLLBACK", " /* a */ -- b\n# c\ncommit ;\n", "BEGIN", "begin;", "BEGIN WORK", "END", "ABORT",
                "START TRANSACTION READ ONLY", "SAVEPOINT a", "RELEASE SAVEPOINT a", "ROLLBACK TO a", "UNLOCK TABLES")) {
            check(LeasedConnection.isControl(text), text);
        }
        for (String text : List.of("", ";", "SELECT 1", "-- ROLLBACK", "ROLLBACKS", "START REPLICA", "COMMIT; SELECT 1", "BEGIN; SELECT 1",
                "BEGIN NOT ATOMIC SELECT SLEEP(9); END", "BEGIN /*!NOT ATOMIC*/ SELECT 1", "/*! SELECT 1; */ COMMIT",
                "/*" + "* /".repeat(100_000) + " COMMIT", " ".repeat(100_000) + "/**/".repeat(100_000))) {
            check(!LeasedConnection.isControl(text), text);
        }
    }

    private static void aRollbackOfARequestThatIsOverReachesTheDatabase(String[] answers) throws Exception {
        answers[0] = "STOPPED client_left";
        answers[1] = "OK";
        check(run("UPDATE a").texts.isEmpty(), "it begins although its request is over");
        check(run("ROLLBACK").texts.equals(List.of("ROLLBACK")), "the connection stays in its transaction");
    }

    /** The calls on a connection: the number of aborts, and the SQL of each executed statement. */
    private static final class Seen {
        int aborted;
        final List<String> texts = new ArrayList<>();
    }

    /** Runs one SQL statement for a request, on a connection of its own. */
    private static Seen run(String text) throws Exception {
        Seen seen = new Seen();
        Statement statement = proxy(Statement.class, (self, method, values) -> {
            if (method.getName().equals("executeUpdate")) {
                seen.texts.add((String) values[0]);
                return 1;
            }
            return null;
        });
        Connection connection = proxy(Connection.class, (self, method, values) -> {
            if (method.getName().equals("abort")) {
                seen.aborted++;
            }
            return method.getName().equals("createStatement") ? statement : null;
        });
        Connection leased = new LeasedConnection(connection, "shop", 7).proxy();
        try (Statement one = leased.createStatement()) {
            RequestFilter.work("r1", () -> {
                try {
                    one.executeUpdate(text);
                } catch (StoppedException error) {
                    // The request is over.
                } catch (SQLException error) {
                    throw new IllegalStateException(error);
                }
            });
        }
        return seen;
    }

    private static <T> T proxy(Class<T> kind, InvocationHandler handler) {
        return kind.cast(Proxy.newProxyInstance(StopClientTest.class.getClassLoader(), new Class<?>[] {kind}, handler));
    }

    private static ServerSocketChannel desk(Path socket, int queue) throws IOException {
        return ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(UnixDomainSocketAddress.of(socket), queue);
    }

    /** Accepts one connection, and answers each of its lines with {@code reply}. */
    private static void serve(ServerSocketChannel daemon, UnaryOperator<String> reply) {
        on(() -> {
            try (SocketChannel one = daemon.accept();
                    Scanner lines = new Scanner(Channels.newInputStream(one), StandardCharsets.US_ASCII);
                    var out = Channels.newOutputStream(one)) {
                while (lines.hasNextLine()) {
                    String[] line = lines.nextLine().split(" ", 2);
                    out.write((line[0] + " " + reply.apply(line[1]) + "\n").getBytes(StandardCharsets.US_ASCII));
                }
            }
            return null;
        });
    }

    private interface Work<T> {
        T run() throws Exception;
    }

    private static <T> CompletableFuture<T> on(Work<T> work) {
        CompletableFuture<T> done = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                done.complete(work.run());
            } catch (Exception error) {
                done.completeExceptionally(error);
            }
        });
        thread.setDaemon(true);
        thread.start();
        return done;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}
