package bywash;

import java.io.BufferedReader;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * The conversation with the stop daemon (bywash sentry): lines over a socket, numbered, answered in any order. The
 * contract is in sdk/README.md, "Down to the query". One for each process; any thread may use it.
 *
 * <p>It is never needed: without a daemon a lease is one look at a clock, and one attempt to connect in 200 ms. An
 * answer that takes longer than 100 ms ends the conversation, and all leases that were made in it.
 */
public final class Sentry {
    private static final long ANSWER_WITHIN = 100;
    private static final long AGAIN_AFTER = TimeUnit.MILLISECONDS.toNanos(200);
    private static final Sentry THE_ONE = new Sentry();

    private final Path socket;
    private Conversation current;
    private long notBefore = System.nanoTime();

    private Sentry() {
        String named = System.getenv("BYWASH_SENTRY");
        socket = Path.of(named == null || named.isEmpty() ? "/run/bywash/sentry.sock" : named);
    }

    /** That of this process: at the socket of BYWASH_SENTRY, or at the usual one. */
    public static Sentry get() {
        return THE_ONE;
    }

    /** The one with the daemon; null if there is none, and it is not yet time to begin one. */
    synchronized Conversation conversation() {
        if (current != null && !current.isOver) {
            return current;
        }
        if (current != null) {
            current = null;
            notBefore = System.nanoTime() + AGAIN_AFTER;
        }
        if (System.nanoTime() - notBefore < 0) {
            return null;
        }
        try {
            current = new Conversation(SocketChannel.open(UnixDomainSocketAddress.of(socket)));
        } catch (IOException | UnsupportedOperationException error) {
            notBefore = System.nanoTime() + AGAIN_AFTER;
        }
        return current;
    }

    static final class Conversation {
        private final SocketChannel channel;
        private final Map<Long, CompletableFuture<String>> waiting = new ConcurrentHashMap<>();
        private long number;
        volatile boolean isOver;

        Conversation(SocketChannel channel) {
            this.channel = channel;
            Thread listener = new Thread(this::listen, "bywash-sentry");
            listener.setDaemon(true);
            listener.start();
        }

        /** What is answered, without the number; nothing if the conversation is over. */
        Optional<String> ask(String order) {
            CompletableFuture<String> answer = new CompletableFuture<>();
            try {
                say(order, answer);
                return Optional.of(answer.get(ANSWER_WITHIN, TimeUnit.MILLISECONDS));
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            } catch (Exception error) {
                // It was not sent, or not answered in time.
            }
            end();
            return Optional.empty();
        }

        private synchronized void say(String order, CompletableFuture<String> answer) throws IOException {
            number++;
            waiting.put(number, answer);
            ByteBuffer line = ByteBuffer.wrap((number + " " + order + "\n").getBytes(StandardCharsets.US_ASCII));
            while (line.hasRemaining()) {
                channel.write(line);
            }
        }

        private void listen() {
            var stream = Channels.newInputStream(channel);
            try (var lines = new BufferedReader(new InputStreamReader(stream, StandardCharsets.US_ASCII))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    int space = line.indexOf(' ');
                    CompletableFuture<String> answer = waiting.remove(Long.parseLong(line.substring(0, space)));
                    if (answer != null) {
                        answer.complete(line.substring(space + 1));
                    }
                }
            } catch (IOException | RuntimeException error) {
                // What cannot be understood is the end as well.
            }
            end();
        }

        private void end() {
            isOver = true;
            try {
                channel.close();
            } catch (IOException error) {
                // It has said all that it will.
            }
            waiting.values().forEach(answer -> answer.cancel(false));
        }
    }
}
