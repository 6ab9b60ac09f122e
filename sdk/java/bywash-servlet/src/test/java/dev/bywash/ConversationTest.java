package dev.bywash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests the conversation with daemons that do not serve, and threads that are interrupted. */
final class ConversationTest {
    private static final Duration PATIENCE = Duration.ofMillis(100);

    @Test
    void aDaemonThatAcceptsNoConnectionBlocksNoThread(@TempDir Path folder) throws Exception {
        List<SocketChannel> waiting = new ArrayList<>();
        ServerSocketChannel daemon = listen(folder.resolve("s"), 1);
        try (daemon) {
            for (boolean isTaken = true; isTaken; ) {
                SocketChannel one = SocketChannel.open(StandardProtocolFamily.UNIX);
                waiting.add(one);
                one.configureBlocking(false);
                isTaken = connects(one, folder.resolve("s"));
            }
            StopClient client = new StopClient(folder.resolve("s"), PATIENCE);
            List<FutureTask<Conversation>> all = new ArrayList<>();
            for (int thread = 0; thread < 4; thread++) {
                all.add(start(client::conversation));
            }
            for (var one : all) {
                assertNull(one.get(FakeDaemon.PATIENCE.toSeconds(), TimeUnit.SECONDS));
            }
        } finally {
            for (SocketChannel one : waiting) {
                one.close();
            }
        }
    }

    private static boolean connects(SocketChannel channel, Path socket) {
        try {
            return channel.connect(UnixDomainSocketAddress.of(socket));
        } catch (IOException error) {
            // The daemon's queue is full.
            return false;
        }
    }

    @Test
    void anInterruptedThreadEndsNoLeaseOfOthers() throws Exception {
        try (FakeDaemon daemon = FakeDaemon.says("OK")) {
            // The thread that begins the conversation may be interrupted too.
            Thread.currentThread().interrupt();
            Conversation first = daemon.client.conversation();
            assertNotNull(first);
            assertEquals("OK", first.ask("LEASE r1 shop 1").orElse(""));
            assertTrue(Thread.interrupted(), "the thread does not learn that it was interrupted");
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
            assertTrue(asked.get(FakeDaemon.PATIENCE.toSeconds(), TimeUnit.SECONDS));
            assertFalse(first.isOver());
            assertSame(first, daemon.client.conversation());
        }
    }

    @Test
    void theThreadThatReadsAnswersInheritsNothing() throws Exception {
        InheritableThreadLocal<String> inherited = new InheritableThreadLocal<>();
        inherited.set("of a web application");
        try (FakeDaemon daemon = FakeDaemon.says("OK")) {
            CompletableFuture<String> answer = new CompletableFuture<>();
            var seen = answer.thenApply(text -> Thread.currentThread().getName() + ": " + inherited.get());
            daemon.client.conversation().send("LEASE r1 shop 1", answer);
            assertEquals("bywash-stopd: null", seen.get(FakeDaemon.PATIENCE.toSeconds(), TimeUnit.SECONDS));
        } finally {
            inherited.remove();
        }
    }

    @Test
    void aDaemonThatDoesNotAnswerEndsTheConversation(@TempDir Path folder) throws Exception {
        try (ServerSocketChannel daemon = listen(folder.resolve("s"), 8)) {
            Conversation talk = new StopClient(folder.resolve("s"), PATIENCE).conversation();
            assertNotNull(talk);
            // The thread is interrupted the whole time, and must not wait longer than others.
            CompletableFuture<Boolean> asked = new CompletableFuture<>();
            Thread caller = new Thread(() -> asked.complete(talk.ask("LEASE r1 shop 1").isPresent()));
            caller.start();
            for (long end = System.nanoTime() + FakeDaemon.PATIENCE.toNanos(); caller.isAlive(); ) {
                assertTrue(System.nanoTime() - end < 0, "it waits for ever");
                caller.interrupt();
            }
            assertFalse(asked.get());
            assertTrue(talk.isOver());
            // The daemon sees the end of the conversation.
            try (SocketChannel other = daemon.accept()) {
                assertTrue(Channels.newInputStream(other).readAllBytes().length > 0, "no line was sent");
            }
        }
    }

    private static ServerSocketChannel listen(Path socket, int queue) throws IOException {
        return ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(UnixDomainSocketAddress.of(socket), queue);
    }

    private static <T> FutureTask<T> start(Callable<T> work) {
        FutureTask<T> task = new FutureTask<>(work);
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        return task;
    }
}
