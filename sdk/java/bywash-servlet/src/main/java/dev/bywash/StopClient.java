package dev.bywash;

import java.io.IOException;
import java.net.ConnectException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The client of the stop daemon ({@code bywash stopd}). Each process has one, and any thread may use
 * it.
 *
 * <p>The daemon is optional. Without it, a lease costs one look at a clock, and one attempt to
 * connect in 200 ms.
 */
public final class StopClient {
    private static final long AGAIN_AFTER = TimeUnit.MILLISECONDS.toNanos(200);
    private static final System.Logger LOG = System.getLogger("dev.bywash");
    private static final StopClient INSTANCE = new StopClient(defaultSocket(), Duration.ofMillis(100));

    private final Path socket;
    private final Duration patience;
    private final AtomicLongArray counts = new AtomicLongArray(Count.values().length);
    /** The commands of which a refusal has been logged: leases and stops have different causes. */
    private final Set<Command> logged = EnumSet.noneOf(Command.class);
    private final AtomicLong numbers = new AtomicLong();
    private Conversation current;
    private long notBefore = System.nanoTime();

    /** The commands that the daemon may refuse. */
    enum Command { LEASE, STOP }

    /** The counts of {@link Stats}. */
    enum Count { LEASED, UNNAMED, UNREACHABLE, REFUSED, STOPPED, TAKEN, SPOILED, STOPS }

    /**
     * Counts since the start of the process.
     *
     * @param leased Queries that ran under a lease.
     * @param unnamed Queries outside of a request, which nothing can stop.
     * @param unreachable Queries without a lease, because there was no daemon or it did not answer.
     * @param refused Leases and stops that the daemon refused.
     * @param stopped Queries that did not begin because their request was over.
     * @param taken Connections that were closed because another client of the daemon had leased them.
     * @param spoiled Connections that were closed because a cancellation may have been aimed at them.
     * @param stops Requests that the daemon agreed to stop.
     */
    public record Stats(
            long leased, long unnamed, long unreachable, long refused, long stopped, long taken, long spoiled, long stops) {}

    StopClient(Path socket, Duration patience) {
        this.socket = socket;
        this.patience = patience;
    }

    private static Path defaultSocket() {
        String named = System.getenv("BYWASH_STOPD");
        return Path.of(named == null || named.isEmpty() ? "/run/bywash-stopd/stopd.sock" : named);
    }

    /**
     * Returns this process's instance, for the socket in the environment variable BYWASH_STOPD or
     * the default socket.
     *
     * @return the instance
     */
    public static StopClient get() {
        return INSTANCE;
    }

    /**
     * Returns the counts.
     *
     * @return the counts
     */
    public Stats stats() {
        return new Stats(
                get(Count.LEASED), get(Count.UNNAMED), get(Count.UNREACHABLE), get(Count.REFUSED),
                get(Count.STOPPED), get(Count.TAKEN), get(Count.SPOILED), get(Count.STOPS));
    }

    private long get(Count what) {
        return counts.get(what.ordinal());
    }

    /** Returns a number for work in this process that no other work has. */
    long nextNumber() {
        return numbers.incrementAndGet();
    }

    /** Adds one to a count. The first of a kind that indicates a wrong set-up is logged. */
    void count(Count what) {
        if (counts.incrementAndGet(what.ordinal()) > 1) {
            return;
        }
        if (what == Count.UNNAMED) {
            LOG.log(System.Logger.Level.INFO, "a query runs outside of a request, so nothing can stop it: at the start and in "
                    + "jobs this is usual, in a request RequestFilter or Token.wrap is missing");
        } else if (what == Count.UNREACHABLE) {
            LOG.log(System.Logger.Level.WARNING,
                    "no stop daemon answers at " + socket + ": queries run, and nothing cancels them");
        }
    }

    /** Counts a refusal, and logs the first one of each command with the daemon's text. */
    void refused(Command command, String answer) {
        count(Count.REFUSED);
        synchronized (logged) {
            // STOPPED is a refusal if nothing may end the request any more: nothing is wrong.
            if (!answer.startsWith("ERR") || !logged.add(command)) {
                return;
            }
        }
        LOG.log(System.Logger.Level.WARNING, "the stop daemon at " + socket + " refused a " + command
                + " (later ones are only counted): " + answer.replaceAll("[^ -~]", "?"));
    }

    /** Returns the reason in the answer to a lease whose request was stopped. */
    static Optional<Reason> stopped(String answer) {
        return answer.startsWith("STOPPED ") ? Reason.of(answer.substring("STOPPED ".length())) : Optional.empty();
    }

    /** Tells the daemon to stop what this process has leased for a request. Does not wait. */
    void stop(String request, Reason reason) {
        Conversation conversation = conversation();
        if (conversation == null) {
            return;
        }
        CompletableFuture<String> answer = new CompletableFuture<>();
        answer.thenAccept(text -> {
            if (text.startsWith("OK")) {
                count(Count.STOPS);
            } else {
                refused(Command.STOP, text);
            }
        });
        conversation.send("STOP " + request + " " + reason + " scope=own", answer);
    }

    /**
     * Returns the conversation with the daemon; null if there is none and the next attempt is not
     * yet due.
     */
    synchronized Conversation conversation() {
        if (current != null && !current.isOver()) {
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
            current = new Conversation(connect(), patience);
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
}
