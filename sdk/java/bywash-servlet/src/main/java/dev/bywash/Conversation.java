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
        Thread listener = new Thread(this::listen, "bywash-stopd");
        listener.setDaemon(true);
        // The thread outlives the web application that happens to make it.
        listener.setContextClassLoader(null);
        listener.start();
    }

    boolean isOver() {
        return isOver;
    }

    /**
     * Sends a command and waits for its answer. Returns the answer without its number; empty if the
     * conversation is over.
     */
    Optional<String> ask(String command) {
        CompletableFuture<String> answer = new CompletableFuture<>();
        say(command, answer);
        try {
            return Optional.of(hear(answer));
        } catch (ExecutionException | TimeoutException | CancellationException error) {
            // The line was not sent, or not answered in time.
            end();
            return Optional.empty();
        }
    }

    /** Sends a command. The answer is cancelled if the conversation ends before. */
    void say(String command, CompletableFuture<String> answer) {
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
    private String hear(CompletableFuture<String> answer) throws ExecutionException, TimeoutException {
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
    private void understand(ByteBuffer heard) throws IOException {
        String text = StandardCharsets.US_ASCII.decode(heard.flip()).toString();
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
