package dev.bywash;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;

/**
 * A conversation with the stop daemon: numbered lines over a socket, answered in any order. The
 * contract is in sdk/README.md, "Down to the query". An answer that takes too long, or that is not
 * one, ends the conversation, and all leases that were made in it.
 *
 * <p>The channel never blocks, for two reasons. A daemon that accepts no connection would block the
 * thread that connects, and all threads that wait for it. And if a thread is interrupted while it
 * is blocked in a channel, the channel is closed, which ends the leases of all threads.
 */
final class Conversation {
    /** The maximum length of an answer in bytes, more than any answer has. */
    private static final int LONGEST = 4096;
    private static final Pattern ANSWER = Pattern.compile("(?:OK|ERR)(?: .*)?|STOPPED (?:ran_too_long|deadline|client_left)");

    private final SocketChannel channel;
    private final Selector selector;
    private final long patience;
    private final Map<Long, CompletableFuture<String>> waiting = new ConcurrentHashMap<>();
    private long number;
    private volatile boolean isOver;

    Conversation(SocketChannel channel, Duration patience) throws IOException {
        this.channel = channel;
        this.patience = patience.toNanos();
        try {
            selector = Selector.open();
            channel.register(selector, SelectionKey.OP_READ);
        } catch (IOException error) {
            channel.close();
            throw error;
        }
        // The thread and its values outlive the web application that happens to make it.
        Thread listener = new Thread(null, this::listen, "bywash-stopd", 0, false);
        listener.setDaemon(true);
        listener.setContextClassLoader(null);
        listener.start();
    }

    /** Returns whether the conversation, and with it each of its leases, has ended. */
    boolean isOver() {
        return isOver;
    }

    /**
     * Sends a command and waits for its answer. Returns the answer without its number; empty if the
     * conversation is over.
     */
    Optional<String> ask(String command) {
        CompletableFuture<String> answer = new CompletableFuture<>();
        send(command, answer);
        try {
            return Optional.of(await(answer));
        } catch (ExecutionException | TimeoutException | CancellationException error) {
            // The line was not sent, or not answered in time.
            end();
            return Optional.empty();
        }
    }

    /** Sends a command. The answer is cancelled if the conversation ends before. */
    void send(String command, CompletableFuture<String> answer) {
        try {
            write(command, answer);
        } catch (IOException error) {
            end();
        }
        if (isOver) {
            answer.cancel(false);
        }
    }

    private synchronized void write(String command, CompletableFuture<String> answer) throws IOException {
        number++;
        waiting.put(number, answer);
        ByteBuffer line = ByteBuffer.wrap((number + " " + command + "\n").getBytes(StandardCharsets.US_ASCII));
        channel.write(line);
        if (line.hasRemaining()) {
            throw new IOException("the stop daemon does not read its messages");
        }
    }

    /**
     * Waits for the answer. If this thread is interrupted, the interrupt takes effect only
     * afterwards, because a missing answer would end all leases.
     */
    private String await(CompletableFuture<String> answer) throws ExecutionException, TimeoutException {
        long until = System.nanoTime() + patience;
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

    /** Reads answers until the conversation is over. */
    private void listen() {
        ByteBuffer received = ByteBuffer.allocate(LONGEST);
        // The channel is closed completely only when its selector is.
        try (selector) {
            while (!isOver && received.hasRemaining()) {
                selector.select();
                selector.selectedKeys().clear();
                if (channel.read(received) < 0) {
                    break;
                }
                deliver(received);
            }
        } catch (IOException | RuntimeException error) {
            // An answer that cannot be parsed also ends the conversation.
        } finally {
            end();
        }
    }

    /** Processes all complete lines that the daemon has sent, and keeps the rest. */
    private void deliver(ByteBuffer received) throws IOException {
        String text = StandardCharsets.US_ASCII.decode(received.flip()).toString();
        int from = 0;
        for (int end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
            String line = text.substring(from, end);
            from = end + 1;
            int space = line.indexOf(' ');
            long asked = Long.parseLong(line.substring(0, space));
            String answer = line.substring(space + 1);
            if (!waiting.containsKey(asked) || !ANSWER.matcher(answer).matches()) {
                throw new IOException("the stop daemon sends a line that is not an answer");
            }
            waiting.remove(asked).complete(answer);
        }
        received.position(from);
        received.compact();
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
