package dev.bywash;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/** A real Tomcat with the filter and one servlet. */
final class Server implements AutoCloseable {
    interface Handler {
        void handle(HttpServletRequest request, HttpServletResponse response) throws Exception;
    }

    record Answer(int status, Map<String, String> head, String body) {}

    private final Tomcat tomcat = new Tomcat();
    private final Path folder = Files.createTempDirectory("bywash");

    Server(Handler handler, RequestFilter... filters) throws IOException, LifecycleException {
        tomcat.setBaseDir(folder.toString());
        tomcat.setPort(0);
        tomcat.setSilent(true);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        StandardContext context = (StandardContext) tomcat.addContext("", null);
        // These searches for leaks need further rights in the Java VM.
        context.setClearReferencesObjectStreamClassCaches(false);
        context.setClearReferencesRmiTargets(false);
        context.setClearReferencesThreadLocals(false);
        for (int place = 0; place < filters.length; place++) {
            add(context, "bywash" + place, filters[place]);
        }
        Tomcat.addServlet(context, "handler", new Servlet(handler)).setAsyncSupported(true);
        context.addServletMappingDecoded("/*", "handler");
        tomcat.start();
    }

    private static void add(Context context, String name, RequestFilter filter) {
        FilterDef definition = new FilterDef();
        definition.setFilterName(name);
        definition.setFilter(filter);
        definition.setAsyncSupported("true");
        context.addFilterDef(definition);
        FilterMap mapping = new FilterMap();
        mapping.setFilterName(name);
        mapping.addURLPattern("/*");
        mapping.setDispatcher(DispatcherType.REQUEST.name());
        mapping.setDispatcher(DispatcherType.ASYNC.name());
        context.addFilterMap(mapping);
    }

    private static final class Servlet extends HttpServlet {
        private static final long serialVersionUID = 1L;
        private final transient Handler handler;

        Servlet(Handler handler) {
            this.handler = handler;
        }

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            try {
                handler.handle(request, response);
            } catch (RuntimeException | IOException error) {
                throw error;
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        }
    }

    private Socket open(String method, String path, String field, List<String> values) throws IOException {
        StringBuilder head = new StringBuilder(method + " " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
        values.forEach(value -> head.append(field).append(": ").append(value).append("\r\n"));
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), tomcat.getConnector().getLocalPort());
        socket.setSoTimeout((int) FakeDaemon.PATIENCE.toMillis());
        socket.getOutputStream().write(head.append("\r\n").toString().getBytes(StandardCharsets.UTF_8));
        return socket;
    }

    /** Sends a request, and leaves. */
    void leave(String path, String field, List<String> values) throws IOException {
        open("GET", path, field, values).close();
    }

    /** Sends a request with these values of one header field. */
    Answer ask(String method, String path, String field, List<String> values) throws IOException {
        try (Socket socket = open(method, path, field, values)) {
            String[] parts = new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8).split("\r\n\r\n", 2);
            String[] lines = parts[0].split("\r\n");
            Map<String, String> fields = new TreeMap<>();
            for (int line = 1; line < lines.length; line++) {
                String[] pair = lines[line].split(": ", 2);
                fields.put(pair[0].toLowerCase(Locale.ROOT), pair[1]);
            }
            return new Answer(Integer.parseInt(lines[0].split(" ")[1]), fields, parts[1]);
        }
    }

    @Override
    public void close() throws IOException, LifecycleException {
        tomcat.stop();
        tomcat.destroy();
        try (var files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
