package bywash;

import java.io.IOException;
import java.net.ConnectException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The conversation with the stop daemon (bywash stopd): numbered lines over a socket, answered in
 * any order. The contract is in sdk/README.md, "Down to the query". Each process has one
 * conversation, and any thread may use it.
 *
 * <p>The daemon is optional. Without it, a lease costs one look at a clock, and one attempt to
 * connect in 200 ms. An answer that takes longer than 100 ms ends the conversation, and all leases
 * that were made in it.
 *
 * <p>The channel never blocks, for two reasons. A daemon that accepts no connection would block the
 * thread that connects, and all threads that wait for it. And if a thread is interrupted while it
 * is blocked in a channel, the channel is closed, which ends the leases of all threads.
 */
public final class StopClient {
    private static final long ANSWER_WITHIN = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long AGAIN_AFTER = TimeUnit.MILLISECONDS.toNanos(200);
    /** The maximum length of an answer in bytes, more than any answer has. */
    private static final int LONGEST = 4096;
    private static final StopClient THE_ONE = new StopClient(usual());

    private final Path socket;
    private Conversation current;
    private long notBefore = System.nanoTime();

    StopClient(Path socket) {
        this.socket = socket;
    }

    private static Path usual() {
        String named = System.getenv("BYWASH_STOPD");
        return Path.of(named == null || named.isEmpty() ? "/run/bywash-stopd/stopd.sock" : named);
    }

    /**
     * Returns this process's instance, for the socket in the environment variable BYWASH_STOPD or
     * the default socket.
     */
    public static StopClient get() {
        return THE_ONE;
    }

    /**
     * Returns the conversation with the daemon; null if there is none and the next attempt is not
     * yet due.
     */
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
            current = new Conversation(connect());
        } catch (IOException | UnsupportedOperationException error) {
            notBefore = System.nanoTime() + AGAIN_AFTER;
        }
        return current;
    }

    private SocketChannel connect() throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        try {
            channel.configureBlocking(false);
            // A running daemon accepts the connection at once.
            if (!channel.connect(UnixDomainSocketAddress.of(socket))) {
                throw new ConnectException("the stop daemon accepts no connection");
            }
            return channel;
        } catch (IOException | RuntimeException error) {
            channel.close();
            throw error;
        }
    }

    static final class Conversation {
        private final SocketChannel channel;
        private final Selector selector;
        private final Map<Long, CompletableFuture<String>> waiting = new ConcurrentHashMap<>();
        private long number;
        volatile boolean isOver;

        Conversation(SocketChannel channel) throws IOException {
            this.channel = channel;
            try {
                selector = Selector.open();
                channel.register(selector, SelectionKey.OP_READ);
            } catch (IOException error) {
                channel.close();
                throw error;
            }
            Thread listener = new Thread(this::listen, "bywash-stopd");
            listener.setDaemon(true);
            listener.start();
        }

        /**
         * Sends a command and waits for its answer. Returns the answer without its number; empty if
         * the conversation is over.
         */
        Optional<String> ask(String order) {
            CompletableFuture<String> answer = new CompletableFuture<>();
            try {
                say(order, answer);
                return Optional.of(hear(answer));
            } catch (IOException | ExecutionException | TimeoutException | CancellationException error) {
                // The line was not sent, or not answered in time.
                end();
                return Optional.empty();
            }
        }

        private synchronized void say(String order, CompletableFuture<String> answer) throws IOException {
            number++;
            waiting.put(number, answer);
            ByteBuffer line = ByteBuffer.wrap((number + " " + order + "\n").getBytes(StandardCharsets.US_ASCII));
            channel.write(line);
            if (line.hasRemaining()) {
                throw new IOException("the stop daemon does not read its messages");
            }
        }

        /**
         * Waits for the answer. If this thread is interrupted, the interrupt takes effect only
         * afterwards, because a missing answer would end all leases.
         */
        private static String hear(CompletableFuture<String> answer) throws ExecutionException, TimeoutException {
            long until = System.nanoTime() + ANSWER_WITHIN;
            boolean isInterrupted = false;
            try {
                while (true) {
                    try {
                        return answer.get(until - System.nanoTime(), TimeUnit.NANOSECONDS);
                    } catch (InterruptedException error) {
                        isInterrupted = true;
                    }
                }
            } finally {
                if (isInterrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }

        private void listen() {
            ByteBuffer heard = ByteBuffer.allocate(LONGEST);
            // The channel is closed completely only when its selector is.
            try (selector) {
                while (!isOver && heard.hasRemaining()) {
                    selector.select();
                    selector.selectedKeys().clear();
                    if (channel.read(heard) < 0) {
                        break;
                    }
                    understand(heard);
                }
            } catch (IOException | RuntimeException error) {
                // An answer that cannot be parsed also ends the conversation.
            } finally {
                end();
            }
        }

        /** Processes all complete lines that the daemon has sent, and keeps the rest. */
        private void understand(ByteBuffer heard) {
            String text = StandardCharsets.US_ASCII.decode(heard.flip()).toString();
            int from = 0;
            for (int end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
                String line = text.substring(from, end);
                from = end + 1;
                int space = line.indexOf(' ');
                CompletableFuture<String> answer = waiting.remove(Long.parseLong(line.substring(0, space)));
                if (answer != null) {
                    answer.complete(line.substring(space + 1));
                }
            }
            heard.position(from);
            heard.compact();
        }

        private void end() {
            isOver = true;
            try {
                channel.close();
            } catch (IOException error) {
                // The conversation is over in any case.
            }
            selector.wakeup();
            waiting.values().forEach(answer -> answer.cancel(false));
        }
    }
}
