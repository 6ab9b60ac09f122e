import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.sql.SQLException;
import javax.naming.InitialContext;
import javax.naming.NamingException;
import javax.sql.DataSource;

/**
 * A servlet for scripts/test-servlet, with the paths /number, /long and /short. Its code does not
 * depend on leases.
 */
public final class Query extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException, ServletException {
        String query = getServletContext().getInitParameter(request.getServletPath().substring(1));
        try (var connection = ((DataSource) new InitialContext().lookup("java:comp/env/jdbc/shop")).getConnection();
                var statement = connection.prepareStatement(query);
                var rows = statement.executeQuery()) {
            while (rows.next()) {
                response.getWriter().println(rows.getString(1));
            }
        } catch (SQLException | NamingException error) {
            // If the request is over, the filter answers.
            throw new ServletException(error);
        }
    }
}
