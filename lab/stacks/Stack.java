// A servlet for `stacks`, in an embedded Tomcat, that works in small steps. With `plain` it only
// works; with `ask` it writes at each step.

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.file.Files;
import org.apache.catalina.startup.Tomcat;

public class Stack extends HttpServlet {
    private final DatagramSocket observer = new DatagramSocket();

    private Stack() throws IOException {}

    private void tell(String name, String word) throws IOException {
        byte[] text = (name + " " + word).getBytes();
        int port = Integer.parseInt(System.getenv("STACKS_OBSERVER"));
        observer.send(new DatagramPacket(text, text.length, InetAddress.getLoopbackAddress(), port));
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String[] words = request.getRequestURI().split("/");
        boolean asks = words[1].equals("ask");
        String name = words[2];
        try {
            for (int step = 0; step < 40; step++) {
                tell(name, "step");
                Thread.sleep(20);
                if (asks) {
                    response.getOutputStream().write(' ');
                    response.flushBuffer();
                }
            }
        } catch (IOException | InterruptedException gone) {
            tell(name, "told");
            return;
        }
        tell(name, "done");
        response.getOutputStream().print("done");
    }

    public static void main(String[] words) throws Exception {
        File folder = Files.createTempDirectory(new File(words[0]).toPath(), "tomcat").toFile();
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(folder.getPath());
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(Integer.parseInt(System.getenv("STACKS_PORT")));
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        var context = tomcat.addContext("", folder.getPath());
        Tomcat.addServlet(context, "stack", new Stack());
        context.addServletMappingDecoded("/", "stack");
        tomcat.start();
        tomcat.getServer().await();
    }
}
