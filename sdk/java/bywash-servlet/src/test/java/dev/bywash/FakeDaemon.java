package dev.bywash;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Scanner;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.BinaryOperator;

/** A stop daemon whose answers a real one hardly ever gives. It keeps the lines that it reads. */
final class FakeDaemon implements AutoCloseable {
    /** Longer than anything takes on a busy machine. A longer wait fails the test. */
    static final Duration PATIENCE = Duration.ofSeconds(20);

    final Path socket;
    final StopClient client;
    private final Path folder = Files.createTempDirectory("bywash");
    private final ServerSocketChannel channel = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

    /** Answers each line with {@code reply} of its number and its words: complete lines. */
    FakeDaemon(Duration patience, BinaryOperator<String> reply) throws IOException {
        socket = folder.resolve("s");
        client = new StopClient(socket, patience);
        channel.bind(UnixDomainSocketAddress.of(socket));
        Thread thread = new Thread(() -> serve(reply), "fake daemon");
        thread.setDaemon(true);
        thread.start();
    }

    /** Answers each line with the same words, such as OK. */
    static FakeDaemon says(String words) throws IOException {
        return new FakeDaemon(PATIENCE, (number, line) -> number + " " + words + "\n");
    }

    private void serve(BinaryOperator<String> reply) {
        while (channel.isOpen()) {
            try (SocketChannel one = channel.accept();
                    Scanner read = new Scanner(Channels.newInputStream(one), StandardCharsets.US_ASCII);
                    var out = Channels.newOutputStream(one)) {
                while (read.hasNextLine()) {
                    String[] line = read.nextLine().split(" ", 2);
                    lines.add(line[1]);
                    out.write(reply.apply(line[0], line[1]).getBytes(StandardCharsets.US_ASCII));
                }
            } catch (IOException error) {
                // The client or the daemon has ended the conversation.
            }
        }
    }

    /** Waits for the next line. Returns null if there is none. */
    String next() throws InterruptedException {
        return lines.poll(PATIENCE.toNanos(), TimeUnit.NANOSECONDS);
    }

    boolean hasRead() {
        return !lines.isEmpty();
    }

    @Override
    public void close() throws IOException {
        channel.close();
        Files.deleteIfExists(socket);
        Files.deleteIfExists(folder);
    }
}
